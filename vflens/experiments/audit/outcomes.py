"""What one attack found of the party's rows, over simulated models: errors, right values, bits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vflens.experiments.audit.bench import Answer
from vflens.experiments.audit.subject import AuditSubject
from vflens.experiments.results.own_units import OwnError
from vflens.numerics.entropy import conditional_entropy, nearest_letters
from vflens.score.worst import Tolerance
from vflens.types import Array, Document, Phase


@dataclass(frozen=True)
class AttackOutcome:
    """One attack against one kind of model, on ``rows`` each: MSE per feature of answers moved into the box.

    ``columns`` are errors by column beside those of the best blind guess at the same rows, ``column_blind``,
    of which ``leak`` is the largest share that it takes of a column; ``right`` and ``blind_right`` the shares
    of right values, ``conditional_entropies`` H(X | X̂) in bits, None without an alphabet: means over models.
    ``low`` and ``high`` are the 5 % and 95 % quantiles over models; of one model the 95 % interval over rows.
    Of an attack that Theorem 2 covers ``closed`` is the mean closed form of its error before answers are
    moved into the box, ``unclipped`` that error as measured, ``disagreement`` their largest relative
    difference over models; None of others. ``released``: what it reads of a given network or
    trees. ``phase`` "train": it read the messages of training, and estimated training rows.
    ``found``, ``blind_found`` and ``imputed_found`` are the shares of the column's cells within its
    tolerance: of the attack, of the constant that finds most, and of imputation, None without known rows.
    ``stderr`` is the standard error of ``mse`` over rows, of these models, ``column_stderr`` that of columns.
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


@dataclass(frozen=True, eq=False)
class ModelErrors:
    """One attack on one model: squared errors (n, d) of answers moved into the box, and the mean of those of
    the answers as they are; by column (d,) errors of the best blind guess, shares of right values of attack
    and blind guess, and bits left: NaN without an alphabet; ``within`` (3, d) are the shares of attack, best
    constant and imputation within the tolerance, NaN without known rows.
    """

    square: Array
    unclipped: float
    blind: Array
    right: Array
    blind_right: Array
    left: Array
    within: Array

    @classmethod
    def of(
        cls, subject: AuditSubject, answer: Answer, learnt: Mapping[str, Array], tolerance: Tolerance
    ) -> ModelErrors:
        """Of an ``answer``, beside blind guesses of its rows, those ``learnt`` from known rows (n, d) too."""
        x, values = subject.x[answer.rows], answer.inside
        finite = [j for j, column in enumerate(subject.columns) if column.alphabet]
        right, blind_right, left = np.full((3, x.shape[1]), np.nan)
        for j in finite:
            letters = np.unique(subject.x[:, j])
            right[j] = _right(letters, values[:, j], x[:, j])
            imputed = [_right(letters, guess[:, j], x[:, j]) for guess in learnt.values()]
            blind_right[j] = max(np.unique(x[:, j], return_counts=True)[1].max() / len(x), *imputed, 0.0)
            left[j] = conditional_entropy(x[:, j], values[:, j])
        unclipped = float(((answer.values - x) ** 2).mean())
        imputed_values = next(iter(learnt.values()), np.full_like(x, np.nan))
        guesses = (values, np.broadcast_to(tolerance.best_constant(x), x.shape), imputed_values)
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
        )


def _right(letters: Array, values: Array, x: Array) -> float:
    """The share of ``x`` (n,) that the nearest of ``letters`` to ``values`` (n,) are."""
    return float((nearest_letters(letters, values) == x).mean())


def column_blind(x: Array, learnt: Mapping[str, Array]) -> Array:
    """The error (d,) of the best blind guess for each column of ``x`` (n, d), those ``learnt`` from known
    rows (n, d) among them.
    """
    guesses = (0.0, 0.5, x.mean(axis=0), *learnt.values())
    least: Array = np.min([((x - guess) ** 2).mean(axis=0) for guess in guesses], axis=0)
    return least


def summary(
    attack: str,
    kind: str,
    found: Sequence[ModelErrors],
    closed: Sequence[float] | None = None,
    *,
    phase: str = Phase.PREDICT,
    released: str = "",
) -> AttackOutcome:
    """One attack over models, each with its ``closed`` form, if it has one."""
    mse = np.array([f.square.mean() for f in found])
    if len(mse) > 1:
        low, high = np.quantile(mse, [0.05, 0.95])
    else:
        per_row = found[0].square.mean(axis=1)
        half = 1.96 * per_row.std(ddof=min(1, len(per_row) - 1)) / np.sqrt(len(per_row))
        low, high = max(mse[0] - half, 0.0), mse[0] + half
    within = np.mean([f.within for f in found], axis=0)
    told: Document = {}
    if closed is not None:
        unclipped = np.array([f.unclipped for f in found])
        away = np.abs(unclipped - closed) / np.maximum(closed, 1e-12)
        told = {"closed": float(np.mean(closed)), "unclipped": float(unclipped.mean())}
        told["disagreement"] = float(away.max())
    errors, blind = (
        np.mean(of, axis=0) for of in ([f.square.mean(axis=0) for f in found], [f.blind for f in found])
    )
    return AttackOutcome(
        attack=attack,
        kind=kind,
        models=len(mse),
        rows=len(found[0].square),
        mse=float(mse.mean()),
        low=float(low),
        high=float(high),
        columns=tuple(errors.tolist()),
        column_blind=tuple(blind.tolist()),
        leak=float(shares(errors, blind).max()),
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
        **told,
    )


def _stderr(values: Array) -> Array:
    """The standard error of the mean of ``values`` (n, …) over their first axis."""
    error: Array = values.std(axis=0, ddof=min(1, len(values) - 1)) / np.sqrt(len(values))
    return error


def _known(values: Array) -> tuple[float | None, ...]:
    return tuple(None if np.isnan(v) else float(v) for v in values)


def shares(errors: Array, blind: Array) -> Array:
    """Of the blind guess's error of each column (d,) the share that ``errors`` (d,) leave out: 1 is exact, 0
    no better; 0 of a column that never varies.
    """
    taken: Array = 1 - np.divide(errors, blind, out=np.ones_like(errors), where=blind > 0)
    return np.maximum(taken, 0.0)


def exposed(reached: Sequence[AttackOutcome], names: Sequence[str], units: Sequence[float]) -> list[Document]:
    """Each column under the attack that takes most of it, the most exposed first: ``share`` of the best
    blind guess's error, both errors in the column's own unit (scaled ones without ``units``), and in words.
    """
    taken = np.array([shares(np.array(r.columns), np.array(r.column_blind)) for r in reached])
    found = [_exposed(reached[int(taken[:, j].argmax())], j, name, units) for j, name in enumerate(names)]
    return sorted(found, key=lambda f: -f["share"])


def _exposed(by: AttackOutcome, j: int, name: str, units: Sequence[float]) -> Document:
    error, blind = by.columns[j], by.column_blind[j]
    right, guessed = by.right[j], by.blind_right[j]
    if right is not None and guessed is not None and right > guessed:
        own = OwnError("", by.attack, name, right, guessed, right=True)
    else:
        unit = units[j] if units else 1.0
        own = OwnError("", by.attack, name, unit * error**0.5, unit * blind**0.5)
    share = float(shares(np.array([error]), np.array([blind]))[0])
    record = {name: value for name, value in own._asdict().items() if name != "target"}
    told = {"found": own.found, "guessed": own.guessed, "words": str(own)}
    if not units and not own.right:
        told = {"found": f"error {error:.2g}", "guessed": f"error {blind:.2g}"}
        told["words"] = f"{name} {told['found']}, a blind guess {told['guessed']}"
    return {**record, "phase": by.phase, "released": by.released, "share": share, **told}
