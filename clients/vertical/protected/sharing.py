"""What a data party gives of its columns in protected training: numbers that only two others can add up."""

from functools import cached_property

import numpy as np

from vflens.array import ScaledColumns
from vflens.errors import ConfigError, ProtocolError
from vflens.numerics.fixed_point import encoded
from vflens.numerics.shares.scale import FEATURE_BITS, LARGEST_FEATURE, PARAMETER_BITS
from vflens.protocol.pair_key import PairKey
from vflens.protocol.vertical.shares import SharedRun
from vflens.randomness import masks
from vflens.types import Array


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
