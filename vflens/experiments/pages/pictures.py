"""The report's pictures: samples of targets with pixels as columns, beside each attack's estimate."""

import base64
import io
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from vflens.errors import DataError
from vflens.experiments.outcome.words import rows_of
from vflens.experiments.results.folders import PartyRun
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.results.titles import ranking
from vflens.plugins.attack import up_to_affine
from vflens.protocol.roles import ROLES
from vflens.tables.pixels import pixel_places, too_wide
from vflens.types import Array, Document

_SAMPLES = 6  # rows shown per run and target: two runs stand side by side


def pictures(runs: Sequence[RecordedRun], names: Mapping[str, str]) -> Iterator[Document]:
    """Per run and target: a row of images per sample; attacks have one order in all runs.

    Raises:
        DataError: the pictures' number of columns differs from the party's number of pixels.
    """
    order = ranking(runs)
    for run in runs:
        for party in (p for p in run.parties if _pictured(p)):
            drawn = sorted(party.pictures().items())
            places = pixels(run, party.name) if drawn else np.zeros((0, 3), np.int64)
            for of, arrays in drawn if len(places) else ():
                if arrays["original"].shape[1] != len(places):
                    raise DataError(
                        f"{party.folder}/pictures.npz does not hold the party's columns: copy it anew"
                    )
                yield {
                    "label": names[run.name] + (f", {rows_of(of)}" if of else ""),
                    "target": party.name,
                    **_block(run, party, places, order, (of, arrays)),
                }


def _block(
    run: RecordedRun,
    party: PartyRun,
    places: Array,
    order: Mapping[str, int],
    drawn: tuple[str, Mapping[str, Array]],
) -> Document:
    of, arrays = drawn
    original = arrays["original"]
    shown = {"original": original, "half": np.full_like(original, 0.5)}
    estimates = ((n.removeprefix("estimate:"), a) for n, a in arrays.items() if n.startswith("estimate:"))
    shown |= {name: a for name, a in estimates if not up_to_affine(name)}  # those are no columns yet
    attacks = sorted(shown.keys() - {"original", "half"}, key=lambda a: (order.get(a, len(order)), a))
    columns = ["original", *attacks, "half"]
    scored_set = of or _pictured(party)
    errors = {r.attack: r for r in run.results if (r.scored_set, r.target) == (scored_set, party.name)}
    samples = enumerate(arrays["rows"][:_SAMPLES])
    rows = [(int(row), [png(shown[c][i], places) for c in columns]) for i, row in samples]
    return {"heads": [(c, errors.get(c)) for c in columns], "rows": rows}


def _pictured(party: PartyRun) -> str:
    """The scored set of which ``party`` draws pictures, "" if it draws none."""
    return ROLES[party.role].pictured if party.role else ""


def pixels(run: RecordedRun, target: str) -> Array:
    """(d, 3) places of the target's columns in their bounding box; empty unless all are pixels.

    Raises:
        DataError: the box is far larger than the columns fill.
    """
    columns = run.columns_of(target)
    if problem := too_wide(columns):
        raise DataError(f"columns of {target!r} in run {run.name!r}: {problem}")
    found = pixel_places(columns)
    if found is None:
        return np.zeros((0, 3), np.int64)
    places: Array = found - found.min(axis=0)
    return places


def png(values: Array, places: Array) -> str:
    """A sample as a data URI: a pixel per column, clipped to [0, 1]; transparent where there is no column.

    Three channels are red, green and blue; others, such as several views, stand side by side in grey.
    """
    from PIL import Image

    row, column, channel = places.T
    height, width, channels = places.max(axis=0) + 1
    if channels != 3:
        column, channel = column + width * channel, np.zeros_like(channel)
    canvas = np.zeros((height, column.max() + 1, channel.max() + 2), np.uint8)  # the last one is opacity
    canvas[row, column, channel] = np.rint(255 * np.clip(np.nan_to_num(values), 0, 1))
    canvas[row, column, -1] = 255
    stream = io.BytesIO()
    Image.fromarray(canvas).save(stream, "PNG")
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()
