"""One of the two computing parties: its shares, and its side of each step."""

from collections.abc import Generator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from vflens.array import ScaledColumns
from vflens.clients.vertical.protected.sharing import Sharing
from vflens.member.recovery import check_state
from vflens.numerics.fixed_point import encoded
from vflens.numerics.shares.step import BatchShares, computing, unpacked
from vflens.protocol.vertical.shares import SharedRun, features_mask, mask_seed, step_masks
from vflens.types import Array, Released

#: A step under way: takes what was opened, gives the next share to open.
Opening = Generator[Array, Array, Array]


class Computing(Sharing):
    """The active party, which is first, or the other computing one.

    ``theta`` uint64 (d, k') is its share of the parameters after ``step`` steps; ``rho`` and ``change`` are
    what was opened last in the step before. ``known`` are the other one's messages by number that were logged
    before a restart, or came of a step that is under way.

    Args:
        labels: float64 (N, k) of the active party, in [0, 1]; None: the other one.

    Raises:
        ConfigError: no scale of integers fits the settings.
    """

    def __init__(
        self,
        run: SharedRun,
        name: str,
        secret: bytes,
        inputs: ScaledColumns,
        labels: Array | None = None,
    ) -> None:
        super().__init__(run, name, secret, inputs)
        self._seed, self._scale = mask_seed(secret, run.federation.run), run.scale
        self.first = labels is not None
        self._labels = None if labels is None else self._encoded(labels)
        none = np.zeros((0, run.logits), np.uint64)
        self.theta, self.step = np.zeros((run.width, run.logits), np.uint64), 0
        self.rho, self.change = none, none
        self.known: dict[int, Released] = {}
        self._opened: Array | None = None  # E of all training rows

    @property
    def is_open(self) -> bool:
        """Whether E is known here."""
        return self._opened is not None

    @cached_property
    def _u(self) -> Array:
        """Its share of the mask of the features of all training rows, uint64 (n, d)."""
        return features_mask(self._seed, self.run)

    def features_share(self, rows: Array, shared: Mapping[str, Array]) -> Array:
        """Its share of E of ``rows``, uint64 (n, d); ``shared`` are those of the other parties' columns."""
        share = -self._u[self.run.places[rows]]
        for party, columns in {self.name: self.encoded(rows), **shared}.items():
            share[:, self.run.columns[party]] += columns
        return share

    def take_features(self, rows: Array, opened: Array) -> None:
        """Keep the opened E of ``rows``."""
        if self._opened is None:
            self._opened = np.zeros_like(self._u)
        self._opened[self.run.places[rows]] = opened

    def begin(self, rows: Array, dealt: Array | None = None) -> Opening:
        """Its side of the step that is due; ``dealt`` is what the dealer sent for it."""
        assert self._opened is not None
        places = self.run.places[rows]
        e, u = (array.take(places, axis=0) for array in (self._opened, self._u))
        batch = BatchShares(e, u, self._labels_share(rows))
        drawn, derived = self.run.mask_sizes(len(rows))
        own = step_masks(self._seed, self.step, drawn + (derived if dealt is None else 0))
        numbers = own if dealt is None else np.append(own, dealt)
        held = unpacked(numbers, len(rows), self.run.width, self.run.logits, self.run.response)
        return computing(self.theta, batch, held, self._scale, first=self.first, decayed=self.run.decayed)

    def finish(self, opening: Opening, change: Array) -> None:
        """Take the last opened array of a step, and with it the step."""
        try:
            opening.send(change)
        except StopIteration as stop:
            self.theta, self.change, self.step = stop.value, change, self.step + 1

    def forget_taken(self) -> None:
        """Drop the messages of steps that were taken."""
        self.known = {n: released for n, released in self.known.items() if n >= 2 * self.step}

    def _encoded(self, labels: Array) -> Array:
        return encoded(labels[:, 1:] if self.run.two_classes else labels, self.run.response.bits, 1)

    def _labels_share(self, rows: Array) -> Array:
        if self._labels is None:
            return np.zeros((len(rows), self.run.logits), np.uint64)
        return self._labels.take(rows, axis=0)

    def state(self) -> dict[str, Array]:
        """All that steps changed, for :meth:`load`."""
        shares = {"theta": self.theta, "rho": self.rho, "change": self.change}
        named: dict[str, Any] = {f"shares {name}": array.view(np.int64) for name, array in shares.items()}
        return named | {"shares step": np.array(self.step)}

    def load(self, state: Mapping[str, Array]) -> None:
        """Take up :meth:`state`.

        Raises:
            ProtocolError: it is none.
        """
        check_state(state, self.state())
        self.theta, self.rho, self.change = (
            state[f"shares {name}"].view(np.uint64) for name in ("theta", "rho", "change")
        )
        self.step = int(state["shares step"])


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
