"""What the defences of a client keep from one round to the next, as named arrays."""

import re
from collections.abc import Mapping

from vflens.types import Array

_NAME = re.compile(r"memory (\d+) (\d+) (\w+)")


class Memory:
    """What each defence kept of its last two rounds: the last one may be computed again, from what the one
    before it left.
    """

    def __init__(self) -> None:
        self._left: dict[tuple[int, int], Mapping[str, Array]] = {}  # by defence and round

    def __bool__(self) -> bool:
        return bool(self._left)

    def before(self, position: int, number: int) -> dict[str, Array]:
        """What the defence at ``position`` kept of its last round before ``number``; at first nothing."""
        earlier = self._rounds(position, number)
        return dict(self._left[position, earlier[-1]]) if earlier else {}

    def keep(self, position: int, number: int, left: Mapping[str, Array]) -> None:
        """Keep what the defence at ``position`` leaves in round ``number``."""
        for old in self._rounds(position, number)[:-1]:
            del self._left[position, old]
        self._left[position, number] = left

    def state(self) -> dict[str, Array]:
        """All of it, for :meth:`load`."""
        return {
            f"memory {position} {number} {name}": array
            for (position, number), left in self._left.items()
            for name, array in left.items()
        }

    def load(self, state: Mapping[str, Array]) -> None:
        """Take up :meth:`state`; what else ``state`` holds is passed over."""
        for key, array in state.items():
            if found := _NAME.fullmatch(key):
                place = int(found[1]), int(found[2])
                self._left[place] = {**self._left.get(place, {}), found[3]: array}

    def _rounds(self, position: int, below: int) -> list[int]:
        return sorted(number for where, number in self._left if where == position and number < below)
