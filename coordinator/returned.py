"""The coordinator waits for a data party and looks whether it is the one that it was."""

from __future__ import annotations

from vflens.errors import UnavailableError
from vflens.member.member import Member
from vflens.member.standing import check_data_party
from vflens.protocol.acts import Rejoin
from vflens.protocol.standing import Standing


def returned(coordinator: Member, name: str, own: Standing, *, is_active: bool) -> Standing:
    """Where the data party ``name`` stands, once it is back; ``own`` is the coordinator's standing.

    Raises:
        UnavailableError: it did not come back in time.
        StateError: it came back with another run, or older than it was.
    """
    act = Rejoin(coordinator.config.run, own)
    try:
        party = coordinator.patiently(lambda: coordinator.links[name].call(act))
    except UnavailableError as error:
        raise UnavailableError(
            f"party {name!r} did not come back within {coordinator.config.limits.rejoin_seconds:g} s: look "
            f"at its log, then start every party again with --resume ({error})"
        ) from error
    # A passive party gets a gradient one step later.
    check_data_party(name, own, party, own.learned if is_active else own.learned - 1)
    return party
