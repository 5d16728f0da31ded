"""An update as its server receives it under secure aggregation: weighted, in fixed point, masked.

A client multiplies its update by its weight and rounds it to steps of 2⁻⁴⁰, about 10⁻¹². The sum of K updates
is then exact, and within K·2⁻⁴¹ of the weighted mean. Its masks come from
:mod:`vflens.protocol.horizontal.secure_sum`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from vflens.errors import ProtocolError
from vflens.numerics.fixed_point import decoded, encoded
from vflens.protocol.checks import after, only
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.types import Array, Released
from vflens.words import counted

if TYPE_CHECKING:
    from vflens.protocol.horizontal.secure_sum import Masking

FRACTION_BITS = 40
_NAME = "masked"


@dataclass(frozen=True, eq=False)
class MaskedRound:
    """Masks the update of the client ``name`` in the round whose parameters it ``received``.

    The masks depend on these parameters, and on the federation as it was described to the client: where a
    server tells clients different things, such as other weights, their masks do not cancel.

    Raises:
        ProtocolError: ``participants`` are not the clients of a round, with this one among them.
    """

    federation: HorizontalAgreement
    masking: Masking
    name: str
    participants: tuple[str, ...]
    received: Released

    def __post_init__(self) -> None:
        federation = self.federation
        known = {party.name for party in federation.parties}
        due = federation.horizontal.participants or len(known)
        named = set(self.participants)
        if self.name not in named or not named <= known or len(self.participants) != due or len(named) != due:
            raise ProtocolError(
                f"round {self.received.exchange.round} names {len(self.participants)} participants to "
                f"{self.name!r}: {counted(due, 'different client')} of the run are due, itself among them"
            )

    def __call__(self, update: Mapping[str, Array]) -> dict[str, Array]:
        """``update`` with its weight, as integers modulo 2⁶⁴ plus masks: int64 (m,) for m numbers.

        Raises:
            ProtocolError: a number is not finite or too large, or a key of another client is none.
        """
        weight = self.federation.weights(self.participants)[self.name]
        numbers = np.concatenate([part.ravel() for part in update.values()]).astype(np.float64)
        round_ = self.received.exchange.round
        try:
            whole = encoded(weight * numbers, FRACTION_BITS, len(self.participants))
        except ValueError:
            raise ProtocolError(
                f"the update of {self.name!r} in round {round_} holds NaN, infinite or huge numbers, which "
                f"no mask hides{after(self.received.tensors)}: check its table, its defences and the "
                "learning rate"
            ) from None
        given = given_of(self.federation, self.received)
        masked = self.masking.masked(whole, keys_of(self.federation, self.participants), round_, given)
        return {_NAME: masked.view(np.int64)}


def given_of(federation: HorizontalAgreement, received: Released) -> bytes:
    """What the masks of a round depend on: the parameters that were ``received``, and the federation."""
    return received.digest + federation.digest


def keys_of(federation: HorizontalAgreement, participants: Collection[str]) -> dict[str, bytes]:
    """The public keys of masks of the clients of a round."""
    return {name: federation.mask_keys[name] for name in participants}


def numbers(released: Released) -> Array:
    """The numbers uint64 (m,) of a masked update."""
    return released.tensor(_NAME).view(np.uint64)


def check_masked(released: Released, like: Mapping[str, Array]) -> None:
    """Refuse ``released`` unless it holds a whole number modulo 2⁶⁴ for every number of ``like``.

    Raises:
        KnowledgeError: it was withheld.
        ProtocolError: it has another tensor, dtype or shape.
    """
    only(released, _NAME, (sum(value.size for value in like.values()),), np.dtype(np.int64))


def unmasked_mean(
    federation: HorizontalAgreement, updates: Sequence[Released], like: Mapping[str, Array]
) -> dict[str, Array]:
    """The weighted mean of all ``updates`` of a round, float64, as tensors with the names and shapes of
    ``like``.

    Raises:
        ConfigError: there are fewer than three.
        UnavailableError: one is missing, where all clients take part.
    """
    from vflens.protocol.horizontal.secure_sum import (
        unmasked_sum,  # takes .1 s, which other runs need not wait
    )

    received = {update.sender: numbers(update) for update in updates}
    drawn = federation.horizontal.participants is not None
    clients = list(received) if drawn else [party.name for party in federation.parties]
    total = decoded(unmasked_sum(received, clients, updates[0].exchange.round), FRACTION_BITS)
    return as_tensors(total, like)


def as_tensors(values: Array, like: Mapping[str, Array]) -> dict[str, Array]:
    """``values`` (m,) as tensors with the names and shapes of ``like``."""
    ends = np.cumsum([value.size for value in like.values()])[:-1]
    parts = zip(like.items(), np.split(values, ends), strict=True)
    return {name: part.reshape(value.shape) for (name, value), part in parts}
