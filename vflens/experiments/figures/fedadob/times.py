"""Tables VII and VIII: processor seconds per epoch of training and of inference."""

import tempfile
import time
from collections.abc import Mapping, Sequence
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
from vflens.experiments.results.utility import figures_by_party
from vflens.experiments.sweeps.pool import Cell, Rows
from vflens.experiments.sweeps.sweep import finished, refusals
from vflens.member.stage import CLOCK
from vflens.numerics.measures.intervals import spread
from vflens.storage.metrics import Name
from vflens.types import Document
from vflens.words import counted

_REPETITIONS = {"quick": 10, "default": 5, "full": 5}
_EPOCHS = 3


def table7(options: FigureOptions) -> Drawing:
    """Processor seconds per epoch of training, and of predicting the prediction rows, method by method."""
    done = [_timed(s, _REPETITIONS[options.size]) for s in studies(options)]
    rows = _in_turns(options, [c for s in done for c in cells(s, TIMED, options.seed, ())])
    found = with_figures(rows)
    tables = [_table(s, where(found, model=s.name)) for s in done]
    lead = (
        "Methods take turns, one federation in this process at a time, one numeric thread, whatever --jobs "
        "says. Seconds are this process's on the processor: other work on the machine does not count. They "
        "are for its number of rows, so compare the ratios to no defence. Training is the federation's, "
        "messages and logs included. Intervals are 95 % over repetitions (Student's t)."
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
    """Processor seconds per round of horizontal training, of one local epoch at every client, and of
    predicting the prediction rows of all clients, method by method.
    """
    of = replace(study(options), seeds=_REPETITIONS[options.size])
    of = replace(of, horizontal={"rounds": _EPOCHS})
    rows = _in_turns(options, cells(of, CLIENT_TIMED, options.seed, ()))
    found = with_figures(rows)
    shown = [[m.title, *_ratios(found, m.title, HORIZONTAL_SECONDS)] for m in CLIENT_TIMED]
    table = TextTable(f"{of.name} beside {of.beside}", _heads("a round"), shown)
    lead = (
        "Methods take turns, one federation in this process at a time, one numeric thread: clients work one "
        "after the other. Seconds are this process's on the processor: other work on the machine does not "
        "count. Compare the ratios to no defence. Intervals are 95 % over repetitions (Student's t). A "
        "client predicts with its own whole model; the seconds of all clients are added."
    )
    only = [m for m in HORIZONTAL_MODELS if m != of.beside]
    notes = [
        f"{of.name}: {counted(of.clients, 'client')}.",
        f"Paper only, not run here: {', '.join(only)}.",
    ]
    printed = _printed("Table VIII as printed: training / inference", HORIZONTAL_SECONDS, HORIZONTAL_MODELS)
    return Drawing(found, [], lead, [*notes, *refusals(rows)], tables=[table, printed])


def _in_turns(options: FigureOptions, wanted: Sequence[Cell]) -> Rows:
    """What is :func:`timed` in this process of the ``wanted`` federations: all methods once, then again."""
    turns = sorted(wanted, key=lambda c: c.key["place"]["seed"])
    with tempfile.TemporaryDirectory(prefix="vflens-figure-") as scratch:
        first = study(replace(options, size="quick")).settings(options.seed, (), CLIENT_TIMED[0], 0.0)
        with finished(first, scratch):  # the first federation of a process takes longer, whatever it is
            pass
        parts = replace(options.pool, jobs=1).run(partial(timed, scratch=scratch), turns)
    return [row for part in parts for row in part]


def timed(place: Document, settings: Document, *, scratch: str) -> Rows:
    """Run one federation; one row with its processor seconds per epoch or round, and of all predictions."""
    clock = CLOCK.set(time.process_time)
    try:
        with finished(settings, scratch) as done:
            train = done.value(Name.TRAIN_SECONDS)
            infer = sum(figures_by_party(done, Name.PREDICT_SECONDS).values())
    except (ConfigError, DefenseError) as error:
        return [{**place, "refused": f"was refused: {error}"}]
    finally:
        CLOCK.reset(clock)
    assert train is not None, "a finished run has trained"
    return [{**place, "train": train / _EPOCHS, "infer": infer}]


def _timed(study: Study, repetitions: int) -> Study:
    return replace(study, training={**study.training, "epochs": _EPOCHS}, seeds=repetitions)


def _table(study: Study, rows: Rows) -> TextTable:
    first = 2 * MODELS.index(study.beside)
    printed = {title: seconds[first : first + 2] for title, seconds in VERTICAL_SECONDS.items()}
    shown = [[m.title, *_ratios(rows, m.title, printed)] for m in TIMED]
    return TextTable(f"{study.name} beside {study.beside}", _heads("an epoch"), shown)


def _heads(turn: str) -> list[str]:
    ratios = ["ratio", "ratio, paper"]
    return ["method", f"training, processor seconds {turn}", *ratios, "inference, processor seconds", *ratios]


def _ratios(rows: Rows, title: str, printed: Mapping[str, Sequence[float]]) -> list[str]:
    """Seconds of training and of inference, each with its ratio to no defence, turn by turn, and the paper's
    from its ``printed`` seconds.
    """
    shown = []
    for k, what in enumerate(("train", "infer")):
        own, plain = ({r["seed"]: r[what] for r in where(rows, defense=t)} for t in (title, UNDEFENDED))
        ratios = [own[turn] / plain[turn] for turn in own if turn in plain]
        shown += [
            spread([*own.values()]),
            spread(ratios, 2),
            f"{printed[title][k] / printed[UNDEFENDED][k]:.2f}",
        ]
    return shown


def _printed(title: str, seconds: Mapping[str, Sequence[float]], models: Sequence[str]) -> TextTable:
    rows = [
        [d, *(f"{v[2 * i]:.2f} / {v[2 * i + 1]:.2f}" for i in range(len(models)))] for d, v in seconds.items()
    ]
    return TextTable(title, ["method, seconds", *models], rows)
