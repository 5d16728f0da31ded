"""Rows of clients that collude, as an attack on another client may use them: they are people like its own."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from vflens.plugins.views.reads import Log
from vflens.protocol.checks import MODEL_VERSION
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.types import Array, Exchange, Phase, Point, Released


class ColluderRows(NamedTuple):
    """Training rows of a client: ``features`` float64 (m, d), scaled, and ``labels`` int64 (m,)."""

    features: Array
    labels: Array


class WithColluders:
    """A ``log`` in which the rows of those that collude stand as granted ones, where a client granted none.

    Their positions follow those of the client's own rows: nothing else is of them.
    """

    def __init__(self, federation: HorizontalAgreement, log: Log, rows: Sequence[ColluderRows]) -> None:
        self._federation, self._log, self._rows = federation, log, rows

    def select(
        self, *points: Point, phases: Collection[Phase] = frozenset(Phase), sender: str | None = None
    ) -> Iterator[Released]:
        """See :meth:`vflens.storage.journal.Reader.select`."""
        yield from self._log.select(*points, phases=phases, sender=sender)
        if Point.AUXILIARY not in points or Phase.DISCLOSE not in phases or sender is None or not self._rows:
            return
        if not any(self._log.select(Point.AUXILIARY, phases={Phase.DISCLOSE}, sender=sender)):
            yield from self._as_granted(sender)

    def _as_granted(self, client: str) -> Iterator[Released]:
        info = self._federation.info(client)
        parts = ColluderRows(*map(np.concatenate, zip(*self._rows, strict=True)))
        first = info.train_rows + info.predict_rows
        rows = np.arange(first, first + len(parts.labels), dtype=np.int32)
        exchange = Exchange(self._federation.run, Phase.DISCLOSE, MODEL_VERSION, 0)
        for name, values in parts._asdict().items():
            yield Released(client, exchange, Point.AUXILIARY, rows, tensors={name: values})
