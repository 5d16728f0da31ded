"""A client: rows of its own, a whole model, and the update of its parameters in each round."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from vflens.clients.horizontal.local_rounds import LocalRounds
from vflens.clients.horizontal.prepared_client import PreparedClient
from vflens.clients.horizontal.splitfed_rounds import SplitFedRounds
from vflens.models.whole import WholeModel
from vflens.protocol.acts import Step
from vflens.protocol.link import Handlers
from vflens.types import Array, Point, Released

_NO_ROWS = np.zeros(0, np.int32)


class Client(PreparedClient):
    """Trains the parameters that its server sends on its own rows, and answers with their update.

    Args:
        config: its configuration.
        links: to the server by name.
    """

    @cached_property
    def training(self) -> LocalRounds:
        """How it trains, as its run was agreed."""
        made = SplitFedRounds if self.run.federation.horizontal.is_split else LocalRounds
        return made(self)

    def handlers(self) -> Handlers:
        return {**super().handlers(), Step: self.step}

    def sent_again(self, parameters: Iterable[Released]) -> Iterator[Released]:
        """The updates that it sent before masks, computed again from ``parameters``, those that it received:
        all of them and in order. Its model begins anew.
        """
        federation = self.run.federation
        private = federation.horizontal.private_bottom
        model = WholeModel(federation.model, self.site(federation), private_bottom=private)
        self._prepared = self._made._replace(run=replace(self.run, model=model))
        for received in parameters:
            self.training.relearn([received])
            exchange, update = received.exchange, self.training.update(received)
            sent = self.gate.defended(federation.sent, exchange, _NO_ROWS, update)
            yield Released(self.name, exchange, Point.UPDATE, _NO_ROWS, tensors=sent)

    def state(self) -> dict[str, Array]:
        """All that training changed, as arrays."""
        return {**self.training.state(), **self.run.model.state(), **self.chain.memory.state()}

    def load(self, state: Mapping[str, Array]) -> None:
        self.training.load(state)
        self.run.model.load({n: value for n, value in state.items() if n not in self.training.state()})
        self.chain.memory.load(state)
