"""A sum of the clients' updates whose terms the server does not see: pairwise masks.

Bonawitz et al., 2017, §4.0: clients u < v agree on a key (X25519), derive a seed of the round from it (keyed
BLAKE2b) and expand it to a mask (ChaCha20); u adds it, v subtracts it. Modulo 2⁶⁴ the masks cancel exactly in
the sum of all clients, and any fewer masked updates are uniform numbers. Their recovery of drop-outs by
secret shares is left out: a sum that lacks a client is refused.

What it does not hide: the sum itself, and so an update from all other clients together, who see the sum in
the next parameters. The server relays public keys, so it must be honest in that, or the clients must check
the keys by other means.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from vflens.errors import ConfigError, ProtocolError, UnavailableError
from vflens.models.settings import FEWEST_SUMMED
from vflens.protocol.pair_key import PairKey
from vflens.randomness import derive, masks
from vflens.types import Array
from vflens.words import counted


class Masking:
    """The masks of one client in one run.

    Args:
        secret: the client's own; after a restart it gives the same keys and masks.
        run: the run's name, part of every key.
        name: the client's.
    """

    def __init__(self, secret: bytes, run: str, name: str) -> None:
        self._key, self._name = PairKey(secret, "secure sum", run, name), name

    @property
    def public(self) -> bytes:
        """The 32 bytes that the other clients need."""
        return self._key.public

    def masked(self, values: Array, publics: Mapping[str, bytes], round_: int, given: bytes = b"") -> Array:
        """``values`` uint64 (n,) plus this client's masks of the round, modulo 2⁶⁴.

        The same masks must never hide two different arrays: their difference would be in the clear. Other
        clients in the sum, or another ``given``, give other masks.

        Args:
            values: as :func:`vflens.numerics.fixed_point.encoded` gives them.
            publics: :attr:`public` of all clients of the sum by name, with or without this one.
            round_: the number of the sum.
            given: a digest of what all clients computed their values from.

        Raises:
            ConfigError: there are fewer than three clients.
            ProtocolError: a public key is none.
        """
        check_clients({self._name, *publics})
        names: tuple[str | int, ...] = (round_, given.hex(), *sorted({self._name, *publics}))
        masked = values.copy()
        for peer, public in publics.items():
            if peer != self._name:
                mask = masks(self._key.shared(peer, public, *names), len(values))
                masked = masked + mask if self._name < peer else masked - mask
        return masked


def masking_of(secret: bytes, nonce: str, run: str, name: str) -> Masking:
    """The masks of the client ``name`` with ``secret``, whose start has this ``nonce``."""
    return Masking(derive(secret, "masks", nonce), run, name)


def check_clients(names: Sequence[str] | set[str]) -> None:
    """Refuse a sum that gives its terms away.

    Raises:
        ConfigError: there are fewer than three clients.
    """
    if len(names) < FEWEST_SUMMED:
        raise ConfigError(
            f"secure aggregation of {counted(len(names), 'client')}: from the sum each would know the "
            f"other's update, so take at least {FEWEST_SUMMED} clients, or switch it off"
        )


def unmasked_sum(received: Mapping[str, Array], clients: Sequence[str], round_: int) -> Array:
    """The sum modulo 2⁶⁴, uint64 (n,), of what all ``clients`` of the round ``round_`` sent.

    Raises:
        ConfigError: there are fewer than three clients.
        UnavailableError: an update is missing; the masks of the others do not cancel without it.
        ProtocolError: the updates differ in length.
    """
    check_clients(clients)
    missing = sorted(set(clients) - set(received))
    if missing:
        raise UnavailableError(
            f"round {round_}: no masked update came from {', '.join(map(repr, missing))}, and without it the "
            "others' masks do not cancel: wait for that client, or run without secure aggregation"
        )
    lengths = {name: len(received[name]) for name in clients}
    if len(set(lengths.values())) > 1:
        raise ProtocolError(f"round {round_}: masked updates of {lengths} numbers: all must be of one length")
    total: Array = np.stack([received[name] for name in clients]).sum(axis=0)
    return total
