"""What training left in the parties of a run in one process, for runs that would train the same bits.

Only a sweep keeps it: its cells of one seed differ in defences, and many a defence acts on what leaves after
training.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar

from vflens.types import Array

#: Data party → its state after training; empty: no run has trained yet. None: nothing is kept.
TRAINED: ContextVar[dict[str, Mapping[str, Array]] | None] = ContextVar("TRAINED", default=None)
