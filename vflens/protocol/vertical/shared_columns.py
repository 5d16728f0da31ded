"""Where each party's columns stand in a model that two parties train on shares of all columns."""

from collections.abc import Mapping, Sequence

from vflens.types import PartyInfo, Role


def shared_columns(parties: Sequence[PartyInfo]) -> Mapping[str, slice]:
    """Party → its columns in the one array, and after those of the first passive party the bias."""
    found, start, bias = {}, 0, 1
    active = [p for p in parties if p.role is Role.ACTIVE]
    for party in (*active, *sorted((p for p in parties if p.role is Role.PASSIVE), key=lambda p: p.name)):
        end = start + len(party.columns) + (0 if party.role is Role.ACTIVE else bias)
        bias = bias if party.role is Role.ACTIVE else 0
        found[party.name] = slice(start, end)
        start = end
    return found
