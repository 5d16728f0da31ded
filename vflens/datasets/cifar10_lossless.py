"""The first 4,000 training images of CIFAR-10, exact, 32×32 colour, 10 classes. Needs VFLENS_DATA.

Source: Krizhevsky 2009, in four PNG files of a thousand images, one in each line of pixels. Labels are those
of the nearest image in the copy of :mod:`vflens.datasets.cifar10`.
"""

from __future__ import annotations

from io import BytesIO

import numpy as np

from vflens.datasets import _local
from vflens.datasets._build import checked_table
from vflens.datasets.cifar10 import CLASSES
from vflens.plugins.dataset import Dataset
from vflens.tables.pixels import image_columns
from vflens.tables.table import Table

IMAGES = (
    ("cifar10_batch_0.png", "0614720d69293a033786d5fe2924c4e9a9b48874f19ca4627c4662a864ee9f2d"),
    ("cifar10_batch_1.png", "2927e26ea68602e34a7424826b76b7336ce36b8f6bcc2e9fce0c05568ff6b4c1"),
    ("cifar10_batch_2.png", "0b2759e307bb405bb1a6531f8a0f557eaec46d7546050612fdb836f0fa60eae0"),
    ("cifar10_batch_3.png", "a4530ff15c83886058a97c352f53f38be07d191de8f410e998e91786b5900a26"),
)
LABELS = "cifar10_batch_labels.csv", "d2dce6e2e574fec04d20be76775e74e54d1012646a7b09251f978453c5a77ef7"
COUNTS = dict(zip(CLASSES, (396, 366, 420, 384, 422, 393, 414, 385, 407, 413), strict=True))


class Cifar10Lossless(Dataset):
    """See the module."""

    def load(self) -> Table:
        """All rows, in the order of CIFAR-10; no split is given."""
        from PIL import Image

        files = [np.asarray(Image.open(BytesIO(_local.stored(*file)))) for file in IMAGES]
        labels = _local.text_columns(_local.stored(*LABELS))["label"].astype(np.int64)
        return checked_table(
            "cifar10_lossless",
            image_columns(32, 32, 3),
            np.concatenate(files).reshape(-1, 32 * 32 * 3),
            np.array(CLASSES)[labels],
            COUNTS,
        )
