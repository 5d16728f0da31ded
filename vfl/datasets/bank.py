"""Bank Marketing, 41,188 rows, 19 features, 2 classes: will a client subscribe? Needs VFLENS_DATA.

Source: UCI 222, ``bank-additional-full.csv``, CC BY 4.0. ``duration`` of the call is left out, as in the
text of Rassouli et al.: it is known only once the answer is.
"""

from __future__ import annotations

from vfl.datasets import _local
from vfl.datasets._build import checked_table, encoded
from vfl.table import Dataset, Table

FILE = "bank-additional-full.csv.gz"
SHA256 = "25ef5a7f820659c9010405d079b068761b9e4a75c232a6271ee6a77fc3de52ae"
COUNTS = {"no": 36548, "yes": 4640}


class Bank(Dataset):
    """See the module."""

    def load(self) -> Table:
        """All rows; no split is given."""
        raw = _local.text_columns(_local.read(FILE, SHA256), delimiter=";")
        classes = raw.pop("y")
        del raw["duration"]
        return checked_table("bank", *encoded(raw), classes, COUNTS)
