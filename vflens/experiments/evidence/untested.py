"""What a DPIA's sources do not show: attacks that did not run, recipients that nobody attacked for."""

from collections.abc import Callable, Iterable, Iterator, Sequence

from vflens.experiments.audit.record import AuditRecord
from vflens.experiments.evidence.measured import RELEASE, TRAFFIC
from vflens.experiments.evidence.sources import cell_name
from vflens.experiments.outcome.finding import Findings, Quantity
from vflens.experiments.outcome.words import rows_of, subject
from vflens.experiments.results.clear_training import threat_model
from vflens.experiments.results.findings import run_source
from vflens.experiments.results.folders import Metric
from vflens.experiments.results.ledger import absent, lines
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.results.titles import named
from vflens.experiments.results.verdict import failures, omissions
from vflens.plugins.attack import is_blind
from vflens.protocol.roles import ROLES
from vflens.registry import ATTACKS
from vflens.storage.metrics import Name
from vflens.types import Facts, Phase

ALWAYS = (
    "Attacks that are not installed, or that know more than these did, were not run.",
    "Parties that pool what they receive were not tested, unless a recipient above says so.",
    "Other sources about the same people were not linked with what was found.",
)
_NO_MEMBERSHIP = "No attack on membership was scored: whether a person is in the table was not tested."
#: The metrics of an attack that was scored.
_SCORES = {
    *(Name.MSE, Name.MATCHED_MSE, Name.AFFINE_R2, Name.MEMBERSHIP_AUC),
    *(Name.LABEL_ACCURACY, Name.MATCHED_LABEL_ACCURACY, Name.SOURCE_RIGHT),
}


def by_runs(runs: Sequence[RecordedRun]) -> Iterator[str]:
    """Gaps of ``runs``: training that nobody read, attacks that did not run, recipients without an attack."""
    yield from _grouped(runs, lambda run: threat_model([run]))
    yield from (f"{sentence[:1].upper()}{sentence[1:]}." for sentence in omissions(runs))
    for run in runs:
        yield from (f"{_first(run_source(run))}: {sentence}." for sentence in failures(run))
    yield from _grouped(runs, lambda run: "" if _on_labels(run) else "No attack on labels was scored.")
    yield from _grouped(runs, lambda run: "" if run.membership else _NO_MEMBERSHIP)
    yield from (sentence for run in runs for sentence in (*_unseen(run), *_spared(run)))
    yield from _grouped(runs, _idle_in)


def _on_labels(run: RecordedRun) -> bool:
    """Whether an attack on labels was scored: on classes, or on a number."""
    return bool(run.labels) or any(run.label_of(r.target) for r in run.results)


def _first(text: str) -> str:
    """``text`` as a sentence begins."""
    return f"{text[:1].upper()}{text[1:]}"


def _grouped(runs: Sequence[RecordedRun], sentence: Callable[[RecordedRun], str]) -> Iterator[str]:
    """Each ``sentence`` once, after the runs that it is true of; "" is none."""
    found: dict[str, list[str]] = {}
    for run in runs:
        found.setdefault(sentence(run), []).append(run_source(run))
    yield from (f"{_first(', '.join(who))}: {sentence}" for sentence, who in found.items() if sentence)


def _unseen(run: RecordedRun) -> Iterator[str]:
    """Why there may be attacks of which the folders of ``run`` say nothing."""
    who = _first(run_source(run))
    if missing := absent(run, lines(run)):
        yield (
            f"{who}: the folders of {', '.join(missing)} were not given. What was attacked there, and what "
            "only they received, is not known."
        )
    for party in (p for p in run.parties if p.status.state != "finished"):
        yield (
            f"{who}: {named(run, party.name)} has not finished ({party.status.state}: {party.status.reason})."
            " Attacks may have found more than is recorded."
        )


def _idle_in(run: RecordedRun) -> str:
    """Installed attacks that did not run; where folders are not whole, those of which they have no figure."""
    attempted = {m.attack for m in _scored(run)} | {f.attack for f in (*run.failed, *run.skipped)}
    if any(True for _ in _unseen(run)):
        return f"Installed attacks of which these folders have no figure: {_others(attempted)}."
    return f"Installed attacks that did not run: {_others(attempted)}."


def _others(attempted: set[str]) -> str:
    return ", ".join(name for name in sorted(ATTACKS.names()) if name not in attempted) or "none"


def _scored(run: RecordedRun) -> Iterator[Metric]:
    return (m for p in run.parties for m in p.metrics if m.attack and m.name in _SCORES)


def _spared(run: RecordedRun) -> Iterator[str]:
    """Recipients that no attack was scored for, and senders that no attack of a recipient was scored on."""
    tried = {(m.adversary, m.target) for m in _scored(run) if not is_blind(m.attack)}
    got: dict[str, set[str]] = {}
    for c in (line.crossing for line in lines(run)):
        got.setdefault(c.receiver, set()).add(c.sender)
    who = _first(run_source(run))
    for receiver, senders in sorted(got.items()):
        name = named(run, receiver) if receiver else "a receiver that is not recorded"
        if receiver not in {adversary for adversary, _ in tried}:
            yield f"{who}: no attack by {name} was scored. What it can find was not tested."
            continue
        whole = [s for s in sorted(senders) if _has_rows(run, s) and (receiver, s) not in tried]
        yield from (f"{who}: no attack by {name} on {named(run, sender)} was scored." for sender in whole)


def _has_rows(run: RecordedRun, party: str) -> bool:
    info = run.infos().get(party)
    return info is not None and bool(info.columns or ROLES[info.role].labelled)


def by_audit(record: AuditRecord, source: str) -> Iterator[str]:
    """What an audit, the ``source``, does not show."""
    who = _first(source)
    if record.label or record.real_labels:
        yield f"{who} has labels, and no attack on them ran: what can be found of them was not tested."
        yield f"{who} has no membership: whether a person is in the table was not tested."
    else:
        yield f"{who} has no labels and no membership: neither was tested."
    yield from (f"{who}: attack {name} failed: {why}." for name, why in record.failed.items())
    if any(a.kind != "given" for a in record.attacks):
        yield (
            f"{who} simulates models of the planned size: the real one may leak more or less. Its intervals "
            "are over rows, for the simulated models."
        )
    if record.training == "secure":
        yield f"{who} took for granted that nobody sees the messages of training."
    phases = {a.phase for a in record.attacks}
    for phase, recipient in ((Phase.PREDICT, RELEASE), (Phase.TRAIN, TRAFFIC)):
        if phase not in phases:
            yield f"{who}: no attack by {recipient} was scored. What it can find was not tested."
    ran = {a.attack for a in record.attacks} | record.failed.keys()
    yield f"{who}: installed attacks that did not run: {_others(ran)}."


def by_refusals(refused: Sequence[Facts] | None, undefended: str, source: str) -> Iterator[str]:
    """Attacks and defences of a sweep, the ``source``, without a figure: why, and for which seeds."""
    if refused is None:
        yield (
            f"{_first(source)} does not record which attacks were skipped or failed: run the sweep again "
            "with this version."
        )
    seeds: dict[tuple[str, str, str], list[str]] = {}
    for r in refused or ():
        place = f"with {cell_name(r, undefended)}", r.get("attack") or "the federation", r["refused"]
        seeds.setdefault(place, []).append(str(r["seed"]))
    for (where, what, why), those in seeds.items():
        several = "" if len(those) == 1 else "s"
        yield f"{_first(source)}, {where}, seed{several} {', '.join(those)}: {what} {why}."


def by_sweep(attacks: set[str], evidence: Sequence[Findings], source: str) -> Iterator[str]:
    """What a sweep, the ``source``, of these ``attacks`` does not show."""
    who = _first(source)
    every = [f for e in evidence for f in e.found]
    if not any(f.scored_set == Phase.TRAIN for f in every):
        yield f"{who}: no attack on training rows was scored. What training gives away was not tested."
    if not any(f.label for f in every):
        yield f"{who}: no attack on labels was scored."
    if not any(f.quantity is Quantity.MEMBERS for f in every):
        yield f"{who}: {_NO_MEMBERSHIP[0].lower()}{_NO_MEMBERSHIP[1:]}"
    yield f"{who}: installed attacks that did not run: {_others(attacks)}."


def without_interval(evidence: Iterable[Findings], source: str) -> Iterator[str]:
    """Errors that are not in the table: nobody has an interval of them."""
    for e in evidence:
        for f in (f for f in e.only(Quantity.ALL) if f.high is None):
            error = f"{f.attack} ({subject(f)}) has an error without an interval: left out."
            yield f"{_first(source)}, {e.where}: {error}"


def without_imputation(evidence: Iterable[Findings], source: str) -> Iterator[str]:
    """Rows of which the baseline is a constant alone: imputation did not run."""
    alone = dict.fromkeys(
        f"{_first(source)}, {e.where}: imputation from other columns did not run on columns of {f.target} "
        f"({rows_of(f.scored_set)}). Their baseline is the best constant."
        for e in evidence
        for f in e.only(Quantity.WITHIN)
        if f.imputation is None
    )
    yield from alone
