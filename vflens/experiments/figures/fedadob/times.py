"""Tables VII and VIII: seconds per epoch of training and of inference."""

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

from vflens.errors import ConfigError, DefenseError
from vflens.experiments.figures import FigureOptions
from vflens.experiments.figures.fedadob.cells import cells
from vflens.experiments.figures.fedadob.clients import TIMED as CLIENT_TIMED
from vflens.experiments.figures.fedadob.clients import study
from vflens.experiments.figures.fedadob.methods import TIMED, UNDEFENDED
from vflens.experiments.figures.fedadob.printed import (
    HORIZONTAL_MODELS,
    HORIZONTAL_SECONDS,
    MODELS,
    VERTICAL_SECONDS,
)
from vflens.experiments.figures.fedadob.studies import Study, studies
from vflens.experiments.outcome.table import where, with_figures
from vflens.experiments.pages.drawing import Drawing, TextTable
from vflens.experiments.sweeps.pool import Cell, Rows
from vflens.experiments.sweeps.sweep import finished, refusals
from vflens.numerics.measures.intervals import spread
from vflens.storage.metrics import Name
from vflens.types import Document
from vflens.words import counted

_REPETITIONS = {"quick": 10, "default": 5, "full": 5}
_EPOCHS = 3


def table7(options: FigureOptions) -> Drawing:
    """Seconds per epoch of training, and of predicting the prediction rows, method by method."""
    done = [_timed(s, _REPETITIONS[options.size]) for s in studies(options)]
    rows = _in_turns(options, timed, [c for s in done for c in cells(s, TIMED, options.seed, ())])
    found = with_figures(rows)
    tables = [_table(s, where(found, model=s.name)) for s in done]
    lead = (
        "Methods take turns, one federation in this process at a time, one numeric thread, whatever --jobs "
        "says. Seconds are this machine's for its number of rows, so compare the ratios to no defence. "
        "Training is the federation's, messages and logs included. Intervals are 95 % over repetitions "
        "(Student's t)."
    )
    stated = [
        f"{s.name}: {counted(s.data.get('sample', 'all'), 'row')}, {_EPOCHS} epochs a federation."
        for s in done
    ]
    only = [m for m in MODELS[:3] if m not in {s.beside for s in done}]
    notes = [*stated, *([f"Paper only, not run here: {', '.join(only)}."] if only else [])]
    printed = _printed("Table VII as printed: training / inference", VERTICAL_SECONDS, MODELS[:3])
    return Drawing(found, [], lead, [*notes, *refusals(rows)], tables=[*tables, printed])


def table8(options: FigureOptions) -> Drawing:
    """Seconds per round of horizontal training, of one local epoch at every client, method by method."""
    of = replace(study(options), seeds=_REPETITIONS[options.size])
    of = replace(of, horizontal={"rounds": _EPOCHS})
    rows = _in_turns(options, timed_round, cells(of, CLIENT_TIMED, options.seed, ()))
    found = with_figures(rows)
    heads = ["method", "training, s a round", "ratio", "ratio, paper"]
    table = TextTable(f"{of.name} beside {of.beside}", heads, [_round(found, m.title) for m in CLIENT_TIMED])
    lead = (
        "Methods take turns, one federation in this process at a time, one numeric thread: clients work one "
        "after the other. Seconds are this machine's, so compare the ratios to no defence. Intervals are "
        "95 % over repetitions (Student's t). A client predicts with its own whole model whatever the "
        "method, so inference is not timed."
    )
    only = [m for m in HORIZONTAL_MODELS if m != of.beside]
    notes = [
        f"{of.name}: {counted(of.clients, 'client')}.",
        f"Paper only, not run here: {', '.join(only)}.",
    ]
    printed = _printed("Table VIII as printed: training / inference", HORIZONTAL_SECONDS, HORIZONTAL_MODELS)
    return Drawing(found, [], lead, [*notes, *refusals(rows)], tables=[table, printed])


def _in_turns(options: FigureOptions, work: Callable[..., Rows], wanted: Sequence[Cell]) -> Rows:
    """The rows of ``work`` on the ``wanted`` federations in this process: all methods once, then again."""
    turns = sorted(wanted, key=lambda c: c.key["place"]["seed"])
    with tempfile.TemporaryDirectory(prefix="vflens-figure-") as scratch:
        first = study(replace(options, size="quick")).settings(options.seed, (), CLIENT_TIMED[0], 0.0)
        with finished(first, scratch):  # the first federation of a process takes longer, whatever it is
            pass
        parts = replace(options.pool, jobs=1).run(partial(work, scratch=scratch), turns)
    return [row for part in parts for row in part]


def timed_round(place: Document, settings: Document, *, scratch: str) -> Rows:
    """Run one horizontal federation; one row with its seconds per round."""
    try:
        with finished(settings, scratch) as done:
            train = done.value(Name.TRAIN_SECONDS)
    except (ConfigError, DefenseError) as error:
        return [{**place, "refused": f"was refused: {error}"}]
    assert train is not None, "a finished run has trained"
    return [{**place, "train": train / settings["horizontal"]["rounds"]}]


def _round(rows: Rows, title: str) -> list[str]:
    own, plain = ({r["seed"]: r["train"] for r in where(rows, defense=t)} for t in (title, UNDEFENDED))
    paper = HORIZONTAL_SECONDS[title][0] / HORIZONTAL_SECONDS[UNDEFENDED][0]
    ratios = [own[turn] / plain[turn] for turn in own if turn in plain]
    return [title, spread([*own.values()]), spread(ratios, 2), f"{paper:.2f}"]


def timed(place: Document, settings: Document, *, scratch: str) -> Rows:
    """Run one federation; one row with its seconds per epoch, and of all predictions."""
    try:
        with finished(settings, scratch) as done:
            train, infer = done.value(Name.TRAIN_SECONDS), done.value(Name.PREDICT_SECONDS)
    except (ConfigError, DefenseError) as error:
        return [{**place, "refused": f"was refused: {error}"}]
    assert train is not None, "a finished run has trained"
    assert infer is not None, "a finished run has predicted"
    return [{**place, "train": train / settings["training"]["epochs"], "infer": infer}]


def _timed(study: Study, repetitions: int) -> Study:
    return replace(study, training={**study.training, "epochs": _EPOCHS}, seeds=repetitions)


def _table(study: Study, rows: Rows) -> TextTable:
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
    return TextTable(f"{study.name} beside {study.beside}", heads, shown)


def _times(rows: Rows, title: str, beside: str) -> list[str]:
    shown = []
    for k, what in enumerate(("train", "infer")):
        own, plain = ({r["seed"]: r[what] for r in where(rows, defense=t)} for t in (title, UNDEFENDED))
        place = 2 * MODELS.index(beside) + k
        paper = VERTICAL_SECONDS[title][place] / VERTICAL_SECONDS[UNDEFENDED][place]
        ratios = [own[turn] / plain[turn] for turn in own if turn in plain]
        shown += [spread([*own.values()]), spread(ratios, 2), f"{paper:.2f}"]
    return shown


def _printed(title: str, seconds: Mapping[str, Sequence[float]], models: Sequence[str]) -> TextTable:
    rows = [
        [d, *(f"{v[2 * i]:.2f} / {v[2 * i + 1]:.2f}" for i in range(len(models)))] for d, v in seconds.items()
    ]
    return TextTable(title, ["method, seconds", *models], rows)
