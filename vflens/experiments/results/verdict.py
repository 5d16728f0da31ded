"""The meaning of the results of one or more runs: in words, as a table and as JSON.

The first run with results is the baseline; runs without defences come first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from vflens.experiments.results import theory
from vflens.experiments.results.folders import Run
from vflens.experiments.results.membership import membership_results
from vflens.experiments.results.own_units import own_errors
from vflens.experiments.results.protection import broken, hijacked, privacy
from vflens.experiments.results.results import (
    LabelResult,
    Result,
    explained,
    failed,
    final,
    label_results,
    leaking_columns,
    skipped,
    utility,
)
from vflens.experiments.results.titles import by_name, defenses, labels, rows_of
from vflens.plugins.attack import installed_attack, up_to_renaming
from vflens.plugins.malicious import SendingAttack
from vflens.protocol.acts import BATCHES
from vflens.types import Document, Phase, Role

_NOTHING = "Nothing can be said yet about what leaks: no reconstruction was scored beside a blind guess."
_NO_COLUMNS = "No reconstruction of columns was scored beside a blind guess."  # other results exist
_AS_CLUSTERS = ", each of its classes under the name that fits best"  # they have none of their own
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
        parts = (self.headline, *self.others, self.assumption, *self.caveats)
        return " ".join(part for part in parts if part)


def reads_training(attack: str) -> bool:
    """Whether ``attack`` reads training traffic, or sends some; False if it is not installed."""
    plugin = installed_attack(attack)
    return plugin is not None and (Phase.TRAIN in plugin.phases or issubclass(plugin, SendingAttack))


def baseline(runs: Sequence[Run]) -> int:
    """The position of the baseline: the first run with results, else 0."""
    return next((i for i, r in enumerate(runs) if final(r)), 0)


def verdict(runs: Sequence[Run]) -> Verdict:
    """The answer to "what leaks, and does the defence help?" in plain words."""
    first, names = baseline(runs), labels(runs)
    if not any(final(r) for r in runs):
        other = any(explained(r) or label_results(r) for r in runs)
        beside = _worth_of_secure_training(runs) + _labels_after_training(runs)
        said = _NO_COLUMNS if other or any(membership_results(r) for r in runs) else _NOTHING
        if any(p.federation.horizontal.get("method") == "splitfed" for r in runs for p in r.parties):
            said = f"{_IN_BATCHES}. {said}"
        return Verdict(said, assumption=beside.strip(), caveats=_caveats(runs))
    others = [
        _compared(r, n, runs[first]) for i, (r, n) in enumerate(zip(runs, names, strict=True)) if i != first
    ]
    hidden = len(others) - _SPOKEN_RUNS
    more = [f"{hidden} more runs stand in the heat map below."] if hidden > 0 else []
    return Verdict(
        _headline(runs[first], names[first]),
        (*others[:_SPOKEN_RUNS], *more),
        _assumption(runs),
        _caveats(runs),
    )


def _caveats(runs: Sequence[Run]) -> tuple[str, ...]:
    found = dict.fromkeys(p.settings.data.caveat for r in runs for p in r.parties if p.settings.data.caveat)
    return tuple(f"Data: {caveat}." for caveat in found)


def alarms(runs: Sequence[Run]) -> list[str]:
    """Sentences that reports show first: who broke the protocol or is suspected to, where theory and
    measurement disagree, and which attacks failed.
    """
    named = list(zip(runs, labels(runs), strict=True))
    disagree = "THEORY AND MEASUREMENT DISAGREE"
    return [
        *(sentence for run, label in named for sentence in broken(run, label)),
        *(f"{disagree}, with {label}: {alarm}" for run, label in named for alarm in theory.alarms(run)),
        *(f"AN ATTACK FAILED, with {label}: {failure}" for run, label in named for failure in failures(run)),
    ]


def failures(run: Run) -> list[str]:
    """Which attacks failed, a sentence each."""
    return [f"{f.attack} in {f.adversary} on {f.target} failed: {f.reason}" for f in failed(run)]


def omissions(runs: Sequence[Run]) -> list[str]:
    """Which attacks lacked knowledge and did not run, a sentence each, with the runs that it is true of."""
    found: dict[str, list[str]] = {}
    for run, label in zip(runs, labels(runs), strict=True):
        for s in skipped(run):
            found.setdefault(f"{s.attack} in {s.adversary} on {s.target}: {s.reason}", []).append(label)
    return [f"an attack did not run, with {', '.join(where)}: {what}" for what, where in found.items()]


def figure(value: float | None) -> str:
    """A number as the papers print it: ".021", "1.234", "2.1e-06"; "–" for none, "∞" or "-∞" for infinite."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    if 0 < abs(value) < 0.0005:
        return f"{value:.1e}"
    return f"{value:.3f}".replace("0.", ".", 1) if abs(value) < 0.9995 else f"{value:.3f}"


def result_table(runs: Sequence[Run]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Header and rows, attack × run: "MSE ± half width of the 95 % interval (share of blind error)"; of
    images PSNR and SSIM too. Targets stand in the order of their names.
    """
    cells: dict[tuple[str, str, str], list[str]] = {}
    blind: dict[tuple[str, str, str], list[str]] = {}
    for i, run in enumerate(runs):
        for r in final(run):
            row = cells.setdefault((r.target, r.scored_set, r.attack), ["–"] * len(runs))
            row[i] = _cell(r) + (f"; {_GRANTED}" if r.granted else "")
            row = blind.setdefault((r.target, r.scored_set, "best blind guess = 100 %"), ["–"] * len(runs))
            row[i] = f"{figure(r.blind)} ({r.blind_guess}){_likeness(r.blind_psnr, r.blind_ssim)}"
    rows = [(*key, *row) for key, row in {**cells, **blind}.items()]
    rows.sort(key=lambda row: (by_name(row[0]), row[1]))
    return ("target", "rows", "attack", *labels(runs)), rows


def to_json(runs: Sequence[Run]) -> Document:
    """All of the above under stable keys.

    An infinite figure, such as ``mean_kl`` under label_only, becomes None: strict JSON has no infinity.
    """
    return {
        "verdict": str(verdict(runs)),
        "runs": [_run_json(run, name) for run, name in zip(runs, labels(runs), strict=True)],
    }


def _run_json(run: Run, label: str) -> Document:
    return {
        "run": run.name,
        "label": label,
        "parties": {p.name: {"state": p.status.state, "reason": p.status.reason} for p in run.parties},
        "defenses": defenses(run),
        "results": [
            {
                **{k: _finite(v) for k, v in vars(r).items() if v or k != "granted"},
                "relative": _finite(r.relative),
                "better_than_blind": r.better,
                "own_units": [found._asdict() for found in own_errors(run, r)],
            }
            for r in final(run)
        ],
        "explained_after_affine_map": [
            {"attack": attack, "target": target, "r2": r2} for (attack, target), r2 in explained(run).items()
        ],
        "skipped": [f._asdict() for f in skipped(run)],
        "failed": [f._asdict() for f in failed(run)],
        "hijacking_suspected": hijacked(run),
        "labels": [{k: _finite(v) for k, v in vars(r).items()} for r in label_results(run)],
        "membership": [r._asdict() for r in membership_results(run)],
        "utility": {k: _finite(v) for k, v in utility(run).items()},
        "privacy": [{k: _finite(v) for k, v in found.items()} for found in privacy(run)],
        **theory.to_json(run),
    }


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cell(r: Result) -> str:
    interval = f" ± {figure(r.half_width)}" if r.half_width is not None else ""
    share = f" ({100 * r.relative:.0f} %)" if r.blind else ""
    return f"{figure(r.mse)}{interval}{share}{_likeness(r.psnr, r.ssim)}"


def _likeness(psnr: float | None, ssim: float | None) -> str:
    return "" if psnr is None or ssim is None else f"; {psnr:.1f} dB, SSIM {figure(ssim)}"


def _worst_by_target(run: Run) -> list[Result]:
    """The most successful attack on each target: clients by name, else the most successful of all first."""
    worst: dict[str, Result] = {}
    for r in final(run):
        worst.setdefault(r.target, r)
    found = list(worst.values())
    return sorted(found, key=lambda r: by_name(r.target)) if run.of_role(Role.CLIENT) else found


def _headline(run: Run, label: str) -> str:
    text = " ".join(_sentence(run, r) for r in _worst_by_target(run))
    return f"With {label}: {text[0].lower()}{text[1:]}" if defenses(run) else text


def _sentence(run: Run, r: Result) -> str:
    predicted = r.scored_set == "predict"
    seen = f"From {r.rows:,} predictions" if predicted else f"Of {r.rows:,} {rows_of(r.scored_set)}"
    who = f"{seen} {attacker(run, r.attack)} reconstructs {named(run, r.target)}'s {things(run, r.target)}"
    guess = f"the best blind guess ({r.blind_guess})"
    if r.granted:
        who += f" ({_GRANTED}: {r.granted})"
    if r.better:
        return f"{who} with MSE {figure(r.mse)}; {guess} errs by {figure(r.blind)}.{_in_own_unit(run, r)}"
    return (
        f"{who} no better than a blind guess: MSE {figure(r.mse)}, where {guess} errs by {figure(r.blind)}"
        f"{_but_columns(run, r.target)}."
    )


def _in_own_unit(run: Run, r: Result) -> str:
    """The column that ``r`` finds best, in its own unit."""
    found = own_errors(run, r)
    return f" Its best column: {found[0]}." if found else ""


def _compared(run: Run, label: str, base: Run) -> str:
    worst = _worst_by_target(run)
    outcomes = [_outcome(run, r, several=len(worst) > 1) for r in worst] or ["nothing was scored"]
    return f"With {label}: {', '.join([*outcomes, *_accuracy_change(run, base)])}."


def _outcome(run: Run, r: Result, *, several: bool) -> str:
    name = f"{r.target} " if several else ""
    blind = "" if r.better else f", no better than a blind guess{_but_columns(run, r.target)}"
    return f"{name}{figure(r.mse)}{blind}"


def _but_columns(run: Run, target: str) -> str:
    """Single columns that leak although the error over all columns is high."""
    leaks = leaking_columns(run, target)
    if not leaks:
        return ""
    worst, error = leaks[0].attack, leaks[0].error
    count = "one column leaks" if len(leaks) == 1 else f"{len(leaks)} columns leak, most of all this"
    return (
        f" (but {count}: {worst} errs by {figure(error.mse)} at {error.column}, "
        f"a blind guess by {figure(error.blind)})"
    )


def _accuracy_change(run: Run, base: Run) -> list[str]:
    now, before = run.value("accuracy"), base.value("accuracy")
    if now is None or before is None:
        return []
    same = abs(now - before) < 0.0005
    return ["accuracy unchanged" if same else f"accuracy {figure(before)} → {figure(now)}"]


def attacker(run: Run, attack: str | None = None) -> str:
    """The party that runs ``attack``, in words; any attacking party otherwise, or the active party, or the
    server.
    """
    names = [
        p.name for p in run.parties if any(attack in (None, a.get("name")) for a in p.settings.attacks)
    ] or [*run.of_role(Role.ACTIVE), *run.of_role(Role.SERVER)]
    return " and ".join(named(run, n) for n in names) or "the active party"


def named(run: Run, party: str) -> str:
    """A party in words: its role, and its name if that differs; of a horizontal run as it is called."""
    if party in run.of_role(Role.SERVER):
        return "the server"
    info = run.infos().get(party)
    if info is not None and info.role == Role.CLIENT:
        return party
    if info is None:
        return f"party {party}"
    return f"the {info.role} party" + ("" if party == info.role else f" {party}")


def things(run: Run, target: str) -> str:
    """The word for the target's columns: "pixels" or "columns"."""
    columns = run.infos()[target].columns if target in run.infos() else ()
    return "pixels" if columns and all(c.pixel for c in columns) else "columns"


def _assumption(runs: Sequence[Run]) -> str:
    found = {(r.attack, r.scored_set) for run in runs for r in final(run)}
    reading = sorted({a for a, rows in found if reads_training(a) or rows.startswith(BATCHES)})
    assumed = "Assumes secure training: the attacks read predictions and disclosed parameters only."
    if reading:
        assumed = f"Training in the clear: {', '.join(reading)} read training traffic."
    return assumed + _worth_of_secure_training(runs) + _labels_after_training(runs)


def _worth_of_secure_training(runs: Sequence[Run]) -> str:
    """The leak of unprotected training, as attacks measured it: the largest of several runs."""
    found = sorted(((key, r2) for run in runs for key, r2 in explained(run).items()), key=lambda t: t[1])
    shares = dict(found)  # the last of a key is its largest
    columns = "".join(
        f" Trained in the clear, {attack} explains R² = {figure(r2)} of the variance of {target}'s training "
        "rows, up to one affine map."
        for (attack, target), r2 in shares.items()
    )
    named = _named_labels(_best_on_labels(runs, training=True))
    return columns + "".join(f" Trained in the clear, {sentence}" for sentence in named)


def _labels_after_training(runs: Sequence[Run]) -> str:
    """Labels that attacks found without training traffic, which secure training does not hide."""
    named = _named_labels(_best_on_labels(runs, training=False))
    return "".join(f" Without training traffic, {sentence}" for sentence in named)


def _best_on_labels(runs: Sequence[Run], *, training: bool) -> list[LabelResult]:
    """The best result of each attack on labels that does, or does not, read training traffic."""
    scored = sorted((r for run in runs for r in label_results(run)), key=lambda r: r.accuracy)
    wanted = (r for r in scored if reads_training(r.attack) == training)
    best = {(r.attack, r.adversary, r.target, r.scored_set): r for r in wanted}
    return sorted(best.values(), key=lambda r: -r.accuracy)


def _named_labels(found: Sequence[LabelResult]) -> list[str]:
    """A sentence each; with the target's name where there are several."""
    several = len({r.target for r in found}) > 1
    return [
        f"{r.attack} at {r.adversary} names {100 * r.accuracy:.1f} % of {r.rows:,} {r.kind} labels"
        f"{f' of {r.target}' if several else ''} rightly"
        f"{_AS_CLUSTERS if up_to_renaming(r.attack) else ''} "
        f"(the most frequent class: {100 * r.blind:.1f} %)."
        for r in found
    ]
