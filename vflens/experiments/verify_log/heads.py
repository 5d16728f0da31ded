"""The heads that parties hold of one another's logs, against the logs and against each other.

Where heads are not signed, or with a certificate that is not trusted, a holder may have made them up: then
both it and their party are named.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from vflens.experiments.results.record import RecordedRun
from vflens.experiments.verify_log.chains import CheckedLog
from vflens.experiments.verify_log.finding import Found
from vflens.experiments.verify_log.words import Word, word
from vflens.member.signer import heads_statement
from vflens.storage import chain, release_digests
from vflens.storage.heads import LogHead
from vflens.wire.tls.signing import certified
from vflens.words import counted

Logs = Mapping[str, Mapping[str, CheckedLog]]


@dataclass(frozen=True)
class Held:
    """What ``holder`` has of ``owner``: the ``heads`` of its logs by name, the digest of its ``federation``,
    the ``nonce`` of its run, and what its signature of them is worth.
    """

    holder: str
    owner: str
    heads: Mapping[str, LogHead]
    federation: str
    nonce: str
    word: Word
    certified: str  # the federation that the certificate of its signature names


def held_heads(run: RecordedRun, trust: Path | None, faults: Found) -> list[Held]:
    """The heads in the folders of ``run``, those that are proven first; forged ones are found.

    Raises:
        ConfigError: ``trust`` cannot be used.
    """
    held = []
    roles = {party.name: party.role for party in run.parties}
    for party in run.parties:
        for owner, sent in party.received_heads().items():
            heads = {name: LogHead(records=h.records, head=h.link.hex()) for name, h in sent.heads.items()}
            statement, signer = heads_statement(run.name, sent), certified(sent.signature)
            worth = word(owner, statement, sent.signature, trust)
            if signer is not None and signer.role is not (roles.get(owner) or signer.role):
                worth = Word.FORGED
            if worth is Word.FORGED:
                faults.damaged(
                    party.name, "heads.json", f"its heads of {owner!r} are not those that {owner!r} signed"
                )
            else:
                federation = signer.federation if signer else ""
                held.append(
                    Held(
                        party.name,
                        owner,
                        heads,
                        sent.federation.hex(),
                        nonce=sent.nonce,
                        word=worth,
                        certified=federation,
                    )
                )
    if trust is not None:
        for one in (one for one in held if one.word is not Word.PROVEN):
            faults.notes.append(
                f"{one.holder}: its heads of {one.owner!r} are {one.word}: they prove nothing to others"
            )
    return sorted(_of_one_federation(held), key=lambda one: one.word is not Word.PROVEN)


def _of_one_federation(held: list[Held]) -> list[Held]:
    """``held``, where nothing is proven if trusted certificates name several federations: an authority may
    have signed for another party of the same name.
    """
    proven = [one for one in held if one.word is Word.PROVEN]
    if len({one.certified for one in proven}) < 2:
        return held
    return [replace(one, word=Word.MIXED) if one in proven else one for one in held]


def compare_logs(run: RecordedRun, held: Iterable[Held], logs: Logs, faults: Found) -> None:
    """Compare the ``logs`` of each party with the heads that it noted itself, and that others hold."""
    for party in run.parties:
        for name, head in party.status.heads.items():
            log = logs[party.name].get(name)
            if log and (problem := _misfit(log, head, "its own status.json")):
                faults.damaged(party.name, _file(name), problem)
    missing: set[tuple[str, str]] = set()
    backed: dict[tuple[str, str], int] = {}  # how many records of a log its party signed, as they are
    for one in held:
        for name, head in one.heads.items() if one.owner in logs else ():
            log, key, holder = logs[one.owner].get(name), (one.owner, name), f"{one.holder}'s heads.json"
            if log is None:
                if head.records and key not in missing:
                    problem = (
                        f"no such log was given, {holder} holds the head of {counted(head.records, 'record')}"
                    )
                    faults.damaged(one.owner, _file(name), f"{problem} ({one.word})")
                    missing.add(key)
            elif problem := _misfit(log, head, holder):
                _accuse(one, name, problem, faults, owner_too=head.records > backed.get(key, 0))
            elif one.word is Word.PROVEN:
                backed[key] = max(head.records, backed.get(key, 0))


def _misfit(log: CheckedLog, head: LogHead, holder: str) -> str:
    """Why ``log`` has not the ``head`` that ``holder`` has, "" if it has."""
    link = log.after(head.records) if head.records else None
    if link is None and head.records:
        return f"it has fewer records than the {head.records} whose head {holder} holds"
    if link is None or link.hex() == head.head:
        return ""
    return (
        f"the head of the first {counted(head.records, 'record')} is {link.hex()}, {holder} holds "
        f"{head.head}: one of them was changed and all links after it written anew"
    )


def _accuse(held: Held, name: str, problem: str, faults: Found, *, owner_too: bool) -> None:
    """Name who may have made a head and a log differ; a holder cannot make up what is proven."""
    if owner_too:
        faults.damaged(held.owner, _file(name), f"{problem} ({held.word})")
    if held.word is not Word.PROVEN:
        problem = f"its head of {held.owner!r} {name} is not that of the log ({held.word})"
        faults.differs(held.holder, "heads.json", problem)


def compare_holders(held: Iterable[Held], faults: Found) -> None:
    """Compare the heads that holders have of the same number of records, proven ones first."""
    first: dict[tuple[str, str, int], tuple[Held, str]] = {}
    for one in held:
        for name, head in one.heads.items():
            other, link = first.setdefault((one.owner, name, head.records), (one, head.head))
            if link == head.head:
                continue
            if one.word is Word.PROVEN:
                both = f"{other.holder!r} and {one.holder!r} hold"
                problem = f"it signed two heads of its first {counted(head.records, 'record')}, which {both}"
                faults.damaged(one.owner, _file(name), problem)
                continue
            for mine, another in ((one, other), (other, one)):
                if mine.word is not Word.PROVEN:
                    faults.differs(
                        mine.holder,
                        "heads.json",
                        f"its head of the first {counted(head.records, 'record')} of {one.owner!r} {name} "
                        f"is not the one that {another.holder!r} holds ({mine.word})",
                    )


def _file(name: str) -> str:
    return f"{name}/{chain.FILE}" if name != "digests" else f"released/{release_digests.FILE}"
