"""A leader waits for a data party and looks whether it is the one that it was."""

from __future__ import annotations

from vflens.errors import UnavailableError
from vflens.member.member import Member
from vflens.member.patience import patiently
from vflens.member.stage import Stage
from vflens.member.standing import check_data_party
from vflens.protocol.acts import Rejoin
from vflens.protocol.standing import Standing


def returned(
    leader: Member, name: str, own: Standing, learned: int, before_open: Stage, *, seconds: float
) -> Standing:
    """Where the data party ``name`` stands, once it is back within ``seconds``; ``own`` is the leader's
    standing, and the party must have ``learned`` from that step, and reached ``before_open`` where the leader
    is open.

    Raises:
        UnavailableError: it did not come back in time.
        StateError: it came back with another run, or older than it was.
    """
    act = Rejoin(leader.config.run, own)
    try:
        party = patiently(lambda: leader.links[name].call(act), seconds, leader.stopped)
    except UnavailableError as error:
        raise UnavailableError(
            f"party {name!r} did not come back within {seconds:g} s: look "
            f"at its log, then start every party again with --resume ({error})"
        ) from error
    check_data_party(name, own, party, learned, before_open)
    return party
