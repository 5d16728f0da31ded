"""The meaning of the results of one or more runs: in words, as a table and as JSON.

The first run with results is the baseline; runs without defences come first.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from vflens.experiments.outcome import table
from vflens.experiments.outcome.decide import HARDLY
from vflens.experiments.outcome.finding import AFFINE, Finding
from vflens.experiments.outcome.words import number, rows_of, title
from vflens.experiments.results import theory
from vflens.experiments.results.clear_training import (
    assumption,
    besides,
    best_defense,
    explained_number,
    found_in_training,
    how_trained,
    members_told,
    percent,
    protected,
    reads_training,
)
from vflens.experiments.results.labels_membership import beside
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.results.results import Result
from vflens.experiments.results.titles import attacker, by_name, defenses, labels, named, things
from vflens.experiments.results.utility import UTILITY, worth
from vflens.storage.json_file import finite
from vflens.storage.metrics import Name
from vflens.types import Document, Phase
from vflens.words import counted

_NOTHING = "Nothing can be said yet about what leaks: no reconstruction was scored beside a blind guess."
_NO_COLUMNS = "No reconstruction of columns was scored beside a blind guess."  # other results exist
_IN_BATCHES = "SplitFed: the server received the labels and an embedding of every training row"
_GRANTED = "granted, not on the wire"  # what an attack read that no round sends
_SPOKEN_RUNS = 4  # the heat map shows the others


@dataclass(frozen=True)
class Verdict:
    """``headline`` on the baseline run, one sentence for each other run, the threat model assumed, and what
    the data's owners state about them.
    """

    headline: str
    others: tuple[str, ...] = ()
    assumption: str = ""
    caveats: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join(filter(None, (self.headline, *self.others, self.assumption, *self.caveats)))


def baseline(runs: Sequence[RecordedRun]) -> int:
    """The position of the baseline: the first run with results, else the first with a leak, else 0."""
    leaking = [*(i for i, r in enumerate(runs) if r.results), *(i for i, r in enumerate(runs) if r.largest)]
    return next(iter(leaking), 0)


def verdict(runs: Sequence[RecordedRun]) -> Verdict:
    """The answer to "what leaks, and does the defence help?" in plain words."""
    first, names = baseline(runs), labels(runs)
    if not any(r.largest for r in runs):
        words = " ".join(members_told(runs)) or (_NO_COLUMNS if any(r.labels for r in runs) else _NOTHING)
        if any(p.federation.horizontal.get("method") == "splitfed" for r in runs for p in r.parties):
            words = f"{_IN_BATCHES}. {words}"
        return Verdict(words, assumption=besides(runs), caveats=_caveats(runs))
    others = [
        _compared(r, n, runs[first]) for i, (r, n) in enumerate(zip(runs, names, strict=True)) if i != first
    ]
    hidden = len(others) - _SPOKEN_RUNS
    stand = counted(hidden, "more run stands", many="more runs stand")
    more = [f"{stand} in the heat map below."] if hidden > 0 else []
    return Verdict(
        _headline(runs[first], names[first]),
        (
            *best_defense(runs, runs[first]),
            *members_told(runs),
            *_predicted(runs[first]),
            *others[:_SPOKEN_RUNS],
            *more,
        ),
        assumption(runs),
        _caveats(runs),
    )


def _caveats(runs: Sequence[RecordedRun]) -> tuple[str, ...]:
    found = dict.fromkeys(p.settings.data.caveat for r in runs for p in r.parties if p.settings.data.caveat)
    return tuple(f"Data: {caveat}." for caveat in found)


def alarms(runs: Sequence[RecordedRun]) -> list[str]:
    """Sentences that reports show first: who broke the protocol or is suspected to, where theory and
    measurement disagree, and which attacks failed.
    """
    named = list(zip(runs, labels(runs), strict=True))
    disagree = "THEORY AND MEASUREMENT DISAGREE"
    return [
        *(sentence for run, label in named for sentence in broken(run, label)),
        *(f"{disagree}, with {label}: {alarm}" for run, label in named for alarm in run.alarms),
        *(f"AN ATTACK FAILED, with {label}: {failure}" for run, label in named for failure in failures(run)),
    ]


def failures(run: RecordedRun) -> list[str]:
    """Which attacks failed, a sentence each."""
    return [f"{f.attack} in {f.adversary} on {f.target} failed: {f.reason}" for f in run.failed]


def omissions(runs: Sequence[RecordedRun]) -> list[str]:
    """Which attacks lacked knowledge and did not run, a sentence each, with the runs that it is true of."""
    found: dict[str, list[str]] = {}
    for run, label in zip(runs, labels(runs), strict=True):
        for s in run.skipped:
            found.setdefault(f"{s.attack} in {s.adversary} on {s.target}: {s.reason}", []).append(label)
    return [f"an attack did not run, with {', '.join(where)}: {what}" for what, where in found.items()]


def result_table(runs: Sequence[RecordedRun]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows, attack × run: "MSE ± half width of the 95 % interval (share of blind error)"; of
    images PSNR and SSIM too; R² of values up to an affine map. Targets stand in the order of their names.
    """
    cells: dict[tuple[str, str, str], list[str]] = {}
    blind: dict[tuple[str, str, str], list[str]] = {}
    for i, run in enumerate(runs):
        for r in run.results:
            row = cells.setdefault((r.target, r.scored_set, r.attack), ["–"] * len(runs))
            row[i] = _cell(r) + (f"; {_GRANTED}" if r.granted else "")
            row = blind.setdefault((r.target, r.scored_set, "best blind guess = 100 %"), ["–"] * len(runs))
            row[i] = f"{number(r.blind)} ({r.blind_guess}){_likeness(r.blind_psnr, r.blind_ssim)}"
        for (attack, target), r2 in run.explained.items():
            row = cells.setdefault((target, Phase.TRAIN, attack), ["–"] * len(runs))
            row[i] = explained_number(r2)
    rows = [(*key, *row) for key, row in {**cells, **blind}.items()]
    rows.sort(key=lambda row: (by_name(row[0]), row[1]))
    return ("target", "rows", "attack", *labels(runs)), rows


def to_json(runs: Sequence[RecordedRun]) -> Document:
    """All of the above under stable keys.

    An infinite figure, such as ``mean_kl`` under label_only, becomes None: strict JSON has no infinity.
    """
    return {
        "verdict": str(verdict(runs)),
        "runs": [_run_json(run, name) for run, name in zip(runs, labels(runs), strict=True)],
    }


def _run_json(run: RecordedRun, label: str) -> Document:
    return {
        "run": run.name,
        "label": label,
        "parties": {p.name: {"state": p.status.state, "reason": p.status.reason} for p in run.parties},
        **{"defenses": defenses(run), "on_grants_only": [f._asdict() for f in run.on_grants_only]},
        "largest_leaks": [_leak_json(run, leak) for leak in run.largest],
        "results": [
            {
                **{k: finite(v) for k, v in vars(r).items() if v or k not in ("granted", "adversary")},
                "relative": finite(r.relative),
                "better_than_blind": r.better,
                "own_units": [table.own_unit(f) for f in run.own_units(r)],
            }
            for r in run.results
        ],
        "explained_after_affine_map": [
            {"attack": attack, "target": target, "r2": r2} for (attack, target), r2 in run.explained.items()
        ],
        "worst_cases": [case.json for case in run.worst_cases],
        "column_means": [table.mean(f) for f in run.column_means],
        "findings": run.findings.json,
        **{"skipped": [f._asdict() for f in run.skipped], "failed": [f._asdict() for f in run.failed]},
        "hijacking_suspected": run.hijacked,
        "labels": [{k: finite(v) for k, v in vars(r).items()} for r in run.labels],
        "membership": [r._asdict() for r in run.membership],
        "utility": {k: finite(v) for k, v in run.utility.items()},
        "privacy": [{k: finite(v) for k, v in vars(found).items()} for found in run.privacy],
        **theory.to_json(run),
    }


def _leak_json(run: RecordedRun, leak: Finding) -> Document:
    """``relative``: the error over a blind guess's, or 1 − R²."""
    mapped, trained = leak.subject == AFFINE, leak.scored_set == Phase.TRAIN
    relative = leak.value if mapped else 1 - leak.taken
    return {
        **{"attack": leak.attack, "target": leak.target, "relative": relative},
        **{"phase": Phase.TRAIN if trained else Phase.PREDICT, "up_to_affine": mapped},
        "words": _leak_sentence(run, leak),
    }


def _cell(r: Result) -> str:
    interval = f" ± {number(r.half_width)}" if r.half_width is not None else ""
    share = f" ({100 * r.relative:.0f} %)" if r.blind else ""
    return f"{number(r.mse)}{interval}{share}{_likeness(r.psnr, r.ssim)}"


def _likeness(psnr: float | None, ssim: float | None) -> str:
    return "" if psnr is None or ssim is None else f"; {psnr:.1f} dB, SSIM {number(ssim)}"


def _largest(run: RecordedRun) -> list[Finding]:
    """The largest leak of each target: clients by name, else the largest of all first."""
    return sorted(run.largest, key=lambda leak: by_name(leak.target)) if run.alike else list(run.largest)


def _headline(run: RecordedRun, label: str) -> str:
    text = " ".join([*_title(run), *(_leak_sentence(run, leak) for leak in _largest(run))])
    return f"With {label}: {text[0].lower()}{text[1:]}" if defenses(run) else text


def _title(run: RecordedRun) -> Iterator[str]:
    """Who finds the most exposed column, and of whom; none where no owner's folder says what units are."""
    if f := run.findings.most_exposed():
        seen = _seen(f)
        if f.scored_set == Phase.TRAIN and reads_training(f.attack):
            seen = how_trained(run) if protected(run) else "From training in the clear"
        yield title(f, f"{seen} {f.adversary}", named(run, f.target))


def _leak_sentence(run: RecordedRun, leak: Finding) -> str:
    if not _read_in_training(leak):
        return _sentence(run, leak)
    whose = f"{named(run, leak.target)}'s {things(run, leak.target)}"
    leak_s = f"leak{'s' if run.label_of(leak.target) else ''}"
    return f"{how_trained(run)}, {whose} {leak_s}: {found_in_training(leak, _measure(leak))}."


def _read_in_training(leak: Finding) -> bool:
    """Whether ``leak`` is better than blind at training rows, by what training sent, or up to a map."""
    better = leak.taken > 0 and leak.scored_set == Phase.TRAIN and reads_training(leak.attack)
    return better or leak.subject == AFFINE


def _measure(leak: Finding) -> str:
    return explained_number(leak.taken) if leak.subject == AFFINE else _errors(leak)


def _errors(f: Finding) -> str:
    return f"MSE {number(f.value)}; of the best blind guess, {f.guess}, {number(f.blind)}"


def _predicted(run: RecordedRun) -> Iterator[str]:
    """A sentence on predictions for each target whose largest leak is from training."""
    for leak in _largest(run):
        if result := beside(run, leak):
            yield _sentence(run, result)


def _sentence(run: RecordedRun, f: Finding) -> str:
    who = (
        f"{_seen(f)} {attacker(run, f.attack)} reconstructs {named(run, f.target)}'s {things(run, f.target)}"
    )
    granted = {(m.attack, m.target): m.detail for m in run.metrics(Name.GRANTED)}
    if what := granted.get((f.attack, f.target)):
        who += f" ({_GRANTED}: {what})"
    if not _leaks(f):
        return f"{who} {_than_blind(f)} ({_errors(f)}){_but_columns(run, f)}."
    return f"{who}: it finds {percent(f.gain)} of what a blind guess leaves open ({_errors(f)})."


def _seen(r: Finding) -> str:
    if r.scored_set == Phase.PREDICT:
        return f"From {r.rows:,} predictions"
    return f"Of {r.rows:,} {rows_of(r.scored_set)}"


def _leaks(f: Finding) -> bool:
    """Whether ``f`` is more than hardly better than a blind guess."""
    return f.taken > 0 and f.value / f.blind <= 1 - HARDLY


def _than_blind(f: Finding) -> str:
    return f"{'hardly' if f.taken > 0 else 'no'} better than a blind guess"


def _compared(run: RecordedRun, label: str, base: RecordedRun) -> str:
    largest = _largest(run)
    outcomes = [part for leak in largest for part in _outcomes(run, leak, several=len(largest) > 1)] or [
        "nothing was scored"
    ]
    return f"With {label}: {', '.join([*outcomes, *_worth_change(run, base)])}."


def _outcomes(run: RecordedRun, leak: Finding, *, several: bool) -> Iterator[str]:
    """The largest leak of a target, and what predictions leak beside it."""
    name, predicted = f"{leak.target} " if several else "", beside(run, leak)
    if not _read_in_training(leak):
        yield _outcome(run, leak, several=several)
    else:
        yield f"{name}in training {found_in_training(leak, _measure(leak))}"
    if predicted:
        yield f"from predictions {_outcome(run, predicted, several=several)}"


def _outcome(run: RecordedRun, f: Finding, *, several: bool) -> str:
    name = f"{f.target} " if several else ""
    if _leaks(f):
        return f"{name}{percent(f.gain)} found (MSE {number(f.value)})"
    return f"{name}MSE {number(f.value)}, {_than_blind(f)}{_but_columns(run, f)}"


def _but_columns(run: RecordedRun, f: Finding) -> str:
    """Single columns of the rows of ``f`` that leak although the error over all columns is high."""
    if not (leaks := run.leaking_columns(f.target, f.scored_set)):
        return ""
    error = leaks[0]
    count = counted(len(leaks), "column leaks", many="columns leak, most of all this")
    errors = f"MSE {number(error.mse)}, of a blind guess {number(error.blind)}"
    return f", but {count}: {error.column} ({error.attack}, {errors})"


def _worth_change(run: RecordedRun, base: RecordedRun) -> Iterator[str]:
    """What a run is worth beside ``base``: of two classes by AUC too."""
    by_rank = [Name.AUC] if run.n_classes == 2 and Name.AUC in run.utility else []
    for measure in (*by_rank, worth(run.utility)):
        now, before = run.value(measure), base.value(measure)
        if now is not None and before is not None:
            same = abs(now - before) < 0.0005
            change = "unchanged" if same else f"{number(before)} → {number(now)}"
            yield f"{UTILITY[measure]} {change}"


def broken(run: RecordedRun, label: str) -> list[str]:
    """What the run that ``label`` names did, for a page's top."""
    return [
        *(f"MALICIOUS, with {label}: {sentence}" for sentence in run.malicious),
        *(f"HIJACKING SUSPECTED, with {label}: {sentence}" for sentence in run.hijacked),
    ]
