"""MNIST, 70,000 rows, 28×28 grey pixels 0..255, 10 classes. Needs VFLENS_DATA.

Source: LeCun, Cortes, Burges; idx files, CC BY-SA 3.0; the given split is kept. Pixels stay
bytes: 55 MB.
"""

from __future__ import annotations

import numpy as np

from vflens.datasets import _local
from vflens.datasets._build import checked_table, given_split
from vflens.plugins.dataset import Dataset
from vflens.tables.pixels import image_columns
from vflens.tables.table import Table
from vflens.types import Array

IMAGES = (
    ("train-images-idx3-ubyte.gz", "0b367032e93c5d0cea0925647cfdb18614af8ee15f83e6f2fc2ad904a6835971"),
    ("t10k-images-idx3-ubyte.gz", "1a1a05eab793c14bb050b398624a11b0ffd1a2953baed553b1b9bd079e2a20be"),
)
LABELS = (
    ("train-labels-idx1-ubyte.gz", "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c"),
    ("t10k-labels-idx1-ubyte.gz", "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"),
)
COUNTS = dict(zip("0123456789", (6903, 7877, 6990, 7141, 6824, 6313, 6876, 7293, 6825, 6958), strict=True))


class Mnist(Dataset):
    """See the module."""

    @_local.kept
    def load(self) -> Table:
        """All rows, the training rows first."""
        images = np.concatenate([_idx(*file, header=16) for file in IMAGES]).reshape(-1, 28 * 28)
        digits = np.concatenate([_idx(*file, header=8) for file in LABELS])
        return checked_table(
            "mnist",
            image_columns(28, 28),
            images,
            digits.astype(str),
            COUNTS,
            split=given_split(60_000, 10_000),
        )


def _idx(name: str, sha256: str, *, header: int) -> Array:
    """The bytes after the header of an idx file; the checksum guarantees the shape."""
    return np.frombuffer(_local.read(name, sha256), np.uint8, offset=header)
