"""``vflens audit``: what a passive party's columns would reveal, before any training.

Bounds come from the party's own columns and the number of classes; they cover least squares and half* only.
Measurements follow: the strongest implemented attacks on the party's own rows, against models of the planned
size, and the effect of each installed defence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from vflens.errors import ConfigError
from vflens.experiments.audit.bench import Answer, Bench, Plan, Tell, audited, running
from vflens.experiments.audit.defenses import ATTACKED_MODELS, fitting, left_out, try_defenses
from vflens.experiments.audit.models import World
from vflens.experiments.audit.outcomes import AttackOutcome, ModelErrors, summary
from vflens.experiments.audit.record import AuditRecord, Closed, EarlyBounds, NumericLabel, by_error
from vflens.experiments.audit.subject import AuditSubject
from vflens.experiments.results.findings import WorstCase
from vflens.names import did_you_mean
from vflens.numerics.entropy import entropy
from vflens.numerics.theory import closed_forms as theory
from vflens.score.worst import Shares, Tolerance, most_exposed
from vflens.tables.pixels import pixel_places
from vflens.types import Array, Document, Phase, Progress

#: Receives the ids of the most exposed rows: phase → attack → rows.
Keep: TypeAlias = Callable[[Document], None]


def audit(
    subject: AuditSubject, plan: Plan, progress: Progress, keep: Keep = lambda exposed: None
) -> AuditRecord:
    """All results of the audit: see ``docs/audit.md``.

    ``keep`` receives the most exposed rows by phase and attack: they are for the party alone.

    Raises:
        ConfigError: a plan that does not fit the party's rows or columns.
    """
    bench, models = Bench.set_up(subject, plan), plan.models
    facts = {**_facts(bench), "tolerance": stated_in_units(bench)}
    kinds = {"random": models, "trained": models} if subject.weight is None else {"given": 1}
    read = {"trained": min(ATTACKED_MODELS, models)} if bench.training_attacks else {}
    plans = (Phase.PREDICT, kinds), (Phase.TRAIN, read)
    reached = [r for phase, several in plans for r in _attacked(bench, phase, several, progress)]
    defended, utility = try_defenses(bench, progress)
    tried: Document = {"defenses": defended, "fitting": fitting(defended, plan.wanted()), "utility": utility}
    record = AuditRecord.of(bench, reached, **facts, **tried, failed=bench.failed, left_out=left_out())
    worst = list(_worst(bench, record.counting))
    keep({w.case.scored_set: {w.case.attack: w.exposed} for w in worst})
    return replace(record, worst_cases=tuple(w.case for w in worst))


def _facts(bench: Bench) -> Document:
    """What only planned models have."""
    subject, label, few = bench.subject, bench.subject.label, bench.subject.few
    return {
        "attacked_rows": len(bench.rows),
        "known_rows": len(bench.known),
        "classes": subject.classes,
        "equations": subject.equations,
        "raw_outputs": subject.raw,
        "model": subject.family.title,
        "label": label and NumericLabel(**asdict(label), assumed=subject.assumed),
        "trained": subject.weight is not None,
        "real_labels": subject.labels is not None,
        "real_others": subject.other is not None,
        "training": bench.plan.training,
        "bounds": _bounds(bench),
        "after_training": _after_training(bench),
        "column_entropy": tuple(entropy(x) if j in few else None for j, x in enumerate(bench.truth.T)),
    }


def _moments(bench: Bench) -> dict[str, Array]:
    """The attacked rows' second moments (d, d) around z·1, by attack that submits the solution nearest to it,
    the least z first.
    """
    stated = {name: kind.stated for name, kind, _ in audited(Phase.PREDICT)}
    centers = {n: s.center for n, s in stated.items() if s and s.center is not None and not s.clipped}
    ordered = sorted(centers.items(), key=lambda item: item[1])
    return {name: theory.second_moment(bench.truth, center) for name, center in ordered}


def _bounds(bench: Bench) -> dict[str, EarlyBounds]:
    """Theorem 2 before training, for every model of full rank, on the attacked rows."""
    x, equations = bench.truth, bench.subject.equations
    weak = theory.weak_lower_bound(theory.second_moment(x, x.mean(axis=0)), equations)
    bounds = {n: theory.bounds_before_training(K, equations) for n, K in _moments(bench).items()}
    return {name: EarlyBounds(b.lower, b.upper, weak) for name, b in bounds.items()}


def _after_training(bench: Bench) -> dict[str, Closed]:
    """Theorem 2 for the trained model, as a whole and per column; {} before training."""
    if bench.subject.weight is None:
        return {}
    A = bench.subject.system(bench.subject.weight)
    moments = _moments(bench)
    return {
        name: Closed(
            theory.nearest_solution_mse(A, K), tuple(theory.nearest_solution_column_mse(A, K).tolist())
        )
        for name, K in moments.items()
    }


def _attacked(
    bench: Bench, phase: Phase, kinds: Mapping[str, int], progress: Progress
) -> Iterator[AttackOutcome]:
    """Every attack on the rows of a ``phase``, against so many models of each of ``kinds``."""
    predicting = phase is Phase.PREDICT
    stage, what = ("models attacked", "a {} model") if predicting else ("trainings read", "training")
    done, total, moments = 0, sum(kinds.values()), _moments(bench) if predicting else {}
    for kind, count in kinds.items():
        by_attack: dict[str, list[ModelErrors]] = {}
        for i in range(count):
            tell = running(progress, stage, done, total)
            tell(what.format(kind))
            for world, answer in _answers(bench, phase, kind, i, tell):
                A, K = bench.subject.system(world.weight), moments.get(answer.attack)
                closed = None if K is None else theory.nearest_solution_mse(A, K)
                errors = replace(errors_of(bench, answer), closed=closed)
                by_attack.setdefault(answer.attack, []).append(errors)
            done += 1
        if done == total:
            progress(stage, done, total)
        yield from (summary(name, kind, of, bench.subject, phase=phase) for name, of in by_attack.items())


def _answers(
    bench: Bench, phase: str, kind: str, model: int, tell: Tell = lambda what: None, *, only: str = ""
) -> Iterator[tuple[World, Answer]]:
    """What each attack, or the ``only`` one, says of one model."""
    world = bench.world(kind, model)
    if phase == Phase.TRAIN:
        answers: Iterable[Answer] = bench.of_training(world, model, tell)
    else:
        answers = bench.estimates(world, kind, model, tell, only=only)
    yield from ((world, answer) for answer in answers if only in ("", answer.attack))


def _worst(bench: Bench, counting: Sequence[AttackOutcome]) -> Iterator[Worst]:
    """The worst case of the strongest attack on predictions, and of that on training in the clear."""
    for phase in (Phase.PREDICT, Phase.TRAIN):
        if best := min((r for r in counting if r.phase == phase), key=by_error, default=None):
            several = range(min(ATTACKED_MODELS, best.models))
            again = (_answers(bench, phase, best.kind, i, only=best.attack) for i in several)
            if worst := worst_case(bench, phase, [answer for one in again for _, answer in one]):
                yield worst


def errors_of(bench: Bench, answer: Answer) -> ModelErrors:
    """What an ``answer`` gets wrong, beside the blind guesses of ``bench``."""
    return ModelErrors.of(bench.subject, answer, bench.guesses(answer.rows), tolerance_of(bench))


def tolerance_of(bench: Bench) -> Tolerance:
    """How far from the truth an answer of each column counts as found: as the plan states in its own unit,
    else as the party's configuration does, else by default.

    Raises:
        ConfigError: a stated column is none of the subject's.
    """
    subject, stated = bench.subject, bench.plan.tolerance
    names = [c.name for c in subject.columns]
    if unknown := next((name for name in stated if name not in names), None):
        raise ConfigError(
            f"tolerance names {unknown!r}: it is no column of {subject.name}"
            f"{did_you_mean(unknown, names) or ', name one of its columns'}"
        )
    units = np.ones(len(names)) if subject.units is None else subject.units
    wanted = {**subject.tolerance, **stated}
    scaled = {j: wanted[n] / units[j] for j, n in enumerate(names) if n in wanted and units[j]}
    return Tolerance.of(subject.x[:1], scaled, subject.few)


def stated_in_units(bench: Bench) -> dict[str, float]:
    """Column → its tolerance in the column's own unit; {} where the columns are pixels."""
    subject, tolerance = bench.subject, tolerance_of(bench)
    if pixel_places(subject.columns) is not None:
        return {}
    units = np.ones(len(subject.columns)) if subject.units is None else subject.units
    return dict(zip((c.name for c in subject.columns), (tolerance.width * units).tolist(), strict=True))


@dataclass(frozen=True)
class Worst:
    """A worst ``case``, and of the attack's rows the ids of the most ``exposed``, the most exposed first."""

    case: WorstCase
    exposed: list[Any]


def worst_case(bench: Bench, scored_set: str, answers: Sequence[Answer]) -> Worst | None:
    """Means over one attack's ``answers`` on one model after another; None where columns are pixels.

    The most exposed rows are those of least error on average over the models that estimated them.
    """
    subject = bench.subject
    if pixel_places(subject.columns) is not None or not answers:
        return None
    tolerance = tolerance_of(bench)
    found, control = [], []
    for answer in answers:
        truth = subject.x[answer.rows]
        found.append(tolerance.shares(answer.inside, truth, subject.x))
        control.append(_control(tolerance, truth, subject.x, bench.guesses(answer.rows)))
    rows, errors = _per_row(subject.x, answers)
    exposed = most_exposed(errors)
    place = subject.name, answers[0].attack, scored_set, len(answers[0].rows)
    shares, guessed = (Shares(*np.mean(of, axis=0).tolist()) for of in (found, control))
    case = WorstCase.of(place, shares, guessed, float(errors[exposed].mean()))
    ids = rows if subject.ids is None else subject.ids[rows]
    return Worst(case, [i.decode() if isinstance(i, bytes) else i for i in ids[exposed].tolist()])


def _control(tolerance: Tolerance, truth: Array, everybody: Array, learnt: Mapping[str, Array]) -> Shares:
    """What blind guesses find of ``truth``, rows of ``everybody``: of each share the most."""
    guesses = tolerance.constants(truth), *learnt.values()
    found = [tolerance.shares(guess, truth, everybody) for guess in guesses]
    return Shares(*map(max, zip(*found, strict=True)))


def _per_row(x: Array, answers: Sequence[Answer]) -> tuple[Array, Array]:
    """The rows that any of ``answers`` estimates, and the mean error (n,) of each over those that do."""
    total, count = np.zeros(len(x)), np.zeros(len(x))
    for answer in answers:
        total[answer.rows] += ((answer.inside - x[answer.rows]) ** 2).mean(axis=1)
        count[answer.rows] += 1
    rows = np.flatnonzero(count)
    return rows, total[rows] / count[rows]
