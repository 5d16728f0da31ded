"""The server of a SplitFed run: it holds a top model for each client, and sees embeddings and labels."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from vflens.config import ServerConfig
from vflens.coordinator.horizontal.server import Server
from vflens.coordinator.horizontal.split_rounds import SplitRounds
from vflens.models.part import ActivePart, Keys, Site, Taking, plain
from vflens.randomness import derive
from vflens.types import Array


class SplitServer(Server):
    """See :class:`Server`; a restart begins the interrupted round anew."""

    def step_messages(self, step: int) -> int:
        """No number of logged messages makes a step complete: what was learned is in the checkpoint."""
        return -1

    def learned_by(self, party: str, own: int) -> int:
        """See :meth:`Server.learned_by`: the parameters of the last complete round."""
        if own < 0:  # perhaps nothing is prepared yet
            return own
        steps = self.prepared.epoch_steps
        return own // steps * steps

    @property
    def next_round(self) -> int:
        return (self.recovery.learned + 1) // self.prepared.epoch_steps

    def rounds(self) -> SplitRounds:
        return SplitRounds(
            federation=self.prepared,
            gate=self.gate,
            transcript=self.transcript,
            recovery=self.recovery,
            report=self._report,
            top=self._top,
            keep=self._keep,
        )

    def _top(self, client: str, parameters: Mapping[str, Array]) -> ActivePart:
        """A top model with ``parameters``, of which draws are the client's own."""
        federation = self.prepared
        part = federation.model.active_part(
            Site(
                party=self.name,
                columns=(),
                features=0,
                classes=federation.n_classes,
                training=federation.training,
                keys=Keys.under(derive(self.secret, "top", client)),
                wrap=plain,
                received=federation.embedding_width,
                peers=[federation.columns],
            )
        )
        assert isinstance(part, Taking)
        part.take({name: np.array(value) for name, value in parameters.items()})
        return part


def server(config: ServerConfig, *given: Any, **named: Any) -> Server:
    """The server of ``config``, for the method of its rounds; all else goes to the class."""
    return (SplitServer if config.horizontal.is_split else Server)(config, *given, **named)
