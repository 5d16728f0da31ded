"""What a vertical run adds: who records what."""

from vflens.experiments.results.folders import PartyRun
from vflens.types import Point, Role


def is_recorded(sender: PartyRun, receiver: PartyRun, point: Point) -> bool:
    """Whether ``receiver`` records a training release of ``point`` of ``sender``."""
    if point is Point.SHARES:
        return False  # of masks, which the active party takes and does not keep
    if point is Point.OPENING:
        return {sender.name, receiver.name} == set(_computing(sender))
    if point is Point.GRADIENT and receiver.role is Role.PASSIVE:
        return not receiver.takes_parts
    if sender.role is Role.PASSIVE or point is Point.GRADIENT:
        return receiver.role is Role(sender.federation.aggregator)
    return receiver.role is Role.ACTIVE  # the coordinator's sum


def is_prediction_recorded(sender: PartyRun, receiver: PartyRun, point: Point) -> bool:
    """Whether ``receiver`` records what ``sender`` releases of ``point`` for predictions."""
    if sender.role is Role.COORDINATOR:
        return receiver.role is Role.ACTIVE
    return (
        point is Point.EMBEDDING
        and sender is not receiver
        and receiver.role is Role(sender.federation.aggregator)
    )


def _computing(party: PartyRun) -> tuple[str, str]:
    """The parties that compute on shares in protected training: the active one and the first passive one."""
    of = {role: sorted(p.name for p in party.federation.parties if p.role is role) for role in Role}
    return of[Role.ACTIVE][0], of[Role.PASSIVE][0]
