"""The computing party that answers: what it makes of each message of the active party."""

from collections.abc import Mapping

import numpy as np

from vflens.clients.vertical.protected.computing import Computing, Opening
from vflens.types import Array


class Answering(Computing):
    """The first passive party. A step ends with the message after it, which brings what was opened last."""

    _opening: Opening | None = None

    def opened_features(self, rows: Array, share: Array) -> Array:
        """E of ``rows``, from the active party's ``share`` of it."""
        places = self.run.places[rows]
        opened = share + self.features_share(rows, {p: self.columns_mask(p)[places] for p in self.others})
        self.take_features(rows, opened)
        return opened

    def end_step(self, arrays: Mapping[str, Array]) -> None:
        """Take the step under way, if there is one, with what the next message says."""
        if self._opening is not None and "change" in arrays:
            self.rho = arrays["rho"]
            self.finish(self._opening, arrays["change"])
            self._opening = None

    def answer(self, number: int, rows: Array, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """The arrays of the answer to the message ``number``; see :mod:`vflens.protocol.vertical.shares`."""
        if number % 2:
            return self._second(arrays)
        before = {"change": arrays["change"]} if number else {}
        if number == 2 * self.run.federation.steps:
            return {**before, "parameters share": self._others_parameters()}
        self._opening = self.begin(rows)
        delta = next(self._opening) + arrays["delta share"]
        return {**before, "delta": delta, "logits share": self._opening.send(delta)}

    def _second(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        assert self._opening is not None
        rho = self._opening.send(arrays["logits"]) + arrays["rho share"]
        return {"logits": arrays["logits"], "rho": rho, "change share": self._opening.send(rho)}

    def _others_parameters(self) -> Array:
        """Its share of the parameters of all other parties; the active one must not know those of a third."""
        hidden = self.theta.copy()
        for party in self.others:
            hidden[self.run.columns[party]] += self.parameters_mask(party)
        part = self.run.columns[self.name]
        return np.concatenate([hidden[: part.start], hidden[part.stop :]])
