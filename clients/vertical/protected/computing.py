"""What a party gives of its columns in protected training, and the side of a computing one in each step."""

from collections.abc import Generator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from vflens.array import ScaledColumns
from vflens.errors import ConfigError, ProtocolError
from vflens.member.recovery import check_state
from vflens.numerics.fixed_point import encoded
from vflens.numerics.shares.scale import FEATURE_BITS, LARGEST_FEATURE, PARAMETER_BITS
from vflens.numerics.shares.step import BatchShares, computing, unpacked
from vflens.protocol.pair_key import PairKey
from vflens.protocol.vertical.shares import SharedRun, features_mask, mask_seed, step_masks
from vflens.randomness import masks
from vflens.types import Array, Released

#: A step under way: takes what was opened, gives the next share to open.
Opening = Generator[Array, Array, Array]


class Sharing:
    """The columns of the party ``name``, whose secret of masks is ``secret``.

    Raises:
        ConfigError: its inputs lie beyond [−1, 1].
        ProtocolError: others were told of another key of its.
    """

    def __init__(self, run: SharedRun, name: str, secret: bytes, inputs: ScaledColumns) -> None:
        self.run, self.name, self._inputs = run, name, inputs
        self._key = PairKey(secret, "columns", run.federation.run, name)
        if name in self._public_keys and self._public_keys[name] != self._key.public:
            raise ProtocolError(f"the key of masks of {name!r} is another than it described: start it anew")
        if not (np.abs(inputs[run.federation.train]) <= LARGEST_FEATURE).all():
            raise ConfigError(
                f"training.protection = 'shares' at {name!r}: a defence makes inputs beyond "
                f"±{LARGEST_FEATURE:g}, for which the integers have no room; leave it out"
            )

    @property
    def others(self) -> list[str]:
        """The parties whose columns are shared with the two that compute, in name order."""
        return [p.name for p in self.run.federation.passive[1:]]

    def encoded(self, rows: Array) -> Array:
        """Its features of ``rows`` as integers, uint64 (n, d); with the bias where it holds it."""
        values = self._inputs[rows]
        if self.name == self.run.computing[1]:
            values = np.hstack([values, np.ones((len(rows), 1))])
        return encoded(values, FEATURE_BITS, 1)

    def columns_share(self, rows: Array) -> Array:
        """The active party's share of the columns of a party that does not compute, uint64 (n, d)."""
        return self.encoded(rows) - self.columns_mask(self.name)[self.run.places[rows]]

    def columns_mask(self, party: str) -> Array:
        """The other computing party's share of the columns of ``party``, uint64 (n, d), of all training rows.

        These two draw it, and nobody else can.
        """
        part = self.run.columns[party]
        return self._drawn(party, "columns", (len(self.run.federation.train), part.stop - part.start))

    def parameters_mask(self, party: str) -> Array:
        """What hides the other computing party's share of the parameters of ``party`` from the active one."""
        part = self.run.columns[party]
        return self._drawn(party, "parameters", (part.stop - part.start, self.run.logits))

    def _drawn(self, party: str, purpose: str, shape: tuple[int, int]) -> Array:
        """What the party that computes and ``party`` draw together, uint64."""
        peer = self.run.computing[1] if self.name == party else party
        key = self._key.shared(peer, self._public_keys[peer], purpose)
        return masks(key, shape[0] * shape[1]).reshape(shape)

    @cached_property
    def _public_keys(self) -> dict[str, bytes]:
        return {p.name: bytes.fromhex(p.mask_key) for p in self.run.federation.passive}

    def own_parameters(self, theta: Array) -> dict[str, Array]:
        """Its part of the model, from its rows uint64 (d, k') of θ."""
        values = theta.view(np.int64) * 2.0**-PARAMETER_BITS
        if self.name != self.run.computing[1]:
            return self.run.parameters(values)
        bias = self.run.parameters(values[-1:])["weight"][:, 0]
        return {**self.run.parameters(values[:-1]), "bias": bias}


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
