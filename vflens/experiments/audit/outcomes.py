"""What one attack found of the party's rows, over simulated models: errors, right values, bits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from vflens.experiments.audit.subject import AuditSubject
from vflens.experiments.results.own_units import OwnError
from vflens.numerics.entropy import conditional_entropy, nearest_letters
from vflens.types import Array, Document, Phase


@dataclass(frozen=True)
class AttackOutcome:
    """One attack against one kind of model, on ``rows`` each: MSE per feature.

    ``columns`` are errors by column beside those of the best blind guess at the same rows, ``column_blind``,
    of which ``leak`` is the largest share that it takes of a column; ``right`` and ``blind_right`` the shares
    of right values, ``conditional_entropies`` H(X | X̂) in bits, None without an alphabet: means over models.
    ``low`` and ``high`` are the 5 % and 95 % quantiles over models; of one model the 95 % interval over rows.
    ``closed`` is the mean closed form of an attack that Theorem 2 covers, None of others; ``disagreement``
    the largest relative difference from it over models. ``phase`` "train": it read the messages of training,
    and estimated training rows.
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
    phase: str = Phase.PREDICT
    closed: float | None = None
    disagreement: float | None = None


@dataclass(frozen=True, eq=False)
class ModelErrors:
    """One attack on one model: squared errors (n, d); by column (d,) errors of the best blind guess, shares
    of right values of attack and blind guess, and bits left: NaN without an alphabet.
    """

    square: Array
    blind: Array
    right: Array
    blind_right: Array
    left: Array

    @classmethod
    def of(cls, subject: AuditSubject, rows: Array, values: Array) -> ModelErrors:
        """Of the estimate ``values`` (n, d) of ``rows``."""
        x = subject.x[rows]
        finite = [j for j, column in enumerate(subject.columns) if column.alphabet]
        right, blind_right, left = np.full((3, x.shape[1]), np.nan)
        for j in finite:
            letters = np.unique(subject.x[:, j])
            right[j] = (nearest_letters(letters, values[:, j]) == x[:, j]).mean()
            blind_right[j] = np.unique(x[:, j], return_counts=True)[1].max() / len(x)
            left[j] = conditional_entropy(x[:, j], values[:, j])
        return cls((values - x) ** 2, column_blind(x), right, blind_right, left)


def column_blind(x: Array) -> Array:
    """The error (d,) of the best blind guess for each column."""
    guesses = (0.0, 0.5, x.mean(axis=0))
    least: Array = np.min([((x - guess) ** 2).mean(axis=0) for guess in guesses], axis=0)
    return least


def summary(
    attack: str,
    kind: str,
    found: Sequence[ModelErrors],
    closed: Sequence[float] | None = None,
    phase: str = Phase.PREDICT,
) -> AttackOutcome:
    """One attack over models, each with its ``closed`` form, if it has one."""
    mse = np.array([f.square.mean() for f in found])
    if len(mse) > 1:
        low, high = np.quantile(mse, [0.05, 0.95])
    else:
        per_row = found[0].square.mean(axis=1)
        half = 1.96 * per_row.std(ddof=min(1, len(per_row) - 1)) / np.sqrt(len(per_row))
        low, high = max(mse[0] - half, 0.0), mse[0] + half
    told: Document = {}
    if closed is not None:
        away = np.abs(mse - closed) / np.maximum(closed, 1e-12)
        told = {"closed": float(np.mean(closed)), "disagreement": float(away.max())}
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
        phase=phase,
        **told,
    )


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
    return {**record, "phase": by.phase, "share": share, **told}
