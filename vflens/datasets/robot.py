"""Wall-following robot, 5,456 rows, 24 ultrasound readings, 4 classes of movement. Needs VFLENS_DATA.

Source: UCI 194, ``sensor_readings_24.data``, CC BY 4.0. No bounds are declared.
"""

from __future__ import annotations

from vflens.datasets import _local
from vflens.datasets._build import checked_table, encoded
from vflens.plugins.dataset import Dataset
from vflens.tables.recipes import scaled_on_all_rows
from vflens.tables.table import Table

FILE = "sensor_readings_24.data.gz"
SHA256 = "5c0313fe59935edba130b868abbc1cb18ca4141a715e2f5f5c279fbe22a80f18"
COUNTS = {"Move-Forward": 2205, "Sharp-Right-Turn": 2097, "Slight-Left-Turn": 328, "Slight-Right-Turn": 826}


class Robot(Dataset):
    """See the module."""

    def load(self) -> Table:
        """All rows; no split is given."""
        names = [f"US{j}" for j in range(1, 25)]
        raw = _local.text_columns(_local.read(FILE, SHA256), [*names, "class"])
        classes = raw.pop("class")
        return checked_table("robot", *encoded(raw), classes, COUNTS)

    def as_coded(self) -> Table:
        """The paper's columns; their numbers of classes depend on Python's set order, ours on the names."""
        return scaled_on_all_rows(self.load())
