"""A party that was restarted rejoins: both sides compare where they stand, and refuse a changed one."""

from vflens.errors import StateError
from vflens.member.stage import Stage
from vflens.protocol.standing import Standing

_BROUGHT_BACK = "start it with the folder as it was, or begin a new run"


def check_same_run(name: str, own: Standing, other: Standing) -> None:
    """Refuse the party ``name`` with another version or another run.

    Raises:
        StateError: names the difference.
    """
    if other.version != own.version:
        raise StateError(
            f"party {name!r} came back with another version of vflens ({other.version}, here {own.version}): "
            "resume every party with the one that began the run"
        )
    if own.federation and other.federation and own.federation != other.federation:
        raise StateError(f"party {name!r} came back with another run's folder: {_BROUGHT_BACK}")


def check_data_party(
    name: str, leader: Standing, party: Standing, learned: int, before_open: Stage = Stage.DISCLOSED
) -> None:
    """Refuse a data party that lost what its ``leader`` knows it had; it must have ``learned``, and reached
    ``before_open`` where the leader is open.

    Raises:
        StateError: names what it lost.
    """
    check_same_run(name, leader, party)
    if not leader.federation:  # nothing was agreed yet
        return
    if not party.federation:
        raise StateError(f"party {name!r} has begun anew: start it with --resume, on the run's folder")
    _check_not_older(name, "training steps", party.learned + 1, learned + 1)
    _check_not_older(name, "released rows", party.released, leader.released)
    at_least = {Stage.OPEN: before_open, Stage.FINISHED: Stage.FINISHED}
    due, stages = at_least.get(Stage(leader.stage), Stage.TRAINING), list(Stage)
    _check_not_older(name, "stages", stages.index(Stage(party.stage)), stages.index(due))


def check_leader(name: str, party: Standing, leader: Standing, *, learns: bool) -> None:
    """Refuse a leader that lost what this ``party`` knows it had; of training steps if it ``learns`` them.

    Raises:
        StateError: names what it lost.
    """
    check_same_run(name, party, leader)
    if not party.federation:
        return
    if learns:
        _check_not_older(name, "training steps", leader.learned + 1, party.learned)
    stages = list(Stage)
    due = min(stages.index(Stage(party.stage)), stages.index(Stage.OPEN))
    _check_not_older(name, "stages", stages.index(Stage(leader.stage)), due)


def _check_not_older(name: str, what: str, found: int, due: int) -> None:
    if found < due:
        raise StateError(
            f"party {name!r} came back older than it was, with {found} {what} where {due} are due: "
            f"{_BROUGHT_BACK}"
        )
