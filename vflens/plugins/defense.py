"""The base of every defence: hooks that a plug-in overrides, identity by default.

Two kinds of hooks. *Inside the owner*, nothing leaves and nothing is recorded: ``on_inputs``, ``on_labels``,
``on_batch``, ``on_batch_labels``, ``on_received``, ``on_outputs``, ``wrap_model``, ``penalty``. *At the
gate*, the value is about to leave: the release gate folds the configured defences over it once, seals it and
keeps it, so a retry is answered from the log.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict

from vflens.errors import ConfigError, PluginError
from vflens.randomness import Key, exchange_names, generator, rows_digest
from vflens.registry import DEFENSES
from vflens.types import Array, Claim, Exchange, Owner, Phase, Point

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

#: The gate hook of each point that has one; auxiliary rows and moments are granted as they are.
GATE_HOOKS: Mapping[Point, str] = {
    Point.EMBEDDING: "on_embedding",
    Point.GRADIENT: "on_gradient",
    Point.SCORES: "on_scores",
    Point.PARAMETERS: "on_parameters",
    Point.DATASET: "on_dataset",
    Point.UPDATE: "on_update",
    Point.MASKED_UPDATE: "on_update",  # before it is masked
}
_BLOCK = 64  # rows that share a stream: few enough to draw all of them for one
#: Inner hooks on the rows of one exchange. A restart repeats those of training, so their draws repeat too.
BATCH_HOOKS = ("on_batch", "on_batch_labels")
INNER_HOOKS = ("on_inputs", "on_labels", *BATCH_HOOKS, "on_received", "on_outputs", "wrap_model", "penalty")
#: When a value comes past a hook; a model comes past the others before training.
PHASES: Mapping[str, tuple[Phase, ...]] = {
    **dict.fromkeys(("on_inputs", "on_labels", "on_batch_labels"), (Phase.TRAIN,)),
    **dict.fromkeys(("on_received", "on_update"), (Phase.TRAIN,)),
    "on_batch": (Phase.TRAIN, Phase.PREDICT),
    "on_gradient": (Phase.TRAIN, Phase.DISCLOSE),
    "on_embedding": (Phase.PREDICT, Phase.TRAIN, Phase.DISCLOSE),
    **dict.fromkeys(("on_outputs", "on_scores"), (Phase.PREDICT,)),
    **dict.fromkeys(("on_parameters", "on_dataset"), (Phase.DISCLOSE,)),
}


def _unheard(score: float, alarm: bool) -> None:
    """A context that no chain made reports to nobody."""


@dataclass(frozen=True)
class Context:
    """A hook's context: its owner, the exchange, the rows (int32), its own fitted state.

    It is made under the owner's ``secret`` and keeps keys for this defence in this exchange only: from them
    follow neither the secret nor other draws of the owner.
    """

    owner: Owner
    exchange: Exchange
    rows: Array
    state: Mapping[str, Array]
    hook: str
    position: int
    secret: InitVar[bytes]
    nonce: str = ""  # of the party's start (:mod:`vflens.member.start_nonce`)
    common: InitVar[bytes] = b""  # the secret that the data parties share; empty at a coordinator
    #: In ``on_update`` what this defence kept of the round before, in ``on_received`` of the step before;
    #: what it holds afterwards is kept.
    memory: dict[str, Array] = field(default_factory=dict)
    report: Callable[[float, bool], None] = field(default=_unheard, repr=False)
    _in_exchange: Key = field(init=False, repr=False)
    _in_common: Key | None = field(init=False, repr=False)
    _in_run: Key = field(init=False, repr=False)
    _of_block: Mapping[int, bytes] = field(init=False, repr=False)  # by block of prediction rows

    def __post_init__(self, secret: bytes, common: bytes) -> None:
        names, own = exchange_names(self.exchange), (self.hook, self.position)
        keys: dict[str, object] = {
            "_in_exchange": Key(secret, "defense", *names, *own),
            "_in_common": Key(common, "common defense", *names) if common else None,
            "_in_run": Key(secret, "defense key", self.exchange.run, self.position),
            "_of_block": {},
        }
        if self.exchange.phase is Phase.PREDICT:
            rows = Key(secret, "defense rows", *names[:-1])
            blocks = set((self.rows // _BLOCK).tolist())
            keys["_of_block"] = {number: rows.derive(number, *own, *self._start) for number in blocks}
        for name, key in keys.items():
            object.__setattr__(self, name, key)  # the dataclass is frozen

    def stream(self, name: str = "") -> np.random.Generator:
        """The generator for this hook of this defence in this exchange; ``name`` tells several apart.

        What leaves in training has its rows in the key: the same noise on other rows could be subtracted. The
        key of every release holds the nonce of the party's start, and so does that of a batch, from which
        releases follow.
        """
        names: tuple[str, ...] = (name,)
        if self.hook not in INNER_HOOKS or self.hook in BATCH_HOOKS:
            if self.exchange.phase is Phase.TRAIN:
                names += (rows_digest(self.rows),)
            names += self._start
        return self._in_exchange.stream(*names)

    def common_stream(self, name: str) -> np.random.Generator:
        """The generator for ``name`` in this exchange, the same at every data party; the coordinator lacks
        its key.

        Raises:
            PluginError: at a coordinator.
        """
        if self._in_common is None:
            raise PluginError(
                f"{self.hook} at {self.owner.name!r} draws what the data parties share: let it act there"
            )
        return self._in_common.stream(name)

    def key(self, *names: str) -> bytes:
        """A key of 32 bytes for ``names``, at least one: the same in all hooks and exchanges of a run.

        Draws under it must be for one value only, or their difference shows what they hide: put a digest of
        the value among ``names``.
        """
        return self._in_run.derive(*names)

    def suspect(self, score: float, *, alarm: bool) -> None:
        """Record, in ``on_received``, a detector's ``score`` of this exchange, and its ``alarm``: the party
        logs it, and reports show it. An alarm changes nothing else.
        """
        self.report(score, alarm)

    def draw(self, sample: Callable[[np.random.Generator, int], Array]) -> Array:
        """Noise (n, …) for the rows of this exchange, where ``sample(generator, m)`` gives that of m rows.

        A prediction row keeps its noise within run, start and model version, in every request and after every
        crash: repeated requests cannot average it away. In other phases it is drawn per exchange (and in
        training for these rows).
        """
        if self.exchange.phase is not Phase.PREDICT or not len(self.rows):
            return sample(self.stream(), len(self.rows))
        blocks, places = np.divmod(self.rows, _BLOCK)
        numbers, which = np.unique(blocks, return_inverse=True)
        drawn = np.concatenate([sample(generator(self._of_block[int(n)]), _BLOCK) for n in numbers])
        found: Array = drawn[which * _BLOCK + places]
        return found

    @property
    def _start(self) -> tuple[str, ...]:
        return (self.nonce,) if self.nonce else ()


class Defense(BaseModel):
    """One defence: frozen hyper-parameters as fields, hooks as methods; override only what it changes.

    A hook receives and returns arrays with a leading row axis of the same length, float64 (only
    ``wrap_model`` and ``penalty`` take a model), and never writes into its argument. Noise of rows comes from
    ``ctx.draw(lambda rng, n: …)``, any other draw from ``ctx.stream()``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: It changes the one weight matrix of softmax regression, which a split network does not have.
    needs_weight: ClassVar[bool] = False
    #: At a coordinator: ``fit`` reads the passive parties' parameters, which they must disclose to it.
    needs_parameters: ClassVar[bool] = False
    #: It draws with ``ctx.common_stream``: every data party must have it, with the same settings.
    together: ClassVar[bool] = False
    #: It changes what a bottom model gives, and learns nothing itself: a bottom model that is averaged may
    #: have it, a top model has no use for it.
    bottom_only: ClassVar[bool] = False
    #: It puts one row into several, or its penalty does: no ε per row can be stated of what comes behind it.
    mixes_rows: ClassVar[bool] = False
    #: Why it claims nothing, where ``claim`` is not overridden: no number in it that a test could hold it to.
    unclaimed: ClassVar[str] = ""
    #: Settings over its defaults with which ``vflens audit`` tries it, from weak to strong.
    strengths: ClassVar[tuple[Mapping[str, Any], ...]] = ({},)

    def check(self, party: str, n_classes: int) -> None:
        """Refuse, before a run, settings that do not fit this party's number of classes (0: it has no
        labels).

        Raises:
            ConfigError: naming the setting.
        """

    def fit(self, owner: Owner, rng: np.random.Generator) -> Mapping[str, Array]:
        """State computed once, before the first hook fires; it stays with the owner."""
        return {}

    def on_inputs(self, x: Array, ctx: Context) -> Array:
        """The model's inputs (n, d), before the bottom model."""
        return x

    def on_labels(self, y: Array, ctx: Context) -> Array:
        """Soft labels (n, k)."""
        return y

    def on_batch(self, x: Array, ctx: Context) -> Array:
        """The model's inputs (n, d) in one exchange, of training and of prediction (``ctx.exchange.phase``).

        A training exchange computed again, after a restart, draws the same.
        """
        return x

    def on_batch_labels(self, y: Array, ctx: Context) -> Array:
        """Soft labels (n, k) of one training exchange; loss, gradient and the own step follow from them."""
        return y

    def on_received(self, g: Array, ctx: Context) -> Array:
        """The gradient (n, w) that arrived for the rows of one training exchange, from which the bottom model
        learns. What a later step needs is kept in ``ctx.memory``.
        """
        return g

    def on_outputs(self, z: Array, ctx: Context) -> Array:
        """What the owner reads of its own predictions (n, k)."""
        return z

    def wrap_model(self, m: Module, ctx: Context) -> Module:
        """A new, untrained model of this party in torch: a passive party's bottom, the active party's top.

        A submodule that has ``rekey(rng)`` gets a generator of its own before every exchange.
        """
        return m

    def penalty(self, m: Module, h: Tensor, private: Tensor, ctx: Context) -> Tensor:
        """A term (a scalar, differentiable) that is added to the mean loss of a training batch.

        ``m`` is the model that :meth:`wrap_model` gave. ``h`` (n, w) is its embedding at a passive party,
        and what arrived at the active party. ``private`` are the party's inputs (n, d), at the active party
        its soft labels (n, k). ``ctx`` is that of the run's start.
        """
        return h.new_zeros(())

    def on_embedding(self, h: Array, ctx: Context) -> Array:
        """An embedding, or partial or summed logits (n, k)."""
        return h

    def on_gradient(self, g: Array, ctx: Context) -> Array:
        """The gradient of the batch's loss in the logits or embedding (n, k)."""
        return g

    def on_update(self, u: Array, ctx: Context) -> Array:
        """A client's update of one round, all its numbers as one row (1, m)."""
        return u

    def on_scores(self, log_c: Array, ctx: Context) -> Array:
        """Log-probabilities (n, k): ties and arg-max survive saturation. −inf is legal, NaN is not."""
        return log_c

    def on_parameters(self, w: Mapping[str, Array], ctx: Context) -> Mapping[str, Array] | None:
        """Disclosed parameters by name; None withholds them."""
        return w

    def on_dataset(self, x: Array, ctx: Context) -> Array:
        """A released table (n, d)."""
        return x

    def claim(self, state: Mapping[str, Array]) -> Claim:
        """Its guarantees; by default none."""
        return Claim()

    @property
    def needs_labels(self) -> bool:
        """Whether it reads labels of its owner, who then must hold some."""
        return False

    @classmethod
    def hooks(cls) -> frozenset[str]:
        """The names of the hooks that this defence overrides."""
        names = (*INNER_HOOKS, *GATE_HOOKS.values())
        return frozenset(n for n in names if getattr(cls, n) is not getattr(Defense, n))

    @classmethod
    def trains(cls) -> bool:
        """Whether it acts before or in training, so that another model comes of it."""
        return any(Phase.TRAIN in PHASES.get(hook, (Phase.TRAIN,)) for hook in cls.hooks())


NamedDefense: TypeAlias = tuple[str, Defense]  # the name is that of the registry


def installed_defense(name: str) -> type[Defense] | None:
    """The class of the defence called ``name``; None if it is not installed or needs an extra that is not."""
    try:
        found: type[Defense] = DEFENSES.get(name)
    except (ConfigError, PluginError):
        return None
    return found
