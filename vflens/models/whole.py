"""A whole model at one party: all its layers, on the party's own columns."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from vflens.errors import ConfigError
from vflens.models.family import ModelFamily
from vflens.models.part import ActivePart, Showing, Site, Taking
from vflens.types import Array, Exchange

#: Before the names of the parameters of a network's two parts.
BOTTOM, TOP = "bottom.", "top."


class WholeModel:
    """The active part of ``model`` at ``site``, to which no passive party sends anything.

    Args:
        model: the family.
        site: the party, with the width that it receives in its federation.
        private_bottom: the bottom model is not among the :meth:`parameters`, which others may have.
    """

    def __init__(self, model: ModelFamily, site: Site, *, private_bottom: bool = False) -> None:
        self._title, self._width = model.title, model.width_alone(site.columns, site.received)
        peers = () if site.columns else site.peers  # its own embedding alone reaches the top
        self._part: ActivePart = model.active_part(replace(site, received=self._width, peers=peers))
        self._private = BOTTOM if private_bottom else None

    def learn(self, x: Array, y: Array, exchange: Exchange) -> None:
        """One optimiser step from the mean loss of the rows ``x`` (n, d) with soft labels ``y`` (n, k)."""
        self._part.loss_gradient(self._nothing(x), x, y, exchange).learn()

    def log_scores(self, x: Array, exchange: Exchange) -> Array:
        """The scores float64 (n, k) of the rows ``x`` (n, d)."""
        return self._part.log_scores(self._nothing(x), x, exchange)

    def parameters(self) -> dict[str, Array]:
        """Copies of all parameters by name, with a batch norm's running moments; without private ones."""
        found = self._part.parameters()
        if self._private is None:
            return found
        return {name: value for name, value in found.items() if not name.startswith(self._private)}

    def take(self, parameters: Mapping[str, Array]) -> None:
        """Begin anew from ``parameters``, as :meth:`parameters` of the same model gave them; its optimiser
        begins anew too, and what is private stays.

        Raises:
            ConfigError: this family cannot.
        """
        if not isinstance(self._part, Taking):
            raise ConfigError(f"{self._title} cannot begin from given parameters: train another model")
        self._part.take(parameters)

    def state(self) -> dict[str, Array]:
        """All that training changed, for :meth:`load`; it stays with its owner."""
        return self._part.state()

    def load(self, state: Mapping[str, Array]) -> None:
        """Take up :meth:`state`.

        Raises:
            StorageError: it is the state of another model.
        """
        self._part.load(state)

    def private(self) -> dict[str, Array]:
        """Copies of the parameters of the private bottom model, as a disclosure grants them; {} without."""
        if self._private is None:
            return {}
        found = self._part.parameters().items()
        return {n.removeprefix(self._private): v for n, v in found if n.startswith(self._private)}

    def embeddings(self, x: Array, exchange: Exchange) -> Array:
        """What the bottom model gives for the rows ``x`` (n, d): (n, w).

        Raises:
            ConfigError: this family has none.
        """
        return self._shown().embeddings(x, exchange)

    def row_gradients(self, x: Array, y: Array, exchange: Exchange) -> dict[str, Array]:
        """The gradient (n, …) by name of each row's own loss, of ``x`` (n, d) with soft labels ``y`` (n, k):
        in all parameters, private ones too, without the penalty's.

        Raises:
            ConfigError: this family has none.
        """
        return self._shown().row_gradients(self._nothing(x), x, y, exchange)

    def _shown(self) -> Showing:
        if not isinstance(self._part, Showing):
            raise ConfigError(
                f"{self._title} has no embeddings and gradients to grant: disclose other things"
            )
        return self._part

    def _nothing(self, x: Array) -> Array:
        return np.zeros((len(x), self._width))
