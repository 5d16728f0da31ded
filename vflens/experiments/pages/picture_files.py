"""The report's images as PNG files, for slides and papers."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Sequence
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

from vflens.experiments.outcome.words import number
from vflens.experiments.pages.pictures import pictures
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.results.titles import labels
from vflens.storage.files import write_whole
from vflens.types import Document

if TYPE_CHECKING:
    from PIL.Image import Image

_LARGE, _GAP, _HEAD = 96, 8, 40  # pixels: an image's longer side at least, between images, of the heads


def write_image_files(runs: Sequence[RecordedRun], folder: Path) -> list[Path]:
    """Write a PNG of each block of the report's images into ``folder``: originals beside reconstructions.

    Raises:
        DataError: a party's pictures do not fit its columns.
        StorageError: a file cannot be written.
    """
    names = dict(zip((r.name for r in runs), labels(runs), strict=True))
    blocks = list(pictures(runs, names))
    titles = _file_names([f"images {block['label']} {block['target']}" for block in blocks])
    files = [folder / f"{title}.png" for title in titles]
    for file, block in zip(files, blocks, strict=True):
        write_whole(file, _montage(block), remedy="another folder")
    return files


def _file_names(titles: Sequence[str]) -> list[str]:
    """A name for each, of lower-case letters, digits and hyphens; equal ones are numbered."""
    found: list[str] = []
    for title in titles:
        name = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:80] or "picture"
        numbered = (f"{name}-{n}" if n > 1 else name for n in count(1))
        found.append(next(candidate for candidate in numbered if candidate not in found))
    return found


def _montage(block: Document) -> bytes:
    """A PNG: a line for each row, a column for each attack under its name and error."""
    from PIL import Image as Images
    from PIL import ImageDraw, ImageFont

    rows = [[_image(uri) for uri in images] for _, images in block["rows"]]
    width, height = (max(side) for side in zip(*(i.size for row in rows for i in row), strict=True))
    width = max(width, _LARGE)
    size = (len(block["heads"]) * (width + _GAP) + _GAP, _HEAD + len(rows) * (height + _GAP))
    canvas = Images.new("RGB", size, "white")
    pen, font = ImageDraw.Draw(canvas), ImageFont.load_default(13)
    for j, (name, result) in enumerate(block["heads"]):
        text = name if result is None else f"{name}\n{number(result.mse)}"
        pen.multiline_text((_GAP + j * (width + _GAP), 4), text, "black", font)
        for i, row in enumerate(rows):
            canvas.paste(row[j], (_GAP + j * (width + _GAP), _HEAD + i * (height + _GAP)), row[j])
    stream = io.BytesIO()
    canvas.save(stream, "PNG")
    return stream.getvalue()


def _image(uri: str) -> Image:
    """One of the report's images, its pixels enlarged by a whole number."""
    from PIL import Image as Images

    found = Images.open(io.BytesIO(base64.b64decode(uri.partition(",")[2])))
    times = max(1, -(-_LARGE // max(found.size)))
    side = (found.width * times, found.height * times)
    return found.convert("RGBA").resize(side, Images.Resampling.NEAREST)
