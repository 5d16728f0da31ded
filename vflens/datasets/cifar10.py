"""CIFAR-10 as JPEG files (lossy copy), 60,000 rows, 32×32 colour images, 10 classes. Needs VFLENS_DATA.

Source: Krizhevsky 2009, in a copy whose images were stored as JPEG of quality 75. Their root mean square
difference to the original pixels is about 7.6 of 255. The given split is kept; rows are sorted by class.
"""

from __future__ import annotations

from io import BytesIO
from typing import ClassVar

import numpy as np

from vflens.datasets import _local
from vflens.datasets._build import checked_table, given_split
from vflens.datasets._images import pixels
from vflens.plugins.dataset import Dataset
from vflens.tables.pixels import image_columns
from vflens.tables.table import Table
from vflens.types import Array

FILE = "cifar10_jpeg.npz", "3b109f402e14a5f5c0356ccd693e52e49697cb88f0e774de6db3f698c41944ca"
CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")


class Cifar10(Dataset):
    """See the module."""

    caveat: ClassVar[str] = "CIFAR-10, JPEG copy: its pixels are not those of CIFAR-10"

    def load(self) -> Table:
        """All rows, the training rows first; called "cifar10-jpeg-000000" and so on."""
        with np.load(BytesIO(_local.stored(*FILE)), allow_pickle=False) as saved:
            found = dict(saved)
        images = [pixels(found[f"{part}_jpeg"], found[f"{part}_offsets"]) for part in ("train", "test")]
        labels: Array = np.concatenate([found[f"{part}_labels"] for part in ("train", "test")])
        return checked_table(
            "cifar10-jpeg",
            image_columns(32, 32, 3),
            np.concatenate(images),
            np.array(CLASSES)[labels],
            dict.fromkeys(CLASSES, 6000),
            split=given_split(50_000, 10_000),
        )
