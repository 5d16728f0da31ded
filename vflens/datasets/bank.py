"""Bank Marketing, 41,188 rows, 19 features, 2 classes: will a client subscribe? Needs VFLENS_DATA.

Source: UCI 222, ``bank-additional-full.csv``, CC BY 4.0. ``duration`` of the call is left out, as in the text
of Rassouli et al.: it is known only after the answer. Their scripts keep it and omit ``campaign``, the next
column.
"""

from __future__ import annotations

from vflens.datasets import _local
from vflens.datasets._build import checked_table, encoded
from vflens.plugins.dataset import Dataset
from vflens.tables.recipes import scaled_on_all_rows, target_encoded
from vflens.tables.table import Table
from vflens.types import Array

FILE = "bank-additional-full.csv.gz"
SHA256 = "25ef5a7f820659c9010405d079b068761b9e4a75c232a6271ee6a77fc3de52ae"
COUNTS = {"no": 36548, "yes": 4640}


class Bank(Dataset):
    """See the module."""

    @_local.kept
    def load(self) -> Table:
        """All rows; no split is given."""
        raw = _raw()
        classes = raw.pop("y")
        del raw["duration"]
        return checked_table("bank", *encoded(raw), classes, COUNTS)

    def as_coded(self) -> Table:
        """Without ``campaign``; text, and by mistake ``cons.conf.idx``, becomes the share of yes over *all*
        rows.
        """
        raw = _raw()
        classes = raw.pop("y")
        del raw["campaign"]
        columns, features = target_encoded(raw, classes == "yes")
        return scaled_on_all_rows(checked_table("bank", columns, features, classes, COUNTS))


def _raw() -> dict[str, Array]:
    return _local.text_columns(_local.read(FILE, SHA256), delimiter=";")
