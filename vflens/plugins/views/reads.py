"""Checked reads of a party's messages: an attack gets only what it declared."""

from collections import deque
from collections.abc import Collection, Iterable, Iterator
from functools import reduce
from typing import Protocol

import numpy as np

from vflens.errors import KnowledgeError, PluginError
from vflens.plugins.arrivals import latest
from vflens.types import Array, Knowledge, Phase, Point, Released
from vflens.words import counted

#: What an attack declares to read the messages of a point.
POINT_KNOWLEDGE = {
    Point.SCORES: Knowledge.SCORES,
    Point.PARAMETERS: Knowledge.PARAMETERS,
    Point.EMBEDDING: Knowledge.EMBEDDINGS,
    Point.GRADIENT: Knowledge.GRADIENTS,
    Point.UPDATE: Knowledge.GRADIENTS,
    Point.MASKED_UPDATE: Knowledge.GRADIENTS,
    Point.AUXILIARY: Knowledge.AUXILIARY,
    Point.MOMENTS: Knowledge.MOMENTS,
    Point.DATASET: Knowledge.RELEASED_TABLE,
    Point.SHARES: Knowledge.OPENINGS,
    Point.OPENING: Knowledge.OPENINGS,
    Point.METRICS: Knowledge.METADATA,
}


class Log(Protocol):
    """A party's messages, read-only: :class:`vflens.storage.journal.Reader` and
    :class:`vflens.storage.journal.Messages` have this interface. A party's transcript is writable and does
    not.
    """

    def select(
        self, *points: Point, phases: Collection[Phase] = ..., sender: str | None = None
    ) -> Iterator[Released]:
        """Messages of ``points`` in ``phases`` from ``sender`` (None: from anyone), in order of arrival."""


class CheckedReads:
    """What ``party`` received, read for ``rows`` int32 within the declared ``needs`` and ``phases``.

    The log keeps the training messages of every ``every``-th epoch.
    """

    def __init__(
        self,
        *,
        party: str,
        rows: Array,
        log: Log,
        needs: frozenset[Knowledge],
        phases: frozenset[Phase],
        every: int,
    ) -> None:
        self.party = party
        self.rows = rows
        self._select = log.select
        self._needs, self._phases = needs, phases
        self._every = every

    def received(self, point: Point, sender: str | None = None) -> Iterator[Released]:
        """What arrived of ``point`` in the declared phases, in order of arrival.

        Raises:
            KnowledgeError: the attack did not declare it.
        """
        self._check(POINT_KNOWLEDGE[point])
        return self._select(point, phases=self._phases, sender=sender)

    def messages(self) -> list[tuple[Point, frozenset[Phase]]]:
        """The points, each with phases, of which the attack may read: disclosures of any, that say what is
        known.
        """
        declared = {point for point, knowledge in POINT_KNOWLEDGE.items() if knowledge in self._needs}
        granted = self._phases & {Phase.DISCLOSE}
        return [(point, self._phases if point in declared else granted) for point in Point]

    def readable(self, point: Point, phases: frozenset[Phase]) -> Iterator[str | Array]:
        """All that arrived of ``point`` in ``phases``, in order: who sent it, its rows and tensors."""
        for r in self._select(point, phases=phases):
            yield f"{r.sender} {r.exchange} {None if r.tensors is None else [*r.tensors]}"
            yield r.rows
            yield from (r.tensors or {}).values()

    def owned(self) -> Iterator[str | Array]:
        """All that the party owns, array by array: here nothing."""
        return iter(())

    def common_rows(self, senders: Collection[str]) -> tuple[Array, Array]:
        """The rows that all ``senders`` granted: positions int32 (t,), and their columns side by side (t, d).

        Raises:
            KnowledgeError: one granted none, or the attack did not declare them.
        """
        granted = [self._only(Point.AUXILIARY, sender, "features") for sender in senders]
        rows = reduce(np.intersect1d, [r.rows for r in granted])
        places = [np.searchsorted(r.rows, rows) for r in granted]  # a party grants its rows in order
        return rows, np.hstack([r.tensor("features")[at] for r, at in zip(granted, places, strict=True)])

    def sampling(self) -> str:
        """An addition to sentences about missing messages; empty if the transcript is whole."""
        return (
            f", or stood in an epoch that its transcript leaves out (transcript.every = {self._every})"
            if self._every > 1
            else ""
        )

    def _asked(self, rows: Array | None, end: float = np.inf) -> Array:
        """``rows``, or those of the view: positions below ``end``."""
        if rows is None:
            return self.rows
        asked = np.asarray(rows)
        if asked.ndim != 1 or asked.dtype.kind not in "iu" or not ((asked >= 0) & (asked < end)).all():
            most = f" below {end}" if np.isfinite(end) else ""
            raise PluginError(f"rows = {rows!r}: positions{most} are whole numbers in an array (n,)")
        return asked

    def _latest(self, found: Iterable[tuple[Array, Array]], rows: Array | None, what: str) -> Array:
        """The last value (N, w) of each of ``rows`` among (rows, values) in order of arrival."""
        asked = self._asked(rows)
        values, seen = latest(found, asked)
        missing = asked[~seen]
        if len(missing):
            raise KnowledgeError(
                f"{what} of {counted(len(missing), 'row')} (first: {int(missing[0])}) never reached "
                f"{self.party!r}{self.sampling()}"
            )
        return values

    def _disclosed(self, point: Point, sender: str, holding: str = "") -> Released | None:
        """The latest disclosure, that of the model version whose scores arrive now; only one with a tensor
        called ``holding``, if that is given.
        """
        found = self._select(point, phases=self._phases & {Phase.DISCLOSE}, sender=sender)
        held = (r for r in found if not holding or holding in (r.tensors or {}))
        return next(iter(deque(held, maxlen=1)), None)

    def _only(self, point: Point, sender: str, holding: str = "") -> Released:
        self._check(POINT_KNOWLEDGE[point])
        released = self._disclosed(point, sender, holding)
        if released is None:
            raise KnowledgeError(f"party {sender!r} never disclosed its {point} to {self.party!r}")
        return released

    def _check(self, knowledge: Knowledge) -> None:
        if knowledge not in self._needs:
            raise KnowledgeError(f"the attack read {knowledge.value!r} without declaring it in `needs`")


def read_only(array: Array) -> Array:
    """A read-only view of ``array``."""
    view = array.view()
    view.flags.writeable = False
    return view
