"""The worst cases of an audit: which cells and rows its strongest attacks find, and which rows best."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vflens.errors import ConfigError
from vflens.experiments.audit.bench import Answer, Bench
from vflens.experiments.audit.subject import AuditSubject
from vflens.experiments.results.findings import WorstCase
from vflens.names import did_you_mean
from vflens.score.worst import Shares, Tolerance, most_exposed
from vflens.tables.pixels import pixel_places
from vflens.types import Array


def tolerance_of(subject: AuditSubject, stated: Mapping[str, float]) -> Tolerance:
    """How far from the truth an answer of each column counts as found: as ``stated`` in its own unit, else as
    the party's configuration does, else by default.

    Raises:
        ConfigError: a stated column is none of the subject's.
    """
    names = [c.name for c in subject.columns]
    if unknown := next((name for name in stated if name not in names), None):
        raise ConfigError(
            f"--tolerance names {unknown!r}: it is no column of {subject.name}"
            f"{did_you_mean(unknown, names) or ', name one of its columns'}"
        )
    units = np.ones(len(names)) if subject.units is None else subject.units
    wanted = {**subject.tolerance, **stated}
    scaled = {j: wanted[n] / units[j] for j, n in enumerate(names) if n in wanted and units[j]}
    return Tolerance.of(subject.x[:1], scaled, subject.few)


def stated_in_units(subject: AuditSubject, tolerance: Tolerance) -> dict[str, float]:
    """Column → its ``tolerance`` in the column's own unit; {} where the columns are pixels."""
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
    """Of one attack's ``answers`` on one model after another, means over them; None where columns are pixels.

    The most exposed rows are those of least error on average over the models that estimated them.
    """
    subject = bench.subject
    if pixel_places(subject.columns) is not None or not answers:
        return None
    tolerance = tolerance_of(subject, bench.plan.tolerance)
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
