"""Tables VII and VIII: seconds per epoch of training and of inference."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from vflens.errors import ConfigError, DefenseError
from vflens.experiments.figures import Drawing, Options
from vflens.experiments.figures.fedadob.cells import cells
from vflens.experiments.figures.fedadob.methods import TIMED, UNDEFENDED
from vflens.experiments.figures.fedadob.printed import HORIZONTAL_SECONDS, MODELS, VERTICAL_SECONDS
from vflens.experiments.figures.fedadob.studies import Study, studies
from vflens.experiments.figures.figure import Table
from vflens.experiments.sweeps.pool import Rows
from vflens.experiments.sweeps.sweep import finished, refusals
from vflens.experiments.sweeps.sweep_page import spread
from vflens.types import Document

_REPETITIONS = {"quick": 2, "default": 5, "full": 5}
_EPOCHS = 3


def table7(options: Options) -> Drawing:
    """Seconds per epoch of training, and of predicting the prediction rows, method by method."""
    done = [_timed(s, _REPETITIONS[options.size]) for s in studies(options.size)]
    wanted = [c for s in done for c in cells(s, TIMED, options.seed, ())]
    wanted.sort(key=lambda c: c.key["place"]["seed"])  # all methods once, then all again
    with tempfile.TemporaryDirectory(prefix="vflens-figure-") as scratch:
        parts = replace(options.pool, jobs=1).run(partial(timed, scratch=scratch), wanted)
    rows = [row for part in parts for row in part]
    found = [r for r in rows if not r.get("refused")]
    tables = [_table(s, [r for r in found if r["model"] == s.name]) for s in done]
    lead = (
        "Methods take turns, one federation in this process at a time, one numeric thread, whatever --jobs "
        "says. Seconds are this machine's for its number of rows, so compare the ratios to no defence. "
        "Training is the federation's, messages and logs included. Intervals are 95 % over repetitions "
        "(Student's t)."
    )
    stated = [f"{s.name}: {s.data.get('sample', 'all')} rows, {_EPOCHS} epochs a federation." for s in done]
    only = [m for m in MODELS[:3] if m not in {s.beside for s in done}]
    notes = [*stated, *([f"Paper only, not run in this size: {', '.join(only)}."] if only else [])]
    printed = _printed("Table VII as printed: training / inference", VERTICAL_SECONDS, MODELS[:3])
    return Drawing(found, [], lead, [*notes, *refusals(rows)], tables=[*tables, printed])


def table8(options: Options) -> Drawing:
    """The paper's seconds of horizontal training; nothing is measured."""
    models = ("LeNet-MNIST", "AlexNet-CIFAR10", "ResNet-CIFAR100")
    rows = [{"defense": d, "model": m, "train": v[2 * i], "infer": v[2 * i + 1]}
            for d, v in HORIZONTAL_SECONDS.items() for i, m in enumerate(models)]  # fmt: skip
    lead = (
        "Paper only: these are seconds of horizontal training by ten clients, and VFLens has vertical "
        "federations only. Nothing here was measured."
    )
    return Drawing(
        rows,
        [],
        lead,
        tables=[_printed("Table VIII as printed: training / inference", HORIZONTAL_SECONDS, models)],
    )


def timed(place: Document, settings: Document, *, scratch: str) -> Rows:
    """Run one federation; one row with its seconds per epoch, and of all predictions."""
    try:
        with finished(settings, scratch) as done:
            train, infer = done.value("train_seconds"), done.value("predict_seconds")
    except (ConfigError, DefenseError) as error:
        return [{**place, "refused": f"was refused: {error}"}]
    assert train is not None, "a finished run has trained"
    assert infer is not None, "a finished run has predicted"
    return [{**place, "train": train / settings["training"]["epochs"], "infer": infer}]


def _timed(study: Study, repetitions: int) -> Study:
    return replace(study, training={**study.training, "epochs": _EPOCHS}, seeds=repetitions)


def _table(study: Study, rows: Rows) -> Table:
    heads = [
        "method",
        "training, s an epoch",
        "ratio",
        "ratio, paper",
        "inference, s",
        "ratio",
        "ratio, paper",
    ]
    shown = [[m.title, *_times(rows, m.title, study.beside)] for m in TIMED]
    return Table(f"{study.name} beside {study.beside}", heads, shown)


def _times(rows: Rows, title: str, beside: str) -> list[str]:
    shown = []
    for k, what in enumerate(("train", "infer")):
        own, plain = ({r["seed"]: r[what] for r in rows if r["defense"] == t} for t in (title, UNDEFENDED))
        place = 2 * MODELS.index(beside) + k
        paper = VERTICAL_SECONDS[title][place] / VERTICAL_SECONDS[UNDEFENDED][place]
        ratios = [own[turn] / plain[turn] for turn in own if turn in plain]
        shown += [spread([*own.values()]), spread(ratios, 2), f"{paper:.2f}"]
    return shown


def _printed(title: str, seconds: Mapping[str, Sequence[float]], models: Sequence[str]) -> Table:
    rows = [
        [d, *(f"{v[2 * i]:.2f} / {v[2 * i + 1]:.2f}" for i in range(len(models)))] for d, v in seconds.items()
    ]
    return Table(title, ["method, seconds", *models], rows)
