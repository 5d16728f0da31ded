"""Images from files, as rows of bytes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import pairwise
from pathlib import Path

import numpy as np

from vflens.errors import DataError
from vflens.types import Array


def pixels(joined: Array, offsets: Array) -> Array:
    """Image files of 32×32 colour pixels, ``joined`` end to end, as uint8 (n, 3072): row, column, channel.

    File i has the bytes ``offsets[i]`` to ``offsets[i + 1]``.
    """
    from PIL import Image

    found = np.empty((len(offsets) - 1, 32 * 32 * 3), np.uint8)
    content, bounds = joined.tobytes(), offsets.tolist()
    for i, (start, end) in enumerate(pairwise(bounds)):
        found[i] = np.asarray(Image.open(BytesIO(content[start:end]))).reshape(-1)
    return found


def grey(file: Path, side: int) -> Array:
    """The image in ``file`` as uint8 (side, side): its luminance, every pixel the mean of those it covers.

    Raises:
        DataError: it is no readable image.
    """
    from PIL import Image

    with _readable(file), Image.open(file) as image:
        return np.asarray(image.convert("L").resize((side, side), Image.Resampling.BOX))


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    from PIL import Image

    try:
        yield
    except (OSError, ValueError, SyntaxError, Image.DecompressionBombError) as error:
        raise DataError(f"{str(file)!r} is no readable image: copy it anew, or remove it") from error
