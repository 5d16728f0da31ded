"""The aligned order of a party's own rows, on disk."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from vflens.errors import StorageError
from vflens.storage.files import load_arrays, save_arrays
from vflens.tables.table import Table
from vflens.types import Array


def save_order(folder: Path, order: Array, table: Array) -> None:
    """Write ``order.npz``: the file row int32 (N,) of each aligned row, and the digest of ``table``."""
    save_arrays(folder / "order.npz", {"order": order, "table": table})


def load_order(folder: Path, table: Table) -> Array:
    """The row of ``table`` int32 (N,) of each aligned row of the run in ``folder``.

    Raises:
        StorageError: unreadable, or the run had another table.
    """
    saved = load_arrays(folder / "order.npz")
    if not np.array_equal(saved.get("table", ()), table.digest()):
        raise StorageError(
            f"the party's table is no longer that of the run in {folder}: bring back the file as it was, or "
            "run again"
        )
    return saved["order"]


def table_digest(folder: Path) -> str:
    """The digest of the table of the run in ``folder``, in hexadecimal digits; "" without one.

    Raises:
        StorageError: unreadable.
    """
    if not (folder / "order.npz").is_file():
        return ""
    saved = load_arrays(folder / "order.npz").get("table")
    return "" if saved is None else saved.tobytes().hex()
