"""What canaries go through: a defence, a client's rounds, a function; or a file of what was released."""

import math
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from vflens.config.settings import Plugin, build_plugins
from vflens.errors import ConfigError, DataError, PluginError
from vflens.experiments.epsilon.measure import LEAST_CANARIES, Canaries, Claimed
from vflens.member.accountant import Accountant
from vflens.plugins.chain import DefenseChain
from vflens.randomness import secret_from_seed, stream
from vflens.registry import DEFENSES
from vflens.storage.files import load_arrays
from vflens.types import Array, Document, Exchange, Owner, Phase

_LABELS = ("on_labels", "on_batch_labels")
_LONGER = 10  # than a clip, which then shows where it is left out


@dataclass(frozen=True)
class CanaryPlan:
    """How many canaries of how many numbers (classes, where labels are noisy), and how long they are.

    ``left_out``: the second record of a canary is all 0 instead of the first one's negative.
    """

    canaries: int = 2000
    columns: int = 8
    length: float | None = None
    left_out: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        length = 1.0 if self.length is None else self.length
        if self.canaries < LEAST_CANARIES or self.columns < 2 or not 0 < length < math.inf:
            raise ConfigError(
                f"--canaries {self.canaries}, --columns {self.columns}, --length {length:g}: give at least "
                f"{LEAST_CANARIES} canaries of at least 2 columns and a length above 0"
            )

    def drawn(self, clip: float = 1.0, *, labels: bool = False) -> Canaries:
        """Canaries along one column each, in turn; of ``labels`` one class against the one before."""
        first = np.eye(self.columns)[np.arange(self.canaries) % self.columns]
        coins = stream(secret_from_seed(self.seed), "coins").integers(0, 2, self.canaries) == 1
        if labels:
            return Canaries(first, np.roll(first, 1, axis=1), coins)
        first = first * (self.length or _LONGER * clip)
        return Canaries(first, 0.0 * first if self.left_out else -first, coins)


def of_defense(
    name: str, settings: Document, rounds: int | None, delta: float, asked: CanaryPlan
) -> tuple[Canaries, Array, Claimed]:
    """What the defence ``name`` releases of canaries in one exchange, or of as many clients in ``rounds``.

    Raises:
        ConfigError: settings that it refuses, or it acts on nothing that canaries can be.
    """
    ((_, defense),) = named = build_plugins(DEFENSES, [Plugin(name=name, **settings)])
    wanted = (*_LABELS, "on_embedding") if rounds is None else ("on_update",)
    hook = next((hook for hook in wanted if hook in defense.hooks()), "")
    if not hook:
        raise ConfigError(f"{name!r} has none of the hooks {', '.join(wanted)}: name another defence")
    owner = Owner("canaries", n_classes=asked.columns if hook in _LABELS else 0)
    canaries = asked.drawn(float(getattr(defense, "clip", 1.0)), labels=hook in _LABELS)

    def released(rows: Array, *client: int) -> list[Array]:
        """Round by round; a client's update is one row, which it would send again and again."""
        secret = secret_from_seed(asked.seed, "epsilon", *client)
        chain, numbers = DefenseChain(lambda: owner, named, secret), np.arange(len(rows), dtype=np.int32)
        exchanges = (Exchange("epsilon", Phase.TRAIN, t, t) for t in range(rounds or 1))
        return [chain.fold(hook, rows, exchange, numbers) for exchange in exchanges]

    if rounds is None:
        (out,) = released(canaries.rows)
    else:
        out = np.array([np.concatenate(released(row[None], i)) for i, row in enumerate(canaries.rows)])
    cost = Accountant.of(DefenseChain(lambda: owner, named, b"").claims_at(hook), delta, asked.columns)
    pure = cost.epsilon is not None
    return canaries, out, Claimed(cost.total(rounds or 1), 0.0 if pure else delta, not pure and cost.counts)


def of_function(source: str, asked: CanaryPlan) -> tuple[Canaries, Array]:
    """What ``module:function`` releases of canaries: it takes rows (n, d) float64 and a Generator.

    Raises:
        ConfigError: there is no such function.
        PluginError: it failed, or returned no array.
    """
    module, _, name = source.partition(":")
    if module.endswith(".py"):
        raise ConfigError(
            f"{source!r} names a file: give its module, {Path(module).stem}:{name or 'function'}, in the "
            "folder of the file"
        )
    canaries, rng = asked.drawn(), stream(secret_from_seed(asked.seed), "epsilon")
    sys.path.insert(0, "")  # its file lies in the folder where the command runs
    try:
        function: Any = getattr(import_module(module), name, None)
    except (Exception, SystemExit) as error:  # code of others must not end the process
        raise ConfigError(f"{module!r} does not import: {type(error).__name__}: {error}") from error
    finally:
        sys.path.remove("")
    if not callable(function):
        raise ConfigError(f"{module!r} has no function {name!r}: give module:function")
    try:
        return canaries, _real(function(canaries.rows, rng))
    except (Exception, SystemExit) as error:
        raise PluginError(f"{source} failed: {type(error).__name__}: {error}") from error


def of_file(file: Path) -> tuple[Canaries, Array]:
    """The canaries ``first``, ``second`` and ``chosen`` in an npz ``file``, and what was ``released``.

    Raises:
        StorageError: it cannot be read.
        DataError: it lacks one of them, or they do not fit together.
    """
    found = load_arrays(file, remedy="give an npz with first, second, chosen and released")
    try:
        first, second, released = (_real(found[k]) for k in ("first", "second", "released"))
        chosen = found["chosen"]
        shapes = (second.shape, chosen.shape, chosen.dtype.kind)
        if first.ndim != 2 or shapes != (first.shape, first.shape[:1], "b"):
            raise ValueError
    except (KeyError, ValueError, TypeError):
        raise DataError(
            f"{file}: give numbers first and second (n, d), true or false as chosen (n,), and released"
        ) from None
    return Canaries(first, second, chosen), released


def _real(values: Any) -> Array:
    """``values`` as float64.

    Raises:
        TypeError: they are complex: half of a release would be lost.
    """
    if np.iscomplexobj(values):
        raise TypeError("complex numbers: return real and imaginary parts as columns")
    return np.asarray(values, np.float64)
