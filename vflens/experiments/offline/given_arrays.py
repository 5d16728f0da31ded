"""Attacks on the arrays of a federation that VFLens did not run: softmax regression, cut vertically.

The arrays are in the units of the federation's columns. ``bounds`` map each unknown column to [0, 1], where
attacks work: with x = low + (high − low) u the weights become W (high − low), the bias becomes bias + W low.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np

from vflens.config import Plugin, build_plugins
from vflens.errors import ConfigError, DataError, KnowledgeError, PluginError, VflensError
from vflens.experiments.offline.command import states_of
from vflens.experiments.offline.given_labels import score_labels
from vflens.experiments.offline.given_trees import TREE_ATTACKS
from vflens.experiments.offline.score_readings import fits, one_versus_rest, other_orders, unscaled
from vflens.experiments.offline.tree_recordings import numbers_of
from vflens.experiments.weights.numbers import checked_numbers, checked_shapes
from vflens.experiments.weights.pickles import refuse_pickle
from vflens.numerics.linear_system import LinearSystem
from vflens.numerics.measures.intervals import half_width
from vflens.plugins.attack import LinearAttack, no_equations
from vflens.randomness import secret_from_seed, stream
from vflens.registry import ATTACKS
from vflens.score.columns import blind_square
from vflens.score.worst import Tolerance
from vflens.storage.files import load_arrays, save_arrays
from vflens.storage.private import owner_only
from vflens.types import Array, Document, Estimate, Facts, Knowledge, Moments, Phase, RowStatus
from vflens.words import counted

#: Key → its axes: k classes, d unknown columns, p columns of the adversary, N rows.
_SEEN = {
    "W": "kd", "scores": "Nk", "bias": "k", "own": "Np", "W_own": "kp", "bounds": "d2", "mean": "d",
    "covariance": "dd",
}  # fmt: skip
_SUM_TOLERANCE = 0.05  # rounded scores of a row may miss 1 by so much
_NO_SHARES = "are no probabilities that sum to 1 by row: give softmax(logits)"
_TARGET = "unknown columns"
_AS_USUAL: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Seen:
    """What an adversary has, float64: ``weight`` (k, d) of columns in [0, 1], its own part of the logits
    ``known`` (N, k), ``scores`` (N, k), ``bounds`` (d, 2), and moments of the columns in [0, 1]. ``read_as``
    says what the scores were, where they were not these.
    """

    weight: Array
    known: Array
    scores: Array
    bounds: Array
    moments: Moments | None
    read_as: str = ""

    def systems(self, attack: LinearAttack) -> list[tuple[Array, LinearSystem]]:
        """The equations that ``attack`` reads; see :meth:`LinearAttack.systems`."""
        if Knowledge.SCORES not in attack.needs:
            return no_equations(len(self.scores), self.weight.shape[1])
        with np.errstate(divide="ignore"):  # a score of 0 gives no equation
            return LinearSystem.from_scores(np.log(self.scores), self.known, self.weight)


def attack_arrays(file: Path, name: str, out: Path, *, parameters: Facts | None = None) -> Document:
    """Run attack ``name`` on the arrays in ``file``; write the estimate to ``out`` (npz).

    Raises:
        as :func:`estimate_arrays`.
        StorageError: ``file`` cannot be read, or ``out`` not written.
    """
    found, kept = estimate_arrays(file, arrays_of(file), name, parameters or {})
    phase = Phase.TRAIN if name in TREE_ATTACKS else Phase.PREDICT
    texts = {"attack": name, "target": found.target, "scored_set": phase.value}
    with owner_only():
        named = {key: np.array(text) for key, text in texts.items()}
        save_arrays(out, {**named, **found.arrays(), **kept})
    shares = {key: float(extra.mean()) for key, extra in found.extras.items() if extra.dtype == bool}
    return {
        **texts,
        "rows": len(found.rows),
        "estimate": str(out),
        "status": states_of(found.status),
        "read_as": str(kept.get("read_as", "")),
        **shares,
    }


def estimate_arrays(
    file: Path | str, given: Mapping[str, Array], name: str, parameters: Facts
) -> tuple[Estimate, Mapping[str, Array]]:
    """What attack ``name`` makes of the arrays ``given``, and what a file of it has besides.

    Raises:
        ConfigError: an unknown attack or parameter, or an attack that reads no arrays.
        DataError: an array lacks, or is wrong; the sentence names them ``file``.
        KnowledgeError: the attack needs moments that are not given.
        PluginError: the attack fails.
    """
    if name not in TREE_ATTACKS:
        return _solved(file, given, name, parameters)
    if parameters:
        raise ConfigError(f"attack {name!r} has no parameter: leave {next(iter(parameters))!r} out")
    return TREE_ATTACKS[name](file, given)


def _solved(
    file: Path | str, given: Mapping[str, Array], name: str, parameters: Facts
) -> tuple[Estimate, Mapping[str, Array]]:
    """The estimate of a linear attack, and the bounds of its columns."""
    attack, seen = _linear(name, parameters), read_seen(file, given)
    if Knowledge.MOMENTS in attack.needs and seen.moments is None:
        raise KnowledgeError(f"attack {name!r} needs moments: add 'mean' and 'covariance' to {file}")
    rng = stream(secret_from_seed("0"), "attack", name)
    try:
        found = attack.solved(seen.systems(attack), seen.weight.shape[1], rng=rng, moments=seen.moments)
    except VflensError:
        raise
    except (Exception, SystemExit) as error:  # a plug-in must not end the process
        raise PluginError(f"attack {name!r} failed: {type(error).__name__}: {error}") from error
    status = found.status if "radius" in found.extras else _in_doubt(seen, found.status)
    kept = {"bounds": seen.bounds, "read_as": np.array(_read_as(file, seen))}
    return replace(found, target=_TARGET, status=status), kept


def _in_doubt(seen: Seen, status: Array) -> Array:
    """``status`` (N,) of an attack that does not look at the box, with the rows that have nothing in it."""
    empty = (_in_box(seen) == RowStatus.EMPTY_BOX) & np.isin(status, [RowStatus.OK, RowStatus.SATURATED])
    return np.where(empty, RowStatus.EMPTY_BOX, status)


def _in_box(seen: Seen) -> Array:
    """The status (N,) of each row, of an attack that looks at the box."""
    box = _linear("rcc2", {})
    tried = box.solved(seen.systems(box), seen.weight.shape[1], rng=stream(secret_from_seed("0"), "box"))
    return tried.status


def _read_as(file: Path | str, seen: Seen) -> str:
    """What the scores are, or may be, where few rows fit values in the box: another order of classes, or
    one-versus-rest; "" if they are what they should be.

    Raises:
        DataError: scores that do not sum to 1 fit nothing as one-versus-rest either.
    """

    def impossible(scores: Array) -> Array:
        part = replace(seen, scores=scores, known=seen.known[: len(scores)])
        return np.isin(_in_box(part), [RowStatus.EMPTY_BOX, RowStatus.INCONSISTENT])

    found = [seen.read_as] if seen.read_as else []
    if fits(impossible(seen.scores)):
        return seen.read_as
    if orders := other_orders(seen.scores, impossible):
        named = " or ".join(f"scores[:, {order}]" for order in orders)
        named += " (of one column: 1 - scores)" if seen.scores.shape[1] == 2 else ""
        found.append(f"their order of classes is not that of W: give {named}, which fits")
    elif "one-versus-rest" in seen.read_as:
        raise DataError(f"'scores' of {file} {_NO_SHARES}")
    elif one_versus_rest(seen.scores, seen.known, seen.weight):
        found.append("they are one-versus-rest, scaled to sum to 1: the equations of a softmax do not hold")
    return "; ".join(found)


def score_arrays(estimate: Path, truth: Path, tolerance: Mapping[str, float] = _AS_USUAL) -> Document:
    """The errors of ``estimate``, of :func:`attack_arrays`, against the array ``x`` (N, d) in ``truth``.

    The mean squared error of columns in [0, 1], with half its 95 % interval's width, beside the best blind
    guess: zeros, halves, random values, or the means of these rows; of each column, by its number, also the
    share within its ``tolerance``. An estimate of labels is scored by :func:`score_labels`.

    Raises:
        DataError: a file lacks an array, or one is wrong.
        StorageError: a file cannot be read.
    """
    saved = arrays_of(estimate)
    if str(saved.get("estimates", "")) == "labels":
        return score_labels(estimate, saved, truth, arrays_of(truth))
    if not {"attack", "values", "bounds"} <= saved.keys():
        raise DataError(f"{estimate} is no estimate of given arrays: write one with `vflens attack --arrays`")
    values, bounds = (checked_numbers(estimate, key, saved[key], 2) for key in ("values", "bounds"))
    x = _scaled_truth(truth, bounds, len(values))
    square, within = (values - x) ** 2, _tolerance(tolerance, bounds)
    guesses = {"zero": 0.0, "half": 0.5, "random": None, "column_means": x.mean(axis=0)}
    blind = {name: blind_square(guess, x) for name, guess in guesses.items()}
    best = min(blind, key=lambda name: float(blind[name].mean()))
    figures = {
        "mse": square.mean(axis=0),
        "blind_mse": np.min([b.mean(axis=0) for b in blind.values()], axis=0),
        "found": within.found(values, x).mean(axis=0),
        "blind_found": within.found(within.constants(x), x).mean(axis=0),
        "tolerance": within.width * (bounds[:, 1] - bounds[:, 0]),
    }
    per_row = square.mean(axis=1)
    stderr = float(per_row.std(ddof=min(1, len(x) - 1)) / np.sqrt(len(x)))
    return {
        "attack": str(saved["attack"]),
        "rows": len(x),
        "status": states_of(saved.get("status", ())),
        "read_as": str(saved.get("read_as", "")),
        "mse": float(per_row.mean()),
        "mse_stderr": stderr,
        "half_width": half_width(stderr),
        "blind_guess": best,
        "blind_mse": float(blind[best].mean()),
        "columns": {str(j): {name: float(of[j]) for name, of in figures.items()} for j in range(x.shape[1])},
    }


def _tolerance(stated: Mapping[str, float], bounds: Array) -> Tolerance:
    """The tolerances of columns by number, in their own units.

    Raises:
        ConfigError: there is no such column.
    """
    numbers = [str(j) for j in range(len(bounds))]
    if unknown := sorted(stated.keys() - set(numbers)):
        raise ConfigError(f"column {unknown[0]!r} is none of the arrays: count them from 0 to {numbers[-1]}")
    width = bounds[:, 1] - bounds[:, 0]
    return Tolerance.of(
        np.zeros((1, len(bounds))), {int(j): t / width[int(j)] for j, t in stated.items()}, {}
    )


def read_seen(file: Path | str, given: Mapping[str, Array]) -> Seen:
    """The arrays ``given``, checked against each other; a refusal names them ``file``.

    Raises:
        DataError: one is missing, unknown, or wrong.
    """
    arrays = numbers_of(file, given, _SEEN, ("W", "scores"))
    for one, other in (("own", "W_own"), ("W_own", "own"), ("covariance", "mean")):
        if one in given and other not in given:
            raise DataError(f"{file} has {one!r} without {other!r}: give both")
    arrays["scores"], read_as = unscaled(arrays["scores"])
    arrays = _two_classes(arrays) if arrays["W"].ndim == 2 and len(arrays["W"]) == 1 else arrays
    _check_shapes(file, arrays)
    scores = arrays["scores"]
    off = np.abs(scores.sum(axis=1) - 1)
    if scores.min(initial=0) < 0 or scores.max(initial=0) > 1 or off.max(initial=0) > _SUM_TOLERANCE:
        raise DataError(f"'scores' of {file} {_NO_SHARES}")
    return replace(_in_the_box(file, arrays), read_as=read_as)


def _two_classes(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """A model of one logit, as that of scikit-learn with two classes, with the first class's logit of 0."""
    scores = arrays["scores"]
    p = scores[:, None] if scores.ndim == 1 else scores
    both = np.hstack([1 - p, p]) if p.ndim == 2 and p.shape[1] == 1 else p
    own = {key: np.atleast_1d(arrays[key]) for key in ("W", "W_own", "bias") if key in arrays}
    padded = {key: np.concatenate([0 * a, a]) for key, a in own.items()}
    return {**arrays, **padded, "scores": both}


def _check_shapes(file: Path | str, arrays: Mapping[str, Array]) -> None:
    sizes = checked_shapes(file, arrays, _SEEN)
    k, n, d = (sizes[axis] for axis in "kNd")
    if not all(sizes.values()) or k < 2:
        raise DataError(
            f"{file} has {counted(k, 'class')}, {counted(n, 'row')}, {counted(d, 'unknown column')}"
        )


def _in_the_box(file: Path | str, arrays: Mapping[str, Array]) -> Seen:
    weight, scores = arrays["W"], arrays["scores"]
    bounds = arrays.get("bounds", np.tile([0.0, 1.0], (weight.shape[1], 1)))
    low, width = bounds[:, 0], bounds[:, 1] - bounds[:, 0]
    if (width <= 0).any():
        raise DataError(f"'bounds' of {file} have a row without low < high: give [low, high] of each column")
    own = arrays["own"] @ arrays["W_own"].T if "own" in arrays else 0.0
    known = np.broadcast_to(own + arrays.get("bias", 0.0) + weight @ low, scores.shape)
    moments = None
    if "mean" in arrays:
        covariance = arrays.get("covariance")
        scaled = None if covariance is None else covariance / np.outer(width, width)
        moments = Moments((arrays["mean"] - low) / width, scaled)
    return Seen(weight * width, known, scores, bounds, moments=moments)


def _scaled_truth(file: Path, bounds: Array, n: int) -> Array:
    """The true columns in [0, 1], (n, d)."""
    given = arrays_of(file)
    if "x" not in given:
        raise DataError(f"{file} lacks 'x': give the true columns, a row for each estimated one")
    x = checked_numbers(file, "x", given["x"], 2)
    if x.shape != (n, len(bounds)):
        raise DataError(
            f"'x' of {file} has shape {x.shape}, the estimate ({n}, {len(bounds)}): give its rows"
        )
    scaled: Array = (x - bounds[:, 0]) / (bounds[:, 1] - bounds[:, 0])
    if scaled.min() < -1e-9 or scaled.max() > 1 + 1e-9:
        raise DataError(
            f"'x' of {file} leaves the bounds of the attack: attack again with bounds that hold it"
        )
    return scaled.clip(0, 1)


def _linear(name: str, parameters: Facts) -> LinearAttack:
    ((_, attack),) = build_plugins(ATTACKS, [Plugin(**{"name": name, **parameters})])
    if not isinstance(attack, LinearAttack):
        raise ConfigError(
            f"attack {name!r} does not solve linear equations: with --arrays give one that does, such as "
            "half_star or rcc2"
        )
    return attack


def arrays_of(file: Path) -> dict[str, Array]:
    """The arrays of an npz file; a pickle is never opened.

    Raises:
        DataError: it is a pickle.
        StorageError: it cannot be read.
    """
    refuse_pickle(file, "seen.npz")
    return load_arrays(file, remedy="write it with numpy.savez, without objects")
