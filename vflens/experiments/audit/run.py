"""``vflens audit``: what a passive party's columns would reveal, before any training.

Bounds come from the party's own columns and the number of classes; they cover least squares and half* only.
Measurements follow: the strongest implemented attacks on the party's own rows, against models of the planned
size, and the effect of each installed defence.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import TypeAlias

from vflens.experiments.audit.bench import Answer, Bench, Plan, audited, running
from vflens.experiments.audit.defenses import ATTACKED_MODELS, fitting, left_out, try_defenses
from vflens.experiments.audit.models import simulate
from vflens.experiments.audit.outcomes import (
    AttackOutcome,
    ModelErrors,
    by_column,
    column_blind,
    columns_json,
    summary,
)
from vflens.experiments.audit.subject import AuditSubject
from vflens.experiments.audit.worst import Worst, stated_in_units, tolerance_of, worst_case
from vflens.experiments.results.results import up_to_affine
from vflens.experiments.results.theory import TOLERANCE
from vflens.numerics.entropy import entropy
from vflens.numerics.theory import closed_forms as theory
from vflens.types import Array, Document, Phase, Progress

#: Receives the ids of the most exposed rows: phase → attack → rows.
Keep: TypeAlias = Callable[[Document], None]


def audit(
    subject: AuditSubject, plan: Plan, progress: Progress, keep: Keep = lambda exposed: None
) -> Document:
    """All results of the audit under stable keys: see ``docs/audit.md``.

    ``keep`` receives the most exposed rows by phase and attack: they are for the party alone.

    Raises:
        ConfigError: a plan that does not fit the party's rows or columns.
    """
    bench = Bench.set_up(subject, plan)
    tolerance = tolerance_of(bench.subject, plan.tolerance)
    reached = [*_reached(bench, progress), *_of_training(bench, progress)]
    defended, utility = try_defenses(bench, progress)
    counting = [r for r in reached if _counts(r, bench)]
    facts = _facts(bench)
    worst_model = max(counting, key=lambda r: (round(r.leak, 9), -r.mse))
    worst = list(_worst(bench, counting))
    keep({w.case.scored_set: {w.case.attack: w.exposed} for w in worst})
    return {
        **facts,
        "blind": bench.blind,
        "blind_guess": bench.blind_guess,
        "bounds": _bounds(bench),
        "after_training": _after_training(bench),
        "attacks": [asdict(r) for r in reached],
        "theory_disagreements": _disagreements(reached),
        "strongest": asdict(min(counting, key=_by_error)),
        "own_units": columns_json(by_column(counting, bench.subject)),
        "leak": worst_model.leak,
        "worst_model": asdict(worst_model),
        "worst_cases": [w.case.json for w in worst],
        "tolerance": stated_in_units(subject, tolerance),
        "column_blind": column_blind(bench.truth, bench.guesses(bench.rows)).tolist(),
        "column_entropy": _column_entropies(bench),
        "utility": utility,
        "defenses": [asdict(d) for d in defended],
        "left_out": left_out(),
        "failed": bench.failed,
        "wanted": plan.wanted(),
        "fitting": [asdict(d) for d in fitting(defended, plan.wanted())],
        "plan": asdict(plan),
    }


def _facts(bench: Bench) -> Document:
    subject = bench.subject
    return {
        "subject": subject.name,
        "rows": len(subject.x),
        "table_rows": len(subject.x) if subject.there is None else subject.there.rows,
        "attacked_rows": len(bench.rows),
        "known_rows": len(bench.known),
        "columns": bench.names,
        "categories": bench.categories,
        "classes": subject.classes,
        "equations": subject.equations,
        "raw_outputs": subject.raw,
        "model": subject.family.title,
        "label": subject.label and {**asdict(subject.label), "assumed": subject.assumed},
        "clipped": subject.clipped,
        "trained": subject.weight is not None,
        "real_labels": subject.labels is not None,
        "real_others": subject.other is not None,
        "training": bench.plan.training,
        "units": [] if subject.units is None else subject.units.tolist(),
    }


def _counts(outcome: AttackOutcome, bench: Bench) -> bool:
    """Whether ``outcome`` is of enough rows to decide: of a slow attack on some it is not."""
    return outcome.phase == Phase.TRAIN or outcome.rows == len(bench.rows)


def _by_error(outcome: AttackOutcome) -> tuple[float, bool]:
    """An order of attacks: of two that are exact but for rounding, the one that gives values comes first."""
    return round(outcome.mse, 12), up_to_affine(outcome.attack)


def _column_entropies(bench: Bench) -> tuple[float | None, ...]:
    """H(X) in bits of each column of the attacked rows; None of one that takes many values."""
    few = bench.subject.few
    return tuple(entropy(x) if j in few else None for j, x in enumerate(bench.truth.T))


def _centers() -> dict[str, float]:
    """Z of each audited attack that submits the solution nearest to z·1, the least first."""
    stated = {name: kind.stated for name, kind, _ in audited(Phase.PREDICT)}
    centers = {n: s.center for n, s in stated.items() if s and s.center is not None and not s.clipped}
    return dict(sorted(centers.items(), key=lambda item: item[1]))


def _moments(bench: Bench) -> dict[str, Array]:
    """The attacked rows' second moments (d, d) around the center of each of :func:`_centers`."""
    return {name: theory.second_moment(bench.truth, center) for name, center in _centers().items()}


def _bounds(bench: Bench) -> dict[str, dict[str, float]]:
    """Theorem 2 before training, for every model of full rank, on the attacked rows."""
    x, equations = bench.truth, bench.subject.equations
    weak = theory.weak_lower_bound(theory.second_moment(x, x.mean(axis=0)), equations)
    bounds = {n: theory.bounds_before_training(K, equations) for n, K in _moments(bench).items()}
    return {name: {**asdict(b), "any_center": weak} for name, b in bounds.items()}


def _after_training(bench: Bench) -> Document:
    """Theorem 2 for the trained model, as a whole and per column; {} before training."""
    if bench.subject.weight is None:
        return {}
    A = bench.subject.system(bench.subject.weight)
    moments = _moments(bench)
    return {
        name: {
            "mse": theory.nearest_solution_mse(A, K),
            "columns": theory.nearest_solution_column_mse(A, K).tolist(),
        }
        for name, K in moments.items()
    }


def _reached(bench: Bench, progress: Progress) -> Iterator[AttackOutcome]:
    """Every attack against every kind of model: the party's own where it has one."""
    given, models = bench.subject.weight is not None, bench.plan.models
    kinds = {"given": 1} if given else {"random": models, "trained": models}
    stage, done, total, moments = "models attacked", 0, sum(kinds.values()), _moments(bench)
    for kind, count in kinds.items():
        found: dict[str, list[ModelErrors]] = {}
        closed: dict[str, list[float]] = {}
        for i in range(count):
            tell = running(progress, stage, done, total)
            tell(f"a {kind} model")
            world = simulate(bench.subject, kind, bench.plan.rng(kind, i))
            for answer in bench.estimates(world, kind, i, tell):
                found.setdefault(answer.attack, []).append(_errors(bench, answer))
            for name, mse in _closed_forms(moments, bench.subject.system(world.weight)).items():
                closed.setdefault(name, []).append(mse)
            done += 1
        if done == total:
            progress(stage, done, total)
        yield from (summary(name, kind, of, bench.subject, closed.get(name)) for name, of in found.items())


def _of_training(bench: Bench, progress: Progress) -> Iterator[AttackOutcome]:
    """Every attack on training in the clear against a few trained models."""
    found: dict[str, list[ModelErrors]] = {}
    models = min(ATTACKED_MODELS, bench.plan.models) if bench.training_attacks else 0
    for i in range(models):
        tell = running(progress, "trainings read", i, models)
        tell("training")
        world = simulate(bench.subject, "trained", bench.plan.rng("trained", i))
        for answer in bench.of_training(world, i, tell):
            found.setdefault(answer.attack, []).append(_errors(bench, answer))
        progress("trainings read", i + 1, models)
    yield from (summary(name, "trained", of, bench.subject, phase=Phase.TRAIN) for name, of in found.items())


def _worst(bench: Bench, counting: Sequence[AttackOutcome]) -> Iterator[Worst]:
    """The worst case of the strongest attack on predictions, and of that on training in the clear."""
    for phase in (Phase.PREDICT, Phase.TRAIN):
        best = min((r for r in counting if r.phase == phase), key=_by_error, default=None)
        if best and (worst := worst_case(bench, phase, list(_answers(bench, best)))):
            yield worst


def _answers(bench: Bench, outcome: AttackOutcome) -> Iterator[Answer]:
    """What the attack of ``outcome`` says again of the first few of its models."""
    for i in range(min(ATTACKED_MODELS, outcome.models)):
        world = simulate(bench.subject, outcome.kind, bench.plan.rng(outcome.kind, i))
        if outcome.phase == Phase.TRAIN:
            yield from (a for a in bench.of_training(world, i) if a.attack == outcome.attack)
        else:
            yield from bench.estimates(world, outcome.kind, i, only=outcome.attack)


def _errors(bench: Bench, answer: Answer) -> ModelErrors:
    tolerance = tolerance_of(bench.subject, bench.plan.tolerance)
    return ModelErrors.of(bench.subject, answer, bench.guesses(answer.rows), tolerance)


def _closed_forms(moments: Mapping[str, Array], A: Array) -> dict[str, float]:
    """Theorem 2 for one undefended model, by second ``moments`` around each attack's center."""
    return {name: theory.nearest_solution_mse(A, K) for name, K in moments.items()}


def _disagreements(reached: Sequence[AttackOutcome]) -> list[str]:
    """A sentence for each attack whose error disagrees with theory on the same rows."""
    return [
        f"{r.attack} against {r.kind} models measured {r.unclipped:.6g}, RVG Theorem 2 says {r.closed:.6g} "
        f"(largest relative difference {r.disagreement:.1e})"
        for r in reached
        if r.disagreement is not None and r.disagreement > TOLERANCE
    ]
