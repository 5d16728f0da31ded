"""``vflens verify-log``: recorded logs against their chains, their heads, and one another."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from vflens.experiments.results.record import RecordedRun, read_runs
from vflens.experiments.verify_log.chains import CheckedLog, checked_logs
from vflens.experiments.verify_log.digests import compare_digests
from vflens.experiments.verify_log.federations import compare_federations
from vflens.experiments.verify_log.finding import Found
from vflens.experiments.verify_log.heads import compare_holders, compare_logs, held_heads
from vflens.experiments.verify_log.nonces import of_one_run
from vflens.experiments.verify_log.rows import compare_rows
from vflens.experiments.verify_log.rules import RULES
from vflens.experiments.verify_log.words import Word, check_trust, word
from vflens.member.signer import key_statement
from vflens.types import Document
from vflens.words import counted

#: Facts of a member, by their names: what they are called, and what another value would do.
_FACTS = {
    "mask_key": ("key of masks", "could take masks off"),
    "train_rows": ("number of training rows", "could change the weights of updates"),
}


def compare_keys(run: RecordedRun, trust: Path | None, faults: Found) -> None:
    """Compare the members in ``federation.json`` of each party with what their owners have there.

    A party takes no federation that gives it another key than its own. A key that its owner signed shows who
    put another in its place.

    Raises:
        ConfigError: ``trust`` cannot be used.
    """
    for folder in run.parties:
        for info in folder.federation.parties:
            statement = key_statement(run.name, info.mask_key, folder.federation.nonce)
            if word(info.name, statement, info.signature, trust) is Word.FORGED:
                problem = f"its key of masks of {info.name!r} is not the one that {info.name!r} signed"
                faults.damaged(folder.name, "federation.json", problem)
    for fact, (called, effect) in _FACTS.items():
        held = {
            p.name: {info.name: getattr(info, fact) for info in p.federation.parties} for p in run.parties
        }
        for party, values in held.items():
            for owner, value in values.items():
                if owner in held and value != held[owner].get(owner, value):
                    faults.differs(
                        party,
                        "federation.json",
                        f"its {called} of {owner!r} is not that of {owner!r}: who put it there {effect}",
                    )


#: The last line, of a run without a finding.
_ENDS = {True: "  all that could be checked fits", None: "  nothing to check: no log has a record yet"}


@dataclass(frozen=True)
class VerifiedRun:
    """What verifying one run found: the logs of each party, and the records compared between two."""

    name: str
    logs: Mapping[str, Mapping[str, CheckedLog]]
    compared: Mapping[tuple[str, str], Mapping[str, int]]
    found: Found

    @property
    def fits(self) -> bool | None:
        """Whether all that could be checked fits; None of a run without a record."""
        recorded = any(log.head.records for logs in self.logs.values() for log in logs.values())
        return None if not (recorded or self.found.findings) else not self.found.findings

    def to_json(self) -> Document:
        """For programs."""
        heads = {
            party: {
                name: {"records": log.head.records, "head": log.head.link.hex()} for name, log in logs.items()
            }
            for party, logs in self.logs.items()
        }
        findings = [
            {
                "party": f.party,
                "file": f.file,
                "line": f.line or None,
                "problem": f.problem,
                "remedy": f.remedy,
            }
            for f in self.found.findings
        ]
        compared = [{"from": a, "to": b, **counts} for (a, b), counts in self.compared.items()]
        return {
            "run": self.name,
            "fits": self.fits,
            "logs": heads,
            "compared": compared,
            "findings": findings,
            "notes": self.found.notes,
        }

    def words(self) -> str:
        """For people: the heads, what was compared, then what does not fit."""
        lines = [f"run {self.name}"]
        for party, logs in self.logs.items():
            for name, log in logs.items():
                lines.append(
                    f"  {party} {name}: {counted(log.head.records, 'linked record')}, head "
                    f"{log.head.link.hex()}"
                )
        for (sender, receiver), counts in self.compared.items():
            amounts = " and ".join(f"{n} {what}" for what, n in counts.items())
            lines.append(f"  {sender} → {receiver}: {amounts} compared")
        lines += [f"  note: {note}" for note in self.found.notes]
        lines += [f"  DOES NOT FIT {finding}" for finding in self.found.findings]
        return "\n".join([*lines, *([_ENDS[self.fits]] if self.fits is not False else [])])


def verify_logs(folders: Sequence[Path], trust: Path | None = None) -> list[VerifiedRun]:
    """Verify the logs in ``folders``; see ``docs/verify-log.md``. ``trust`` holds the certificates whose
    signatures prove something, as ``tls.trust`` does.

    Raises:
        ConfigError, DataError: see :func:`vflens.experiments.results.record.read_runs`; or ``trust`` cannot
            be used.
    """
    if trust is not None:
        check_trust(trust)
    return [_verified(run, trust) for run in read_runs(folders)]


def _verified(run: RecordedRun, trust: Path | None) -> VerifiedRun:
    found = Found()
    logs = {party.name: checked_logs(party, found) for party in run.parties}
    run, held = of_one_run(run, held_heads(run, trust, found), found)
    compare_holders(held, found)
    compare_logs(run, held, logs, found)
    compare_federations(run, held, found)
    compare_keys(run, trust, found)
    RULES[run.setting].compare(run, found)
    compared: dict[tuple[str, str], dict[str, int]] = {}
    for what, counts in (("releases", compare_digests(run, found)), ("rows", compare_rows(run, found))):
        for pair, count in counts.items():
            compared.setdefault(pair, {})[what] = count
    return VerifiedRun(run.name, logs, compared, found)
