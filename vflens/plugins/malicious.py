"""Attacks that break the protocol: their party sends another gradient, or model, than is due, or learns
otherwise than was agreed.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Protocol

from vflens.models.part import ActivePart, LossGradient, Predicting
from vflens.numerics.optimizer import Optimizer, Zeros
from vflens.plugins.attack import Attack
from vflens.plugins.views.horizontal import Agreed, Parameters
from vflens.plugins.views.own_reads import SENDING
from vflens.plugins.views.vertical import AdversaryView
from vflens.randomness import Key
from vflens.types import Array, Exchange, Role


class Sender(Protocol):
    """What an attack keeps while it sends; nothing but ``learn`` changes it."""

    def gradient(self, embedding: Array, labels: Array, exchange: Exchange) -> Array:
        """What is sent as the gradient (n, w) of the mean loss in ``embedding`` (n, w), of the same dtype;
        ``labels`` (n, k) are those of its rows.
        """

    def learn(self, embedding: Array, labels: Array, exchange: Exchange) -> None:
        """Learn from ``embedding``, once for each exchange; what it draws follows from ``exchange``."""

    def state(self) -> dict[str, Array]:
        """All that ``learn`` changed, for :meth:`load` and for :meth:`AdversaryView.sending`."""

    def load(self, state: Mapping[str, Array]) -> None:
        """Take up :meth:`state`."""


class SendingAttack(Attack):
    """An attack with a sending part, in an active party whose configuration says ``malicious = true``.

    It is trained against one passive party, whose embeddings alone arrive.
    """

    @abstractmethod
    def sender(self, view: AdversaryView, key: Key) -> Sender:
        """Its sending part as training begins; its draws follow from ``key``. ``view`` has no messages yet.

        Raises:
            KnowledgeError: something undeclared or never granted was read, or another family is trained.
        """


class PlantingAttack(Attack):
    """An attack of a server whose configuration says ``malicious = true``: training starts from a model that
    is made for it.
    """

    @abstractmethod
    def planted(self, federation: Agreed, parameters: Parameters) -> dict[str, Array]:
        """What the server sends in the first round in place of the ``parameters`` by name, with the same
        names, shapes and dtypes.

        Raises:
            KnowledgeError: another model is trained.
        """


class OptimizingAttack(Attack):
    """An attack with an optimiser of its own, in a passive party whose configuration says
    ``malicious = true``. The party sends what its part gives, which learned otherwise than was agreed.
    """

    @abstractmethod
    def optimizer(self, agreed: Optimizer, size: int, zeros: Zeros) -> Optimizer:
        """What takes the steps of its party's part, of ``size`` parameters, in place of the ``agreed`` one: a
        new one, which it may use. ``zeros`` makes arrays of the part's kind.
        """


#: What a party sends that breaks the protocol, by its role.
SENT: Mapping[Role, str] = {
    Role.ACTIVE: "other gradients than those of its loss",
    Role.PASSIVE: "embeddings of a model that its attack's optimiser trains",
    Role.SERVER: "a first model that is made for its attack",
}


def breaks_protocol(attack: type[Attack]) -> bool:
    """Whether a party with such an attack breaks the protocol."""
    return issubclass(attack, SendingAttack | PlantingAttack | OptimizingAttack)


class Replaced:
    """``part``, which learns and predicts as ever; the gradient that leaves is that of ``sender``.

    The sending part learns where ``part`` does, once for each step, and its state stands in the same
    checkpoint: so a retry or a restart gives the same bits.
    """

    def __init__(self, part: ActivePart, sender: Sender) -> None:
        self._part, self._sender = part, sender

    def forward(self, x: Array, exchange: Exchange) -> Array:
        """See :meth:`vflens.models.part.Part.forward`."""
        return self._part.forward(x, exchange)

    def loss_gradient(self, received: Array, x: Array, y: Array, exchange: Exchange) -> LossGradient:
        """See :meth:`vflens.models.part.ActivePart.loss_gradient`; the gradient is the sender's."""
        honest = self._part.loss_gradient(received, x, y, exchange)

        def learn() -> None:
            honest.learn()
            self._sender.learn(received, y, exchange)

        return LossGradient(honest.loss, self._sender.gradient(received, y, exchange), learn)

    def log_scores(self, received: Array, x: Array, exchange: Exchange) -> Array:
        """See :meth:`vflens.models.part.ActivePart.log_scores`."""
        return self._part.log_scores(received, x, exchange)

    def parameters(self) -> dict[str, Array]:
        """See :meth:`vflens.models.part.Part.parameters`."""
        return self._part.parameters()

    def predicting(self, exchange: Exchange) -> dict[str, Array]:
        """See :meth:`vflens.models.part.Predicting.predicting`."""
        return self._part.predicting(exchange) if isinstance(self._part, Predicting) else {}

    def sent_by(self) -> dict[str, Array]:
        """What the sending part keeps, by name."""
        return {f"{SENDING}{name}": array for name, array in self._sender.state().items()}

    def state(self) -> dict[str, Array]:
        """See :meth:`vflens.models.part.Part.state`."""
        return {**self._part.state(), **self.sent_by()}

    def load(self, state: Mapping[str, Array]) -> None:
        """See :meth:`vflens.models.part.Part.load`."""
        self._part.load({n: a for n, a in state.items() if not n.startswith(SENDING)})
        self._sender.load({n.removeprefix(SENDING): a for n, a in state.items() if n.startswith(SENDING)})
