"""A party's part of a model, whatever the family: what it sends, how it learns, what it keeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeAlias, runtime_checkable

from vflens.models.settings import Training
from vflens.numerics.optimizer import Optimizer, Zeros
from vflens.randomness import Key
from vflens.types import Array, ColumnInfo, Exchange

if TYPE_CHECKING:
    from torch import Tensor
    from torch.nn import Module

#: Takes the optimiser step of one gradient, once, whatever was computed since.
Learn: TypeAlias = Callable[[], None]
#: A party's defences of models around a new module.
Wrap: TypeAlias = Callable[["Module"], "Module"]
#: The terms that a party's defences add to a batch's loss, of its module, h and what h must not reveal; see
#: ``Defense.penalty``.
Penalty: TypeAlias = Callable[["Module", "Tensor", "Tensor"], "Tensor"]
#: What takes the place of the agreed optimiser, see ``OptimizingAttack.optimizer``.
Optimize: TypeAlias = Callable[[Optimizer, int, Zeros], Optimizer]


def plain(module: Module) -> Module:
    """No defence around the module."""
    return module


def as_agreed(optimizer: Optimizer, size: int, zeros: Zeros) -> Optimizer:
    """The optimiser of a party that follows the protocol."""
    return optimizer


class Keys(NamedTuple):
    """What a part draws from: ``draws`` for itself, ``rekeys`` for the defences around its module.

    From them follow neither its party's secret nor other draws of the party.
    """

    draws: Key
    rekeys: Key

    @classmethod
    def under(cls, secret: bytes) -> Keys:
        """The keys of the part of a party with ``secret``."""
        return cls(Key(secret, "torch"), Key(secret, "rekey"))


@dataclass(frozen=True)
class Site:
    """What a family builds one party's part from.

    ``features`` is the number of its inputs, which defences made of its ``columns``. ``received`` is the
    width of what arrives at the active party, from ``peers``: each passive party's columns, by name. One
    passive party ``holds_bias``. What a part draws follows from ``keys``; ``device`` is "cpu" or "cuda". Its
    defences ``wrap`` its module and add a ``penalty``; of a party with a whole model they wrap its bottom
    model (``wraps_bottom``). ``optimize`` replaces the optimiser of a malicious passive party.
    """

    party: str
    columns: Sequence[ColumnInfo]
    features: int
    classes: int
    training: Training
    keys: Keys
    wrap: Wrap
    device: str = "cpu"
    received: int = 0
    peers: Sequence[Sequence[ColumnInfo]] = ()
    holds_bias: bool = False
    penalty: Penalty | None = None
    wraps_bottom: bool = False
    optimize: Optimize = as_agreed


class LossGradient(NamedTuple):
    """What the active party's part makes of a batch of n rows.

    ``loss`` is the mean loss, ``gradient`` (n, width) its gradient in what arrived, which leaves for the
    passive parties, and ``learn`` takes the part's own step.
    """

    loss: float
    gradient: Array
    learn: Learn


class Part(Protocol):
    """What both kinds of data party hold of a model."""

    def forward(self, x: Array, exchange: Exchange) -> Array:
        """What leaves for the aggregator of the rows ``x`` (n, d): (n, width), width 0 for nothing."""

    def parameters(self) -> dict[str, Array]:
        """Copies of the parameters by name, as a disclosure grants them."""

    def state(self) -> dict[str, Array]:
        """All that training changed, for :meth:`load`."""

    def load(self, state: Mapping[str, Array]) -> None:
        """Take up :meth:`state`.

        Raises:
            StorageError: it is the state of a part of another size or architecture.
        """


class PassivePart(Part, Protocol):
    """A passive party's part: it learns from the gradient in what it sent."""

    def learn(self, x: Array, gradient: Array, exchange: Exchange) -> None:
        """One optimiser step from the gradient (n, width) of the mean loss of the batch ``x`` (n, d)."""


class ActivePart(Part, Protocol):
    """The active party's part: it has the loss."""

    def loss_gradient(self, received: Array, x: Array, y: Array, exchange: Exchange) -> LossGradient:
        """The loss of a batch against soft labels ``y`` (n, k); its gradient in ``received`` (n, width).

        ``x`` (n, d) are the party's own inputs of the same rows. Nothing is learned before ``learn``.
        """

    def log_scores(self, received: Array, x: Array, exchange: Exchange) -> Array:
        """The scores float64 (n, k) from what arrived (n, width) and the own inputs (n, d)."""


@runtime_checkable
class Taking(Protocol):
    """A part that can begin anew from given parameters, as in each round of a horizontal run."""

    def take(self, parameters: Mapping[str, Array]) -> None:
        """Set these of its :meth:`Part.parameters` by name, the others stay; its optimiser begins anew."""


@runtime_checkable
class Showing(Protocol):
    """A part of a whole model whose owner may grant what it computes of single rows.

    It computes as in ``exchange``, of training too, with draws of each row's own. But a batch norm has its
    running moments: those of a batch belong to no single row.
    """

    def embeddings(self, x: Array, exchange: Exchange) -> Array:
        """The own embedding (n, w) of the rows ``x`` (n, d)."""

    def row_gradients(self, received: Array, x: Array, y: Array, exchange: Exchange) -> dict[str, Array]:
        """The gradient (n, …) by name of each row's own loss, without the penalty's; arguments as
        :meth:`ActivePart.loss_gradient`.
        """


@runtime_checkable
class Predicting(Protocol):
    """An active party's part that can show its own attacks the network that gives the predictions."""

    def predicting(self, exchange: Exchange) -> dict[str, Array]:
        """Its parameters as they act in the predictions of ``exchange``, by name; empty if no registered
        network acts so.
        """


@runtime_checkable
class Copied(Protocol):
    """A passive party's part whose module its own attacks may learn on with."""

    def copied(self, exchange: Exchange) -> Module:
        """A copy of the module (n, d) → (n, width) behind its defences, as it acts in ``exchange``."""
