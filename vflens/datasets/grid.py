"""Electrical grid stability (simulated), 10,000 rows, 12 features, 2 classes. Needs VFLENS_DATA.

Source: UCI 471, ``Data_for_UCI_named.csv``, CC BY 4.0. ``stab`` is left out: its sign is the label.
No bounds are declared; p1 = −(p2 + p3 + p4).
"""

from __future__ import annotations

from vflens.datasets import _local
from vflens.datasets._build import checked_table, encoded
from vflens.plugins.dataset import Dataset
from vflens.tables.table import Table

FILE = "Data_for_UCI_named.csv.gz"
SHA256 = "85218c746e3a60576e105e10afc346bfeefbb8c24466b5df66f625481deb6849"
COUNTS = {"stable": 3620, "unstable": 6380}


class Grid(Dataset):
    """See the module."""

    def load(self) -> Table:
        """All rows; no split is given."""
        raw = _local.text_columns(_local.read(FILE, SHA256))
        classes = raw.pop("stabf")
        del raw["stab"]
        return checked_table("grid", *encoded(raw), classes, COUNTS)
