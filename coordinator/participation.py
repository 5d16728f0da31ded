"""Which clients train in a round."""

from __future__ import annotations

from vflens.protocol.horizontal import HorizontalFederation
from vflens.randomness import stream


def drawn_participants(federation: HorizontalFederation, number: int, secret: bytes) -> tuple[str, ...]:
    """The clients of round ``number`` in name order: the first ``horizontal.participants`` of an order drawn
    for the round from the server's ``secret``, or all.

    Rounds do not depend on each other, so a restart draws the same.
    """
    names = [party.name for party in federation.parties]
    order = stream(secret, "participants", federation.run, number).permutation(len(names))
    return tuple(sorted(names[place] for place in order[: federation.horizontal.participants]))
