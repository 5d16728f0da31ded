"""What a vertical run adds: who records what, and the row ids of each data party as they went round to be
blinded, against what others made of them.
"""

import math
from collections import Counter
from itertools import pairwise

from vflens.errors import StorageError
from vflens.experiments.results.folders import PartyRun
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.verify_log.finding import Found
from vflens.protocol.vertical.alignment import AT_ONCE
from vflens.protocol.vertical.blinded_lists import FILE, Noted, noted_in
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


def compare_lists(run: RecordedRun, faults: Found) -> None:
    """Compare what each data party blinded of another's ids with what the party before it gave.

    The coordinator passes the lists on, in the order of names; one that put guesses in their place would
    learn which of them are ids.
    """
    noted: dict[str, Noted] = {}
    for party in run.parties:
        try:
            if (own := noted_in(party.folder)) is not None:
                noted[party.name] = own
        except StorageError as error:
            faults.damaged(party.name, FILE, str(error))
    _compare_salts(noted, faults)
    members = {info.name for p in run.parties for info in p.federation.parties}
    names = sorted(n for n in members if run.infos()[n].role in (Role.ACTIVE, Role.PASSIVE))
    for place, owner in enumerate(names):
        way = [*names[place:], *names[:place]]
        for sender, receiver in pairwise(way):
            if sender in noted and receiver in noted:
                _compare(owner, (sender, noted[sender]), (receiver, noted[receiver]), faults)


def _compare_salts(noted: dict[str, Noted], faults: Found) -> None:
    """Find lists of other salts than most are of, and leave them out; each one where none has most."""
    count = Counter(own.salts for own in noted.values()).most_common(2)
    if len(count) < 2:
        return
    due = count[0][0] if count[0][1] > count[1][1] else None
    for party in [party for party, own in noted.items() if own.salts != due]:
        faults.differs(party, FILE, "it began to align with other salts than the other data parties")
        del noted[party]


def _compare(owner: str, sent: tuple[str, Noted], taken: tuple[str, Noted], faults: Found) -> None:
    """The ids of ``owner`` as one party gave them, and as the next one took them, as far as both noted it."""
    (sender, gave), (receiver, took) = sent, taken
    if owner not in took.lists or not (sender == owner or owner in gave.lists):
        return
    made, got = gave.own if sender == owner else gave.lists[owner].answers, took.lists[owner]
    odd = next((n for n, (a, b) in enumerate(zip(made, got.messages, strict=False), 1) if a != b), None)
    due = math.ceil(got.ids / AT_ONCE["psi"])
    if odd is None and len(made) > due:
        odd = due + 1
    if odd is not None:
        problem = (
            f"message {odd} of the ids of {owner!r} that it blinded is not what {sender!r} gave: who passed "
            "it on could try guesses"
        )
        faults.differs(receiver, FILE, problem)
