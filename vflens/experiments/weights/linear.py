"""Logistic and softmax regressions from npz and safetensors files: the arrays ``W`` and ``bias``."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from vflens.errors import ConfigError, DataError, install_extra
from vflens.experiments.weights.numbers import checked_numbers
from vflens.experiments.weights.pickles import refuse_pickle
from vflens.models.families.linear_regression import LINEAR_REGRESSION
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION, SoftmaxRegression
from vflens.numerics.linear_system import LinearSystem
from vflens.storage.files import load_arrays
from vflens.storage.json_file import in_words
from vflens.types import Array

_WEIGHTS = ("W", "weight")  # ours, and torch's


@dataclass(frozen=True, eq=False)
class LinearModel:
    """A regression: ``weight`` float64 (k, D) of its D inputs, in their own units; k ≥ 2 classes.

    No bias: it changes no equation of an adversary who knows it. ``raw``: its outputs leave as they are, not
    through a softmax.
    """

    weight: Array
    raw: bool = False

    @property
    def classes(self) -> int:
        """The number k."""
        return len(self.weight)

    @property
    def width(self) -> int:
        """The number D of inputs."""
        return int(self.weight.shape[1])


class _RawOutputs(SoftmaxRegression):
    """A linear model of classes whose outputs leave as they are, so that each is an equation."""

    title: ClassVar[str] = "linear model without a softmax"
    closed_forms: ClassVar[bool] = False
    unused_hooks: ClassVar[frozenset[str]] = SOFTMAX_REGRESSION.unused_hooks | {"on_scores"}

    def scores(self, combined: Array) -> Array:
        """The logits (n, k)."""
        return combined

    def linear_systems(self, scores: Array, known: Array, weight: Array) -> list[tuple[Array, LinearSystem]]:
        """One equation for each logit: W x = z − known."""
        return LINEAR_REGRESSION.linear_systems(scores, known, weight)


RAW_OUTPUTS = _RawOutputs()


def of_weight(weight: Array) -> LinearModel:
    """The model of ``weight`` (k, D); one row is that of the second of two classes, as in scikit-learn."""
    return LinearModel(np.vstack([0 * weight, weight]) if len(weight) == 1 else weight)


def read_npz(file: Path) -> LinearModel:
    """The model in ``file``, written by ``numpy.savez``.

    Raises:
        DataError: it is a pickle, or an array is missing or wrong.
        StorageError: it cannot be read.
    """
    refuse_pickle(file, "weights.npz")
    return _of_arrays(file, load_arrays(file, remedy="write it with numpy.savez, without objects"))


def read_safetensors(file: Path) -> LinearModel:
    """The model in ``file``, written by safetensors.

    Raises:
        ConfigError: safetensors is not installed.
        DataError: it cannot be read, or an array is missing or wrong.
    """
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise ConfigError(f"{file} needs the package safetensors: {install_extra('weights')}") from None
    try:
        with safe_open(file, framework="np") as opened:
            arrays = {key: opened.get_tensor(key) for key in opened.keys()}  # noqa: SIM118  # it has no iterator
    except (SafetensorError, OSError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"{file} holds no readable tensors ({in_words(error)}): write it with "
            "safetensors.numpy.save_file, in float64"
        ) from error
    return _of_arrays(file, arrays)


def _of_arrays(file: Path, arrays: dict[str, Array]) -> LinearModel:
    key = next((key for key in _WEIGHTS if key in arrays), None)
    if key is None:
        held = ", ".join(sorted(arrays)[:5]) or "nothing"
        raise DataError(f"{file} lacks 'W', the weights (classes, inputs); it holds {held}: rename the array")
    weight = checked_numbers(file, key, arrays[key], 2)
    if not weight.size:
        raise DataError(f"{key!r} of {file} has shape {weight.shape}: give (classes, inputs)")
    if "bias" in arrays:
        bias = checked_numbers(file, "bias", arrays["bias"])
        if bias.shape != weight.shape[:1]:
            raise DataError(f"'bias' of {file} has shape {bias.shape}: give ({len(weight)},), one per class")
    return of_weight(weight)
