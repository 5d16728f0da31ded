"""The report's pictures as files, for slides and papers: PNG of images, SVG of charts."""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING
from xml.etree.ElementTree import ParseError, canonicalize

from vflens.errors import StorageError
from vflens.experiments.pages.chromium import SECONDS, browser, opened
from vflens.experiments.pages.ledger import ledger
from vflens.experiments.pages.page import plotly, templates
from vflens.experiments.pages.pictures import pictures
from vflens.experiments.pages.report import charts
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.results.titles import labels
from vflens.experiments.results.verdict import number
from vflens.storage.files import write_whole
from vflens.types import Document

if TYPE_CHECKING:
    from PIL.Image import Image

_LARGE, _GAP, _HEAD = 96, 8, 40  # pixels: an image's longer side at least, between images, of the heads
_WIDTH = 900  # of a chart


def write_image_files(runs: Sequence[RecordedRun], folder: Path) -> list[Path]:
    """Write a PNG of each block of the report's images into ``folder``: originals beside reconstructions.

    Raises:
        DataError: a party's pictures do not fit its columns.
        StorageError: a file cannot be written.
    """
    names = dict(zip((r.name for r in runs), labels(runs), strict=True))
    blocks = list(pictures(runs, names))
    titles = _file_names([f"images {block['label']} {block['target']}" for block in blocks])
    return [
        _written(folder / f"{title}.png", _montage(block))
        for title, block in zip(titles, blocks, strict=True)
    ]


def write_chart_files(runs: Sequence[RecordedRun], folder: Path, *, seconds: float = SECONDS) -> list[Path]:
    """Write an SVG of each chart of the report into ``folder``, drawn by an installed Chromium.

    Raises:
        ConfigError: there is no Chromium.
        StorageError: it draws nothing, takes longer than ``seconds``, or a file cannot be written.
    """
    program = browser("a chart as a file")
    named = zip(runs, labels(runs), strict=True)
    panels = charts(runs) | {f"ledger {title}": ledger(run)["flows"] for run, title in named}
    found = [(panel, plot) for panel, plots in panels.items() for plot in plots]
    drawn = _drawn(program, [plot for _, plot in found], seconds) if found else []
    files = _file_names([f"{panel} {plot['title']}" for panel, plot in found])
    return [_written(folder / f"{file}.svg", svg.encode()) for file, svg in zip(files, drawn, strict=True)]


def _written(file: Path, content: bytes) -> Path:
    write_whole(file, content, remedy="another folder")
    return file


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


def _drawn(program: str, plots: Sequence[Document], seconds: float) -> list[str]:
    """The SVG of each plot."""
    page = templates().get_template("charts.html.j2").render(plots=plots, plotly=plotly(), width=_WIDTH)
    with TemporaryDirectory(prefix="vflens-charts-") as scratch:
        file = Path(scratch) / "charts.html"
        file.write_text(page, encoding="utf-8")
        budget = f"--virtual-time-budget={round(1000 * seconds)}"
        told = opened(program, file, "--dump-dom", budget, seconds=seconds).decode("utf-8", "replace")
    reader = _Drawings()
    reader.feed(told)
    if len(reader.found) != len(plots):
        raise StorageError(
            f"{program} drew {len(reader.found)} of {len(plots)} charts: save them from the report in your "
            "browser"
        )
    try:
        return [canonicalize(svg) for svg in reader.found]  # plotly's order of attributes varies
    except ParseError as error:
        raise StorageError(
            f"{program} drew a chart that is no SVG ({error}): save it from the report in your browser"
        ) from None


class _Drawings(HTMLParser):
    """The texts of all <pre> of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._inside = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        """A drawing begins."""
        if tag == "pre":
            self._inside = True
            self.found.append("")

    def handle_endtag(self, tag: str) -> None:
        """A drawing ends."""
        self._inside = self._inside and tag != "pre"

    def handle_data(self, data: str) -> None:
        """A part of a drawing."""
        if self._inside:
            self.found[-1] += data
