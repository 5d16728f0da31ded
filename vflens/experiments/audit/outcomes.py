"""What one attack found of the party's rows, over simulated models: errors, right values, bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from vflens.experiments.audit.bench import Answer
from vflens.experiments.audit.subject import AuditSubject, category
from vflens.experiments.outcome import words
from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import Finding, Quantity
from vflens.experiments.results.results import half_width
from vflens.numerics.entropy import conditional_entropy, nearest_letters
from vflens.numerics.measures.advantage import exact
from vflens.score.worst import Tolerance, most_frequent
from vflens.types import Array, Document, Facts, Phase

_QUANTILE = 0.95  # of models: what is decided on holds in 19 of 20


@dataclass(frozen=True)
class AttackOutcome:
    """One attack against one kind of model, on ``rows`` each: MSE per feature of answers moved into the box.

    ``columns`` are errors by column beside those of the best blind guess at the same rows, ``column_blind``;
    ``right`` and ``blind_right`` the shares of right values, ``conditional_entropies`` H(X | X̂) in bits, None
    where a column takes many values: means over models. ``leak`` is the 95 % quantile over models of what one
    takes of its worst column, as a share of the best blind guess's error; ``column`` is the worst one in the
    share ``alike`` of models.
    ``low`` and ``high`` are the 5 % and 95 % quantiles over models; of one model the 95 % interval over rows.
    Of an attack that Theorem 2 covers ``closed`` is the mean closed form of its error before answers are
    moved into the box, ``unclipped`` that error as measured, ``disagreement`` their largest relative
    difference over models; None of others. ``released``: what it reads of a given network or
    trees. ``phase`` "train": it read the messages of training, and estimated training rows.
    ``found``, ``blind_found`` and ``imputed_found`` are the shares of the column's cells within its
    tolerance: of the attack, of the constant that finds most, and of imputation, None without known rows.
    ``stderr`` is the standard error of ``mse`` over rows, of these models, ``column_stderr`` that of columns.
    ``categories``: of each column of categories the shares of right ones, of attack and best blind guess.
    """

    attack: str
    kind: str
    models: int
    rows: int
    mse: float
    low: float
    high: float
    columns: tuple[float, ...]
    column_blind: tuple[float, ...]
    leak: float
    column: str
    alike: float
    right: tuple[float | None, ...]
    blind_right: tuple[float | None, ...]
    conditional_entropies: tuple[float | None, ...]
    found: tuple[float, ...]
    blind_found: tuple[float, ...]
    imputed_found: tuple[float | None, ...]
    stderr: float
    column_stderr: tuple[float, ...]
    phase: str = Phase.PREDICT
    released: str = ""
    closed: float | None = None
    unclipped: float | None = None
    disagreement: float | None = None
    categories: Mapping[str, tuple[float, float]] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class ModelErrors:
    """One attack on one model: squared errors (n, d) of answers moved into the box, and the mean of those of
    the answers as they are; by column (d,) errors of the best blind guess, shares of right values of attack
    and blind guess, and bits left: NaN without an alphabet; ``within`` (3, d) are the shares of attack, best
    constant and imputation within the tolerance, NaN without known rows; ``wrong``: see :func:`wrong_of`.
    """

    square: Array
    unclipped: float
    blind: Array
    right: Array
    blind_right: Array
    left: Array
    within: Array
    wrong: Array

    @classmethod
    def of(
        cls, subject: AuditSubject, answer: Answer, learnt: Mapping[str, Array], tolerance: Tolerance
    ) -> ModelErrors:
        """Of an ``answer``, beside blind guesses of its rows, those ``learnt`` from known rows (n, d) too."""
        x, values = subject.x[answer.rows], answer.inside
        right, blind_right, left = np.full((3, x.shape[1]), np.nan)
        for j, letters in subject.few.items():
            right[j] = _right(letters, values[:, j], x[:, j])
            imputed = [_right(letters, guess[:, j], x[:, j]) for guess in learnt.values()]
            blind_right[j] = max(most_frequent(x[:, j]), *imputed, 0.0)
            left[j] = conditional_entropy(x[:, j], values[:, j])
        unclipped = float(((answer.values - x) ** 2).mean())
        imputed_values = next(iter(learnt.values()), np.full_like(x, np.nan))
        guesses = (values, tolerance.constants(x), imputed_values)
        within = np.array([tolerance.found(guess, x).mean(axis=0) for guess in guesses])
        within[2] = within[2] if learnt else np.nan
        return cls(
            square=(values - x) ** 2,
            unclipped=unclipped,
            blind=column_blind(x, learnt),
            right=right,
            blind_right=blind_right,
            left=left,
            within=within,
            wrong=wrong_of(subject, answer, learnt),
        )


def _right(letters: Array, values: Array, x: Array) -> float:
    """The share of ``x`` (n,) that the nearest of ``letters`` to ``values`` (n,) are."""
    return float((nearest_letters(letters, values) == x).mean())


def wrong_of(subject: AuditSubject, answer: Answer, learnt: Mapping[str, Array]) -> Array:
    """What an ``answer``, and the best blind guess of its rows, get wrong of each whole column (2, w): the
    mean squared error, of categories the share of rows in which another one is the largest.
    """
    x = subject.x[answer.rows]
    errors = np.stack([((answer.inside - x) ** 2).mean(axis=0), column_blind(x, learnt)])
    wrong = [
        errors[:, places[0]] if len(places) == 1 else _wrong_categories(places, x, answer.values, learnt)
        for _, places in subject.whole
    ]
    return np.stack(wrong, axis=1)


def _wrong_categories(
    places: Sequence[int], x: Array, values: Array, learnt: Mapping[str, Array]
) -> tuple[float, float]:
    truth, *named = (category(of, places) for of in (x, values, *learnt.values()))
    right, *imputed = (float((those == truth).mean()) for those in named)
    return 1 - right, 1 - max(most_frequent(truth), *imputed, 0.0)


def column_blind(x: Array, learnt: Mapping[str, Array]) -> Array:
    """The error (d,) of the best blind guess for each column of ``x`` (n, d), those ``learnt`` from known
    rows (n, d) among them.
    """
    guesses = (0.0, 0.5, x[0], x.mean(axis=0), *learnt.values())  # x[0]: a constant one, without rounding
    least: Array = np.min([((x - guess) ** 2).mean(axis=0) for guess in guesses], axis=0)
    return least


def summary(
    attack: str,
    kind: str,
    found: Sequence[ModelErrors],
    subject: AuditSubject,
    closed: Sequence[float] | None = None,
    *,
    phase: str = Phase.PREDICT,
    released: str = "",
) -> AttackOutcome:
    """One attack on columns of ``subject`` over models, each with its ``closed`` form, if it has one."""
    mse = np.array([f.square.mean() for f in found])
    if len(mse) > 1:
        low, high = np.quantile(mse, [0.05, 0.95])
    else:
        per_row = found[0].square.mean(axis=1)
        half = 1.96 * per_row.std(ddof=min(1, len(per_row) - 1)) / np.sqrt(len(per_row))
        low, high = max(mse[0] - half, 0.0), mse[0] + half
    within = np.mean([f.within for f in found], axis=0)
    errors, blind = np.array([f.square.mean(axis=0) for f in found]), np.array([f.blind for f in found])
    wrong = np.stack([f.wrong for f in found], axis=1)
    leak, column, alike = worst_column(shares(*wrong))
    return AttackOutcome(
        attack=attack,
        kind=kind,
        models=len(mse),
        rows=len(found[0].square),
        mse=float(mse.mean()),
        low=float(low),
        high=float(high),
        columns=tuple(errors.mean(axis=0).tolist()),
        column_blind=tuple(blind.mean(axis=0).tolist()),
        leak=leak,
        column=subject.whole[column][0],
        alike=alike,
        right=_known(np.mean([f.right for f in found], axis=0)),
        blind_right=_known(np.mean([f.blind_right for f in found], axis=0)),
        conditional_entropies=_known(np.mean([f.left for f in found], axis=0)),
        found=tuple(within[0].tolist()),
        blind_found=tuple(within[1].tolist()),
        imputed_found=_known(within[2]),
        stderr=float(np.mean([_stderr(f.square.mean(axis=1)) for f in found])),  # of a mean at most that
        column_stderr=tuple(np.mean([_stderr(f.square) for f in found], axis=0).tolist()),
        phase=phase,
        released=released,
        categories=_categories(subject, 1 - wrong.mean(axis=1)),
        **_beside_theory(found, closed),
    )


def _beside_theory(found: Sequence[ModelErrors], closed: Sequence[float] | None) -> Document:
    """The mean ``closed`` form of an attack that has one, its error unclipped, and how far both disagree."""
    if closed is None:
        return {}
    unclipped = np.array([f.unclipped for f in found])
    away = np.abs(unclipped - closed) / np.maximum(closed, 1e-12)
    means = {"closed": float(np.mean(closed)), "unclipped": float(unclipped.mean())}
    return {**means, "disagreement": float(away.max())}


def _categories(subject: AuditSubject, right: Array) -> dict[str, tuple[float, float]]:
    """What is ``right`` (2, w) of each column of categories."""
    places = {j: name for j, (name, of) in enumerate(subject.whole) if len(of) > 1}
    return {name: (float(right[0, j]), float(right[1, j])) for j, name in places.items()}


def _stderr(values: Array) -> Array:
    """The standard error of the mean of ``values`` (n, …) over their first axis."""
    error: Array = values.std(axis=0, ddof=min(1, len(values) - 1)) / np.sqrt(len(values))
    return error


def _known(values: Array) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(v) else float(v) for v in values)


def worst_column(taken: Array) -> tuple[float, int, float]:
    """What one model gives away of its worst column, from the shares ``taken`` (m, d) of m models: the 95 %
    quantile over models, for a mean would hide that each gives away another column; the column that is the
    worst one most often, and in which share of models.
    """
    worst = taken.argmax(axis=1)
    times = np.bincount(worst, minlength=taken.shape[1])
    column = int(times.argmax())
    return float(np.quantile(taken.max(axis=1), _QUANTILE)), column, float(times[column] / len(taken))


def shares(errors: Array, blind: Array) -> Array:
    """Of the blind guess's error of each column (…, d) the share that ``errors`` (…, d) leave out: 1 is
    exact, 0 no better; 0 of a column that never varies.
    """
    taken: Array = 1 - np.divide(errors, blind, out=np.ones_like(errors), where=blind > 0)
    return np.maximum(taken, 0.0)


def by_column(reached: Sequence[AttackOutcome], subject: AuditSubject) -> list[Finding]:
    """Each whole column under the attack that takes most of it, of two alike that which errs less; the most
    exposed first.
    """
    found = [[_finding(r, j, len(reached), subject) for r in reached] for j in range(len(subject.whole))]
    return sorted((max(of, key=_most) for of in found), key=_most, reverse=True)


def _most(finding: Finding) -> tuple[bool, float, float]:
    """Found ones first, then by what is taken, then by the error."""
    error = -finding.value if finding.quantity is Quantity.ERROR else finding.value
    return finding.state is State.FOUND, round(finding.share, 9), error


def _finding(by: AttackOutcome, place: int, tries: int, subject: AuditSubject) -> Finding:
    name, (j, *_) = subject.whole[place]
    right, guessed = by.categories.get(name, (by.right[j], by.blind_right[j]))
    if right is not None and guessed is not None:
        low, high = exact(right, by.rows)
        figures: Facts = {"value": right, "low": low, "high": high, "blind": guessed}
    else:
        unit = 1.0 if subject.units is None else float(subject.units[j])
        mse, half = by.columns[j], half_width(by.column_stderr[j])
        squares = (mse, max(0.0, mse - half), mse + half, by.column_blind[j])
        figures = dict(zip(("value", "low", "high", "blind"), (unit * s**0.5 for s in squares), strict=True))
    return Finding(
        quantity=Quantity.ERROR if right is None else Quantity.RIGHT,
        subject=name,
        attack=by.attack,
        target=subject.name,
        scored_set=by.phase,
        rows=by.rows,
        **figures,
        tries=tries,
        unit=subject.units is not None,
        varies=subject.varies[place],
        deciding=subject.deciding[place],
        released=by.released,
    )


def columns_json(findings: Sequence[Finding]) -> list[Document]:
    """What is found of each column, under stable keys, and in words."""
    return [
        {
            **{"column": f.subject, "attack": f.attack, "error": f.value, "blind": f.blind},
            **{"right": f.is_share, "phase": f.scored_set, "released": f.released, "share": f.share},
            **{"found": words.reached(f), "guessed": words.guessed(f), "words": words.column(f)},
            "finding": f.json,
        }
        for f in findings
    ]
