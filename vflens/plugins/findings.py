"""What an attack finds once for several views: of all targets, or of all rows of one target."""

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from vflens.types import Array, Estimate

T = TypeVar("T")
Joint: TypeAlias = list[tuple[object, Any]]  # attacks, and what they found


class SharedFindings:
    """Keeps findings in a list that the views of one adversary share."""

    target: str
    rows: Array
    _joint: Joint

    def shared(self, attack: object, solve: Callable[[], Estimate], rng: np.random.Generator) -> Estimate:
        """What ``solve`` finds for all targets of ``attack``: computed for one of them, and kept for the
        others.

        Results that drew from ``rng`` are not kept: every target has its own random numbers.
        """
        for other, found in self._joint:
            if other is attack and np.array_equal(found.rows, self.rows):
                return cast(Estimate, found)
        before = _as_bytes(rng.bit_generator.state)
        found = solve()
        if _as_bytes(rng.bit_generator.state) == before:
            self._joint.append((attack, found))
        return found

    def learned(self, attack: object, learn: Callable[[], T]) -> T:
        """What ``learn`` returns, computed for the first rows that ``attack`` estimates and kept for its
        others: it must not depend on :attr:`rows`, and a caller must not change it.
        """
        key = attack, self.target
        for other, found in self._joint:
            if other == key:
                return cast(T, found)
        learned = learn()
        self._joint.append((key, learned))
        return learned


def _as_bytes(state: Any) -> Any:
    """A generator's ``state`` to compare: printing its arrays would take longer than an attack."""
    if isinstance(state, dict):
        return {name: _as_bytes(part) for name, part in state.items()}
    return state.tobytes() if isinstance(state, np.ndarray) else state
