"""The view of a horizontal run's server: the parameters that it sent, the updates that came, and grants."""

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Protocol, Self, TypeAlias

import numpy as np

from vflens.errors import KnowledgeError
from vflens.models.family import ModelFamily
from vflens.models.settings import Horizontal, Training
from vflens.numerics.gradients.local_steps import gradient_of
from vflens.plugins.views.target import TargetView
from vflens.types import Array, ColumnInfo, Exchange, Knowledge, Moments, PartyInfo, Phase, Point, Released

Parameters: TypeAlias = Mapping[str, Array]
#: The tensors of granted candidates.
CANDIDATES = ("candidate_features", "candidate_labels")
#: What an attack may read by a grant alone: the server receives none of it in a round, but for SplitFed's
#: embeddings.
_GRANTED_ALONE = (Point.EMBEDDING, Point.GRADIENT, Point.PARAMETERS)


class Agreed(Protocol):
    """What all parties know of a run: a
    :class:`vflens.protocol.horizontal.agreement.HorizontalAgreement`, which attacks cannot reach.
    """

    @property
    def parties(self) -> Sequence[PartyInfo]:
        """The clients."""

    @property
    def columns(self) -> Sequence[ColumnInfo]:
        """Those of every client."""

    @property
    def n_classes(self) -> int:
        """The number of classes, k."""

    @property
    def model(self) -> ModelFamily:
        """What the clients train."""

    @property
    def training(self) -> Training:
        """How."""

    @property
    def horizontal(self) -> Horizontal:
        """The rounds."""

    @property
    def received_width(self) -> int:
        """Numbers per row of what the top model reads; see :class:`vflens.models.part.Site`."""

    @property
    def local_passes(self) -> int:
        """How often a client's training goes over its rows, in all rounds."""

    def steps_of(self, client: str) -> int:
        """The local steps of ``client`` in a round."""

    def round_rows(self, client: str) -> int:
        """How many different rows ``client`` trains on in a round."""

    def weights(self, participants: Collection[str]) -> Mapping[str, float]:
        """Client → the weight of its update in a round of ``participants``; they sum to 1."""

    def in_round(self, number: int) -> Self:
        """The same with the clients' rows in round ``number``."""


class ServerView(TargetView):
    """The view of the server ``party`` on the client ``target`` for ``rows``.

    Args:
        federation: the run, which all parties know.
        rows: int32; positions of the target's granted rows, or, of an attack on a round, the
            places 0, 1, … of those that the target trained on in :attr:`round`.
        number: the attacked round, None where rows were granted.
        parameters: gives the parameters ω_t that the server sent in round t by name; those after the last
            round where t is the number of rounds.
        reads: see :class:`vflens.plugins.views.target.TargetView`.
    """

    def __init__(
        self,
        *,
        federation: Agreed,
        number: int | None,
        parameters: Callable[[int], Parameters],
        **reads: Any,
    ) -> None:
        super().__init__(
            parties=federation.parties, n_classes=federation.n_classes, model=federation.model, **reads
        )
        self._federation, self._number, self._parameters = federation, number, parameters
        self.granted: set[Point] = set()  # what was read of what crosses the wire by a grant alone

    @property
    def round(self) -> int:
        """The round whose rows an attack on a round estimates.

        Raises:
            KnowledgeError: granted rows are estimated.
        """
        if self._number is None:
            raise KnowledgeError(
                "granted rows are of no round: only an attack on a round's rows has view.round"
            )
        return self._number

    @property
    def agreement(self) -> Agreed:
        """What all parties know of the run: model, training, rounds."""
        return self._federation

    def candidates(self) -> tuple[Array, Array]:
        """Rows of which some are the target's training rows: features float64 (n, d), scaled as the model's,
        and labels int64 (n,). The rows of the view are their places.

        Raises:
            KnowledgeError: none were granted, or the attack did not declare AUXILIARY.
        """
        granted = self._only(Point.AUXILIARY, self.target, CANDIDATES[0])
        features, labels = map(granted.tensor, CANDIDATES)
        return features, labels

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return self._federation.horizontal.rounds

    def widths(self) -> dict[str, int]:
        """The target's number of columns: it alone has unknown rows."""
        return {self.target: len(self._federation.columns)}

    def columns(self) -> slice:
        """All unknown columns are the target's."""
        return slice(0, len(self._federation.columns))

    def parameters(self, number: int) -> Parameters:
        """ω_t by name, which the server sent in round t = ``number``, from 0; after the last round those of
        the run.

        Raises:
            KnowledgeError: the attack did not declare PARAMETERS, there is no such round, or the transcript
                leaves out updates before it.
        """
        self._check(Knowledge.PARAMETERS)
        if not 0 <= number <= self.rounds:
            raise KnowledgeError(f"round {number}: there are parameters of rounds 0 to {self.rounds}")
        return self._parameters(number)

    def target_network(self) -> Parameters:
        """The parameters of the target's bottom model by name: those of the run, or those of its own that it
        granted.

        Raises:
            KnowledgeError: the attack did not declare PARAMETERS, or the target keeps its own.
        """
        if self._federation.horizontal.private_bottom:
            return super().target_network()
        named = self.parameters(self.rounds).items()
        return {n.removeprefix("bottom."): array for n, array in named if n.startswith("bottom.")}

    def updates(self, client: str = "") -> Iterator[tuple[Exchange, Parameters]]:
        """The updates Δ of ``client``, or of the target, by name, as they arrived, round by round.

        Raises:
            KnowledgeError: the attack did not declare GRADIENTS, or updates are masked.
        """
        sender = client or self.target
        check_unmasked(self._federation.horizontal, sender)
        return ((r.exchange, r.tensors or {}) for r in self.received(Point.UPDATE, sender))

    @property
    def steps(self) -> int:
        """How many local steps the target took in :attr:`round`."""
        return self._federation.in_round(self.round).steps_of(self.target)

    def gradient(self, number: int, *, several: bool = False) -> dict[str, Array]:
        """The gradient by name of the mean loss of the rows that the target trained on in round ``number``,
        at :meth:`parameters` of that round, float64: −Δ/η without the penalty's part.

        With ``several`` local steps it is the mean of the gradients of all, each at the parameters of its
        step, with weights that the penalty gives. It is what the target's defences left of it. Running
        moments of a batch norm are no gradients.

        Raises:
            KnowledgeError: the attack did not declare GRADIENTS and PARAMETERS, the update is not there, or
                it is no step of plain gradient descent.
        """
        steps = self._federation.in_round(number).steps_of(self.target) if several else 1
        self._check_descent(self.target, number, steps)
        found = next((delta for e, delta in self.updates() if e.round == number), None)
        if found is None:
            raise KnowledgeError(
                f"no update of {self.target!r} in round {number} reached {self.party!r}{self.sampling()}: it "
                "may have had no part in it"
            )
        return self._gradient(number, found, steps)

    def mean_gradient(self, number: int) -> tuple[dict[str, Array], dict[str, float]]:
        """The weighted mean of the :meth:`gradient` of all clients in round ``number``, which follows from
        the parameters before and after it, and the share that each row of a client has in it, by client.

        Raises:
            KnowledgeError: as :meth:`gradient`; masked updates are enough.
        """
        sent = self.received(Point.MASKED_UPDATE), self.received(Point.UPDATE)
        clients = sorted({r.sender for log in sent for r in log if r.exchange.round == number})
        for client in clients:
            self._check_descent(client, number)
        before, after = self.parameters(number), self.parameters(number + 1)
        learned = {n: after[n].astype(np.float64) - value for n, value in before.items()}
        federation = self._federation.in_round(number)
        shares = {n: weight / federation.round_rows(n) for n, weight in federation.weights(clients).items()}
        return self._gradient(number, learned), shares

    def _gradient(self, number: int, update: Parameters, steps: int = 1) -> dict[str, Array]:
        start, training = self.parameters(number), self._federation.training
        learned = {n: d.astype(np.float64) for n, d in update.items() if ".running_" not in f".{n}"}
        kept = 1 - 2 * training.learning_rate * training.l2  # of a parameter, by the penalty of a step
        share = sum(kept**step for step in range(steps)) / steps
        penalty = {
            name: 2 * training.l2 * share * start[name].astype(np.float64)
            for name in learned
            if training.penalise_bias or start[name].ndim > 1
        }
        return gradient_of(learned, training.learning_rate, steps=steps, penalty=penalty)

    def _check_descent(self, client: str, number: int, read: int = 1) -> None:
        training, steps = self._federation.training, self._federation.in_round(number).steps_of(client)
        if training.optimizer != "sgd" or steps != read:
            raise KnowledgeError(
                f"an update of {client!r} is {steps} local step(s) of {training.optimizer}, and a "
                "gradient only if it is one step of sgd (training.optimizer, horizontal.local_steps = 1)"
            )

    def batches(self) -> list[tuple[Array, Array]]:
        """The embeddings (n, w) and labels (n, k) that SplitFed sends of each batch of :attr:`round`, until
        every row came once.

        Raises:
            KnowledgeError: other methods send none; the attack did not declare EMBEDDINGS and TRAIN.
        """
        self._check(Knowledge.EMBEDDINGS)
        if not self._federation.horizontal.is_split:
            raise KnowledgeError(
                f"method = {self._federation.horizontal.method!r} sends no embeddings in a round: attack "
                "granted ones, or a run of 'splitfed'"
            )
        sent = self._select(Point.EMBEDDING, phases=self._phases & {Phase.TRAIN}, sender=self.target)
        count = math.ceil(len(self.rows) / self._federation.training.batch_size)
        found = list(islice((r for r in sent if r.exchange.round == self.round), count))
        if sum(len(r.rows) for r in found) != len(self.rows):
            raise KnowledgeError(
                f"embeddings of {self.target!r} in round {self.round} never reached {self.party!r}"
                f"{self.sampling()}"
            )
        return [(r.tensor("embedding").astype(np.float64), r.tensor("labels")) for r in found]

    def embeddings(self, rows: Array | None = None, phase: Phase = Phase.DISCLOSE) -> Array:
        """The granted embeddings (N, w) of ``rows``, of the last parameters, whatever the ``phase`` that is
        asked for; without ``rows`` those of the view: of a round the ones that were sent (:meth:`batches`).

        Raises:
            KnowledgeError: none were granted of some row, or the attack did not declare EMBEDDINGS.
        """
        if rows is None and self._number is not None:
            return np.concatenate([h for h, _ in self.batches()])
        released = self._only(Point.EMBEDDING, self.target)
        found = [(released.rows, released.tensor("embedding"))]
        return self._latest(found, rows, f"embeddings of {self.target!r}")

    def gradients(self, rows: Array | None = None) -> dict[str, Array]:
        """The granted gradients by name (N, …) of each row's own loss, at the last parameters.

        Raises:
            KnowledgeError: none were granted of some row, or the attack did not declare GRADIENTS.
        """
        released = self._only(Point.GRADIENT, self.target)
        return {name: self._of_rows(released, name, rows) for name in released.tensors or {}}

    def _of_rows(self, released: Released, name: str, rows: Array | None) -> Array:
        values = released.tensor(name)
        found = [(released.rows, values.reshape(len(values), -1))]
        chosen = self._latest(found, rows, f"gradients of {self.target!r}")
        return chosen.reshape(-1, *values.shape[1:])

    def moments(self) -> Moments:
        """Mean and covariance of the target's columns: disclosed, or estimated from auxiliary rows.

        Raises:
            KnowledgeError: neither was disclosed.
        """
        self._check(Knowledge.MOMENTS)
        return self._moments_of(self.target)

    def _disclosed(self, point: Point, sender: str, holding: str = "") -> Released | None:
        found = super()._disclosed(point, sender, holding)
        sent = point is Point.EMBEDDING and self._federation.horizontal.is_split
        if found is not None and point in _GRANTED_ALONE and not sent:
            self.granted.add(point)
        return found


def check_unmasked(horizontal: Horizontal, target: str) -> None:
    """Refuse to read an update of ``target`` where the server received masked ones.

    Raises:
        KnowledgeError: it did.
    """
    if horizontal.secure_aggregation:
        raise KnowledgeError(
            f"the server saw masked updates only: it knows the sum of a round, and no update of {target!r}"
        )
