"""Reads a party's own folder of images: a row each, its pixels are the columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from vflens.errors import DataError
from vflens.tables.description import PartyFile
from vflens.tables.pixels import image_columns
from vflens.tables.table import Table
from vflens.types import Array

_SUFFIXES = (".bmp", ".jpeg", ".jpg", ".png")
_SHOWN = 20  # names
_MOST_PIXELS = 1 << 16  # each is a column with a description of its own
_CHANNELS = {"L": 0, "RGB": 3}  # by Pillow's mode
#: Settings of a table that a folder has no place for.
_FOREIGN = ("alphabets", "bounds", "categories", "columns", "encode", "pixels", "split_column")


def read_images(spec: PartyFile, folder: Path) -> Table:
    """The images in ``folder``, in the order of their names, which identify them.

    With ``label_column`` each sub-folder is a class and has the class's name, else the images lie in
    ``folder`` itself.

    Raises:
        DataError: a setting, file or folder does not fit; the message names it and the remedy.
    """
    if spec.label_kind != "classes":
        raise DataError("label_kind = 'number': a folder of images has classes, leave it out")
    foreign = next((name for name in _FOREIGN if getattr(spec, name)), None)
    if foreign is not None:
        raise DataError(f"{foreign} has no meaning in a folder of images: leave it out")
    classes = _classes(spec, folder)
    found = [(file, k) for k, name in enumerate(classes or (".",)) for file in _files(folder / name)]
    if not found:
        raise DataError(f"the folder holds no image: it needs some, {', '.join(_SUFFIXES)}")
    names = [str(file.relative_to(folder)) for file, _ in found]
    if odd := [name for name in (*names, *classes) if not name.isprintable()]:
        raise _refusal("has a name that holds what cannot be printed: rename it", odd)
    height, width, channels, features = _pixels([file for file, _ in found])
    labels = np.array([k for _, k in found]) if classes else None
    ids = np.array([name.encode() for name in names])
    return Table(ids, tuple(image_columns(height, width, channels)), features, labels, class_names=classes)


def _classes(spec: PartyFile, folder: Path) -> tuple[str, ...]:
    """The names of the classes; none without labels."""
    inner = sorted(f.name for f in folder.iterdir() if f.is_dir() and not f.name.startswith("."))
    if spec.label_column is None:
        if inner:
            raise DataError(f"it holds the folder {inner[0]!r}: set label_column, folders are then classes")
        return ()
    if loose := _files(folder):
        raise _refusal("lies beside the folders of classes: move it into its class", loose)
    classes = spec.classes or tuple(inner)
    unknown = next((name for name in inner if name not in classes), None)
    if unknown is not None:
        raise DataError(
            f"the folder {unknown!r} is none of the classes {list(classes)}: add it, or rename it"
        )
    if len(classes) < 2:
        raise DataError(f"it has the classes {list(classes)}: labels need two at least, a folder each")
    return classes


def _files(folder: Path) -> list[Path]:
    """The images of a class, by name; a class of another party's rows needs no folder here."""
    found = sorted(f for f in folder.iterdir() if f.is_file()) if folder.is_dir() else []
    seen = [f for f in found if not f.name.startswith(".")]
    if odd := [f for f in seen if f.suffix.lower() not in _SUFFIXES]:
        raise _refusal(f"is no image: remove it, or save it as one of {', '.join(_SUFFIXES)}", odd)
    return seen


def _refusal(sentence: str, files: Sequence[Path | str], number: int = 0) -> DataError:
    """The refusal of ``files``, whose names identify rows: counted, or the ``number`` of the only one."""
    others = f" (and {len(files) - 1} more)" if len(files) > 1 else ""
    what = f"image {number}, by class and name," if number else f"a file{others}"
    return DataError(f"{what} {sentence}", shown=[repr(str(file)) for file in files[:_SHOWN]])


def _pixels(files: Sequence[Path]) -> tuple[int, int, int, Array]:
    """Height, width and channels (0: grey) of all ``files``, and their rows uint8 (n, d)."""
    images = _opened(files)
    first = next(images)
    height, width = first.shape[:2]
    features = np.empty((len(files), first.size), np.uint8)
    features[0] = first.reshape(-1)
    for i, image in enumerate(images, 1):
        features[i] = image.reshape(-1)
    return height, width, first.shape[2] if first.ndim == 3 else 0, features


def _opened(files: Sequence[Path]) -> Iterator[Array]:
    """Each image, uint8 (height, width) or (height, width, 3); all have the size and mode of the first."""
    from PIL import Image

    due = None
    for number, file in enumerate(files, 1):
        try:
            with Image.open(file) as image:
                kind = (image.mode, *image.size)
                if fault := _fault(kind, due):
                    raise _refusal(fault, [file], number)
                due = due or kind
                yield np.asarray(image)
        except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
            raise _refusal("is not readable: copy it anew, or remove it", [file], number) from error


def _fault(kind: tuple[str, int, int], due: tuple[str, int, int] | None) -> str:
    """What is wrong with an image of this mode, width and height; "" if nothing is."""
    mode, width, height = kind
    what = f"has {width} by {height} pixels in mode {mode}"
    if mode not in _CHANNELS:
        return f"{what}: save it with grey or RGB pixels of 8 bits"
    if width * height > _MOST_PIXELS:
        return f"{what}, at most {_MOST_PIXELS:,} are read: shrink it"
    if due is not None and kind != due:
        return f"{what}, the first image {due[1]} by {due[2]} in {due[0]}: save all alike"
    return ""
