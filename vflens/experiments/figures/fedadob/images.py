"""Fig. 5: images behind each defence, as the paper's inversion and ours reconstruct them."""

import tempfile
from dataclasses import replace
from functools import partial

import numpy as np

from vflens.errors import ConfigError, DefenseError
from vflens.experiments.figures import FigureOptions
from vflens.experiments.figures.fedadob.cells import cells
from vflens.experiments.figures.fedadob.methods import FEATURES, IMAGES, UNDEFENDED, Method, printed_attack
from vflens.experiments.figures.fedadob.studies import Study, studies
from vflens.experiments.outcome.table import where, with_figures
from vflens.experiments.pages.drawing import Drawing, ImageGrid
from vflens.experiments.pages.pictures import pixels, png
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.sweeps.pool import Rows
from vflens.experiments.sweeps.sweep import finished, refusals
from vflens.types import Document

_SHOWN = 6  # images a row
_PASSIVE = "passive"


def figure5(options: FigureOptions) -> Drawing:
    """Originals and reconstructions, defence by defence."""
    methods = [m for m in IMAGES if FEATURES in m.against]
    done = studies(options)
    wanted = [c for s in done for c in cells(_once(s), methods, options.seed)]
    with tempfile.TemporaryDirectory(prefix="vflens-figure-") as scratch:
        parts = options.pool.run(partial(pictured, scratch=scratch), wanted)
    rows = [row for part in parts for row in part]
    shown = with_figures(rows)
    grids = [g for s in done for g in _grids(s, where(shown, model=s.name), methods)]
    lead = (
        "The first prediction rows and what inversions make of their embeddings, one federation each. The "
        "number behind a defence is the mean squared error over all attacked rows; the best blind guess's "
        "stands behind the originals."
    )
    return Drawing(
        shown, [], lead, [*(note for s in done for note in _once(s).notes), *refusals(rows)], grids=grids
    )


def _once(study: Study) -> Study:
    return replace(study, seeds=1)


def pictured(place: Document, settings: Document, *, scratch: str) -> Rows:
    """Run one federation; a row per image, of the originals and of each attack's estimates, as a data URI."""
    try:
        with finished(settings, scratch) as done:
            return _image_rows(place, done)
    except (ConfigError, DefenseError) as error:
        return [{**place, "refused": f"was refused: {error}"}]


def _image_rows(place: Document, done: RecordedRun) -> Rows:
    (party,) = (p for p in done.parties if p.name == _PASSIVE)
    places, arrays = pixels(done, _PASSIVE), party.pictures().get("", {})
    errors = {r.attack: r.mse for r in done.results}
    blind = min((r.blind for r in done.results), default=float("nan"))
    images = {"original": (blind, arrays["original"])}
    images |= {a: (errors[a], arrays[f"estimate:{a}"]) for a in errors if f"estimate:{a}" in arrays}
    return [
        {**place, "attack": name, "error": error, "image": i, "png": png(np.asarray(values), places)}
        for name, (error, array) in images.items()
        for i, values in enumerate(array[:_SHOWN])
    ]


def _grids(study: Study, rows: Rows, methods: list[Method]) -> list[ImageGrid]:
    """One grid for the paper's attack, one for the best of each defence."""
    places = [(m, v, _attacked(rows, m, v)) for m in methods for v in m.values]
    originals = where(rows, defense=UNDEFENDED, attack="original")
    first = {f"original; blind {r['error']:.3f}": _images(originals) for r in originals[:1]}
    printed, best = dict(first), dict(first)
    for method, value, own in places:
        if not own:
            continue
        name = f"{method.title}, {method.vary} = {value:g}" if method.vary else method.title
        strongest = min(own, key=lambda attack: own[attack][0]["error"])
        for grid, attack in ((printed, printed_attack("CAFE")), (best, strongest)):
            if attack in own:
                grid[f"{name}: {own[attack][0]['error']:.3f}, {attack}"] = _images(own[attack])
    return [
        ImageGrid(f"{study.name}: the paper's CAFE behind each defence", printed),
        ImageGrid(f"{study.name}: the best attack behind each defence", best),
    ]


def _attacked(rows: Rows, method: Method, value: float) -> dict[str, Rows]:
    """The rows of one federation, attack by attack."""
    own = where(rows, defense=method.title, strength=value)
    attacks = dict.fromkeys(r["attack"] for r in own if r["attack"] != "original")
    return {attack: where(own, attack=attack) for attack in attacks}


def _images(rows: Rows) -> list[str]:
    return [r["png"] for r in rows]
