"""What a party received: recorded by the receiving endpoint on arrival, once per exchange."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from vfl.journal import Journal
from vfl.types import Exchange, Phase, Point, Released


class Transcript:
    """The receiver's record in ``folder``; iterating yields every payload in order of arrival, from the disk.

    Sampled, it keeps the training messages of every ``every``-th epoch only; ``received`` and ``nbytes`` count what arrived. Training exchanges arrive in increasing order, so one remembered exchange per (sender, point) tells a
    replay; prediction and disclosure exchanges are remembered one by one.
    """

    def __init__(self, folder: Path, every: int = 1) -> None:
        self._every = every
        self._journal = Journal(folder)
        self._latest: dict[tuple[str, Point], Exchange] = {}
        self._seen: set[tuple[str, Point, Exchange]] = set()
        self.received = 0
        self.nbytes = 0
        for released in self._journal:
            self._is_new(released)
            self._count(released)

    def record(self, released: Released) -> bool:
        """Append ``released``, if it is to be kept, unless this exchange was recorded before; says whether it was new."""
        if not self._is_new(released):
            return False
        if self._is_kept(released):
            self._journal.append(released)
        self._count(released)
        return True

    def check(self) -> None:
        """See :meth:`vfl.journal.Journal.check`."""
        self._journal.check()

    def close(self) -> None:
        """Close the log."""
        self._journal.close()

    def __iter__(self) -> Iterator[Released]:
        return iter(self._journal)

    def _is_kept(self, released: Released) -> bool:
        exchange = released.exchange
        return exchange.phase is not Phase.TRAIN or (exchange.round + 1) % self._every == 0

    def _count(self, released: Released) -> None:
        self.received += 1
        self.nbytes += released.nbytes

    def _is_new(self, released: Released) -> bool:
        exchange, key = released.exchange, (released.sender, released.point)
        if exchange.phase is Phase.TRAIN:
            latest = self._latest.get(key)
            if latest is not None and latest.step >= exchange.step:
                return False
            self._latest[key] = exchange
            return True
        if (*key, exchange) in self._seen:
            return False
        self._seen.add((*key, exchange))
        return True
