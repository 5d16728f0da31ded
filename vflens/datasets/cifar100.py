"""CIFAR-100, 60,000 rows, 32×32 colour images, 100 classes. Needs VFLENS_DATA with the published archive.

Source: Krizhevsky 2009, ``cifar-100-binary.tar.gz``; the given split is kept. Its version for Python is a
pickle, which can run code of whoever wrote it, so it is not read.
"""

from __future__ import annotations

import tarfile
import zlib
from collections.abc import Mapping

import numpy as np

from vflens.datasets import _local
from vflens.datasets._build import given_split, table
from vflens.errors import DataError
from vflens.plugins.dataset import Dataset
from vflens.storage.json_file import in_words
from vflens.tables.pixels import image_columns
from vflens.tables.table import Table
from vflens.types import Array
from vflens.words import counted

ARCHIVE, FOLDER = "cifar-100-binary.tar.gz", "cifar-100-binary"
_MEMBERS = ("train.bin", "test.bin", "fine_label_names.txt")
_CLASSES, _RECORD = 100, 2 + 3 * 32 * 32  # coarse and fine label, then all red, green and blue bytes


class Cifar100(Dataset):
    """See the module."""

    def load(self) -> Table:
        """All rows, the training rows first, with the fine labels."""
        found = _members()
        names = tuple(found["fine_label_names.txt"].decode("ascii", "replace").split())
        if len(set(names)) != len(names) or len(names) != _CLASSES:
            raise _damaged(f"names {counted(len(names), 'class')}, not {_CLASSES} distinct ones")
        train, predict = (_records(name, found[name]) for name in _MEMBERS[:2])
        records = np.concatenate([train, predict])
        images = records[:, 2:].reshape(-1, 3, 32 * 32).transpose(0, 2, 1).reshape(len(records), -1)
        split = given_split(len(train), len(predict))
        classes = np.array(names)[records[:, 1]]
        return table("cifar100", image_columns(32, 32, 3), images, classes, names, split=split)


def _members() -> Mapping[str, bytes]:
    path = _local.place(ARCHIVE)
    try:
        with tarfile.open(path, "r:gz") as archive:
            found = {name: archive.extractfile(f"{FOLDER}/{name}") for name in _MEMBERS}
            return {name: member.read() for name, member in found.items() if member is not None}
    except (tarfile.TarError, EOFError, KeyError, zlib.error) as error:
        raise _damaged(f"cannot be unpacked ({in_words(error)})") from error
    except OSError as error:
        raise _local.absent(path, error) from error


def _records(name: str, content: bytes) -> Array:
    """The records uint8 (n, 3074) of one file; every class has as many rows, as published."""
    if not content or len(content) % _RECORD:
        raise _damaged(f"holds {name} of {counted(len(content), 'byte')}, not a multiple of {_RECORD}")
    records: Array = np.frombuffer(content, np.uint8).reshape(-1, _RECORD)
    counts = np.bincount(records[:, 1], minlength=_CLASSES)
    if len(counts) > _CLASSES or counts.min() < counts.max():
        raise _damaged(
            f"holds {name} with {counts.min()} to {counts.max()} images of a class, not as many of each"
        )
    return records


def _damaged(why: str) -> DataError:
    return DataError(f"{str(_local.place(ARCHIVE))!r} {why}: replace it by the published archive")
