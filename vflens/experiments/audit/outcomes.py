"""What one attack found of the party's rows, over simulated models: errors, right values, bits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field

import numpy as np

from vflens.experiments.audit.bench import Answer
from vflens.experiments.audit.subject import AuditSubject, category
from vflens.experiments.outcome import words
from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import Finding, Findings, Quantity
from vflens.numerics.entropy import conditional_entropy, nearest_letters
from vflens.numerics.measures.advantage import exact
from vflens.numerics.measures.intervals import half_width
from vflens.score.worst import Tolerance, most_frequent
from vflens.storage.json_file import Rows, Share, Size, Word
from vflens.types import Array, Document, Facts, Phase

_QUANTILE = 0.95  # of models: what is decided on holds in 19 of 20


@dataclass(frozen=True, kw_only=True)
class Paths:
    """What path restriction leaves: the mean ``widths`` of intervals by column, as shares of its range; the
    shares of right branches, None if no tree splits an unknown column, of rows that one path is left to, and
    of rows whose search stopped early.
    """

    widths: tuple[float, ...]
    right_branches: float | None
    determined: float
    unfinished: float


@dataclass(frozen=True, kw_only=True)
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
    Of a given model ``paths`` or ``residual``, what the attack says of itself.
    What has a default is not read from a file.
    """

    attack: Word
    kind: Word
    models: int = 1
    rows: Rows
    mse: Size
    low: float = 0.0
    high: float = 0.0
    columns: tuple[Size, ...]
    column_blind: tuple[Size, ...]
    leak: float = 0.0
    column: str = ""
    alike: float = 1.0
    right: tuple[float | None, ...] = ()
    blind_right: tuple[float | None, ...] = ()
    conditional_entropies: tuple[float | None, ...] = ()
    found: tuple[Share, ...]
    blind_found: tuple[Share, ...]
    imputed_found: tuple[Share | None, ...]
    stderr: Size
    column_stderr: tuple[Size, ...]
    phase: Phase
    released: str
    closed: float | None = None
    unclipped: float | None = None
    disagreement: float | None = None
    categories: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    paths: Paths | None = None
    residual: float | None = None

    @property
    def by_column(self) -> dict[str, Sized]:
        """Its figures that have one for each column."""
        names = ("columns", "column_blind", "column_stderr", "found", "blind_found", "imputed_found")
        return {name: getattr(self, name) for name in names}

    @property
    def json(self) -> Document:
        """It under stable keys."""
        own = {"paths", *(() if self.residual is not None else ("residual",))}
        figures = {name: value for name, value in vars(self).items() if name not in own}
        return {**figures, **vars(self.paths)} if self.paths else figures


@dataclass(frozen=True, eq=False)
class ModelErrors:
    """One attack on one model: squared errors (n, d) of answers moved into the box, and the mean of those of
    the answers as they are, ``closed`` its closed form, if it has one; ``wrong``: see :func:`wrong_of`.

    ``by_column`` are the figures (d,) of :class:`AttackOutcome`, NaN where they are None.
    """

    square: Array
    unclipped: float
    wrong: Array
    by_column: Mapping[str, Array]
    closed: float | None = None

    @classmethod
    def of(
        cls, subject: AuditSubject, answer: Answer, learnt: Mapping[str, Array], tolerance: Tolerance
    ) -> ModelErrors:
        """The errors of an ``answer``, beside blind guesses of its rows, also those ``learnt`` (n, d)."""
        x, values = subject.x[answer.rows], answer.inside
        square, (right, blind, left, none) = (values - x) ** 2, np.full((4, x.shape[1]), np.nan)
        for j, letters in subject.few.items():
            imputed = [_right(letters, guess[:, j], x[:, j]) for guess in learnt.values()]
            right[j] = _right(letters, values[:, j], x[:, j])
            blind[j] = max(most_frequent(x[:, j]), *imputed, 0.0)
            left[j] = conditional_entropy(x[:, j], values[:, j])
        guesses = values, tolerance.constants(x), *learnt.values()
        within, blind_within, *imputed_within = (tolerance.found(g, x).mean(axis=0) for g in guesses)
        by_column = {
            **{"columns": square.mean(axis=0), "column_stderr": _stderr(square)},
            **{"column_blind": column_blind(x, learnt), "right": right, "blind_right": blind},
            **{"conditional_entropies": left, "found": within, "blind_found": blind_within},
            "imputed_found": next(iter(imputed_within), none),
        }
        unclipped = float(((answer.values - x) ** 2).mean())
        return cls(square, unclipped, wrong_of(subject, answer, learnt), by_column)


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
    *,
    phase: Phase = Phase.PREDICT,
    released: str = "",
) -> AttackOutcome:
    """One attack on columns of ``subject`` over models."""
    mse = np.array([f.square.mean() for f in found])
    if len(mse) > 1:
        low, high = np.quantile(mse, [0.05, 0.95])
    else:
        per_row = found[0].square.mean(axis=1)
        half = 1.96 * per_row.std(ddof=min(1, len(per_row) - 1)) / np.sqrt(len(per_row))
        low, high = max(mse[0] - half, 0.0), mse[0] + half
    wrong = np.stack([f.wrong for f in found], axis=1)
    leak, column, alike = worst_column(shares(*wrong))
    means: Document = {
        name: _known(np.mean([f.by_column[name] for f in found], axis=0)) for name in found[0].by_column
    }
    return AttackOutcome(
        attack=attack,
        kind=kind,
        models=len(mse),
        rows=len(found[0].square),
        mse=float(mse.mean()),
        low=float(low),
        high=float(high),
        leak=leak,
        column=subject.whole[column][0],
        alike=alike,
        stderr=float(np.mean([_stderr(f.square.mean(axis=1)) for f in found])),  # of a mean at most that
        phase=phase,
        released=released,
        categories=_categories(subject, 1 - wrong.mean(axis=1)),
        **means,
        **_beside_theory(found),
    )


def _beside_theory(found: Sequence[ModelErrors]) -> Document:
    """The mean closed form of an attack that has one, its error unclipped, and how far both disagree."""
    closed = np.array([f.closed for f in found if f.closed is not None])
    if not len(closed):
        return {}
    unclipped = np.array([f.unclipped for f in found])
    away = float((np.abs(unclipped - closed) / np.maximum(closed, 1e-12)).max())
    return {"closed": float(closed.mean()), "unclipped": float(unclipped.mean()), "disagreement": away}


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
    """The share of the blind guess's error of each column (…, d) that ``errors`` (…, d) leave out: 1 is
    exact, 0 no better; 0 of a column that never varies.
    """
    taken: Array = 1 - np.divide(errors, blind, out=np.ones_like(errors), where=blind > 0)
    return np.maximum(taken, 0.0)


def by_column(
    reached: Sequence[AttackOutcome], subject: AuditSubject, failed: Iterable[str] = (), tries: int = 0
) -> tuple[Finding, ...]:
    """Each whole column under its worst attack, as :meth:`Findings.best` has it while some ``failed``; the
    most exposed first. ``tries`` attacks were tried, those ``reached`` by default.
    """
    tries = tries or len(reached)
    every = (_finding(r, j, tries, subject) for j in range(len(subject.whole)) for r in reached)
    return tuple(sorted(Findings(found=tuple(every), failed=tuple(failed)).best(), key=_most, reverse=True))


def _most(finding: Finding) -> tuple[bool, float, float]:
    """Found ones first, then by what is taken, then by the error; of exact ones rounding decides nothing."""
    error = -finding.value if finding.quantity is Quantity.ERROR else finding.value
    error = 0.0 if finding.is_exact else error
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
        there=subject.table_rows,
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
