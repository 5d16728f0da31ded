"""ModelNet40 in 12 views of each object as grey images, 40 classes. Needs VFLENS_DATA with folders of PNG.

Source: Wu et al. 2015; views by Su et al. 2015, ``modelnet40_images_new_12x/CLASS/train/OBJECT_VIEW.png`` and
``…/test/…``; the given split is kept. An object is one row, and its views are the channels of one image:
``split.kind = "image_channels"`` deals them to parties. Pictures are reduced to ``side`` by ``side`` pixels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from pydantic import Field

from vflens.datasets import _local
from vflens.datasets._build import given_split, table
from vflens.datasets._images import grey
from vflens.errors import DataError
from vflens.plugins.dataset import Dataset
from vflens.tables.pixels import image_columns
from vflens.tables.table import Table
from vflens.words import counted

FOLDER, VIEWS = "modelnet40_images_new_12x", 12
_NAME = re.compile(r"(.+)[._]v?(\d+)\.png")


class ModelNet(Dataset):
    """Options: ``side``, pixels in the height and the width of a view."""

    side: int = Field(32, ge=8, le=64, description="pixels in the height and the width of a view")

    def load(self) -> Table:
        """All objects, the training ones first."""
        folder = _local.place(FOLDER)
        try:
            names = tuple(sorted(f.name for f in folder.iterdir() if f.is_dir()))
        except OSError as error:
            raise _local.absent(folder, error) from error
        if len(names) < 2:
            raise DataError(
                f"{str(folder)!r} holds {counted(len(names), 'folder')} of classes: unpack all of them there"
            )
        parts = [[(n, o) for n in names for o in _objects(folder / n / part)] for part in ("train", "test")]
        rows = [*parts[0], *parts[1]]
        images = np.empty((len(rows), self.side, self.side, VIEWS), np.uint8)
        for i, (_, files) in enumerate(rows):
            for view, file in enumerate(files):
                images[i, :, :, view] = grey(file, self.side)
        return table(
            "modelnet",
            image_columns(self.side, self.side, VIEWS),
            images.reshape(len(rows), -1),
            np.array([name for name, _ in rows]),
            names,
            split=given_split(*map(len, parts)),
        )


def _objects(folder: Path) -> list[Sequence[Path]]:
    """The files of each object's views in the order of their numbers, by object.

    Raises:
        DataError: there are none, or an object has other than 12 views.
    """
    found: dict[str, dict[int, Path]] = {}
    for file in folder.glob("*.png"):
        if (match := _NAME.fullmatch(file.name)) is not None:
            found.setdefault(match[1], {})[int(match[2])] = file
    if not found:
        raise DataError(f"{str(folder)!r} holds no OBJECT_VIEW.png: unpack the views of ModelNet40 there")
    for name, views in found.items():
        if len(views) != VIEWS:
            raise DataError(
                f"{str(folder)!r} holds {len(views)} views of {name!r}, not {VIEWS}: unpack it anew"
            )
    return [[views[n] for n in sorted(views)] for _, views in sorted(found.items())]
