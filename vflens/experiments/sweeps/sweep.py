"""A sweep: one experiment under every strength of every defence and several seeds, always with all attacks.

Each cell is a whole federation in one process, in a temporary folder, so that every attack meets every
defence in the real protocol. :class:`vflens.experiments.sweeps.pool.Pool` runs the cells; an interrupted
sweep resumes.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field, FiniteFloat, model_validator

from vflens.config import Settings
from vflens.errors import ConfigError, DefenseError
from vflens.experiments.figures import render
from vflens.experiments.pages.page import write_page
from vflens.experiments.results.results import up_to_affine
from vflens.experiments.run.any_experiment import DefenseAt, Scenario
from vflens.experiments.run.dealer import data_set
from vflens.experiments.run.experiment import Experiment, load_as
from vflens.experiments.run.horizontal import HorizontalExperiment
from vflens.experiments.sweeps import cap
from vflens.experiments.sweeps.pool import Cell, Part, Pool, Rows, write_rows
from vflens.experiments.sweeps.sweep_page import UNDEFENDED, called, drawing
from vflens.types import Document, Role

if TYPE_CHECKING:
    from vflens.experiments.results.folders import Run
    from vflens.experiments.results.results import LabelResult, Result


class SweptDefense(DefenseAt):
    """A defence at several strengths; every other key is one of its parameters."""

    vary: str | None = Field(
        None, description="the parameter that is its strength; without one it is swept as it stands"
    )
    values: tuple[FiniteFloat, ...] = Field((), description="its strengths")
    label: str | None = Field(None, description="what plots call it; default: its name")

    @model_validator(mode="after")
    def _strengths_differ(self) -> SweptDefense:
        if bool(self.vary) != bool(self.values):
            raise ValueError("vary and values belong together: give both or neither")
        if len(set(self.values)) < len(self.values):
            raise ValueError(f"values {[*self.values]}: give every strength once, more `seeds` repeat it")
        return self

    @property
    def title(self) -> str:
        """What plots call it."""
        return self.label or self.name

    def at_strength(self, value: float | None) -> DefenseAt:
        """The defence with its parameter set, if one varies; a whole number stays one."""
        parameters = {k: v for k, v in self.parameters.items() if k not in {"vary", "values", "label"}}
        if self.vary is None or value is None:
            return DefenseAt(name=self.name, at=self.at, **parameters)
        whole = int(value) if float(value).is_integer() else value
        return DefenseAt(name=self.name, at=self.at, **{**parameters, self.vary: whole})


class Sweep(Settings):
    """The variations. The undefended federation is always one of the cells."""

    seeds: int = Field(3, ge=1, description="repetitions; their seeds count up from the experiment's")
    defenses: tuple[SweptDefense, ...] = Field((), description="each at all of its strengths")

    @model_validator(mode="after")
    def _titles_differ(self) -> Sweep:
        titles = [d.title for d in self.defenses]
        if len({*titles, UNDEFENDED}) <= len(titles):
            raise ValueError(f"defenses {titles}: give each its own `label`, other than {UNDEFENDED!r}")
        return self


class SweepFile(Experiment):
    """An experiment with a table ``[sweep]`` and without scenarios."""

    sweep: Sweep

    @model_validator(mode="before")
    @classmethod
    def _is_vertical(cls, settings: Any) -> Any:
        if isinstance(settings, dict) and "horizontal" in settings:
            raise ValueError(
                "a sweep is of a vertical federation: remove [horizontal], or give each setting a file of "
                "its own and use `vflens run` and `vflens compare`"
            )
        return settings

    @model_validator(mode="after")
    def _cells_are_simulations(self) -> SweepFile:
        if self.model_fields_set & {"scenarios"}:
            raise ValueError("a sweep makes its own scenarios: remove [[scenarios]]")
        if not self.lab:
            raise ValueError("a sweep is a simulation: lab must be true")
        if not self.attacks:
            raise ValueError("a sweep without [[attacks]] measures nothing: add some")
        for a in self.attacks:
            if up_to_affine(a.name):
                raise ValueError(
                    f"attack {a.name!r} finds columns up to an affine map only: a sweep compares errors, it "
                    "belongs to `vflens run`"
                )
        for d in self.sweep.defenses:
            if d.at not in self.roles():
                raise ValueError(f"party {d.at!r} of defence {d.title!r} is none of {[*self.roles()]}")
        return self


def load_sweep(file: Path) -> SweepFile:
    """The sweep in ``file``; see :func:`vflens.experiments.run.experiment.load_experiment`.

    Raises:
        ConfigError: unreadable, not TOML, or a setting that is missing, unknown or out of range.
    """
    return load_as(SweepFile, file)


def cells(sweep: SweepFile) -> list[Cell]:
    """One cell per seed and defence at one strength, the undefended ones first.

    Their keys hold digests of the parties' own files: a resumed sweep never mixes rows of two tables.
    """
    plain = sweep.model_dump(mode="json", exclude={"sweep", "scenarios", "out"}, exclude_none=True)
    contents = {name: _digest(spec.file) for name, spec in sweep.files.items()}
    strengths: list[tuple[str, float | None, list[DefenseAt]]] = [(UNDEFENDED, 0.0, [])]
    strengths += [(d.title, v, [d.at_strength(v)]) for d in sweep.sweep.defenses for v in d.values or (None,)]
    found = []
    for title, value, defenses in strengths:
        scenario = Scenario(name="cell", defenses=tuple(defenses)).model_dump(mode="json")
        for i in range(sweep.sweep.seeds):
            place = {"defense": title, "strength": value, "seed": sweep.seed + i}
            settings = {**plain, "seed": sweep.seed + i, "scenarios": [scenario]}
            key = {"place": place, "experiment": settings, "files": contents}
            found.append(Cell(key, (place, settings)))
    return found


def _digest(file: Path) -> str | None:
    """Digest of the file's bytes; None if it cannot be read: its reader gives the better error."""
    try:
        with file.open("rb") as stream:
            return hashlib.file_digest(stream, "blake2b").hexdigest()
    except OSError:
        return None


def run_cell(place: Document, settings: Document, *, scratch: str) -> Rows:
    """Run one federation; a row per attack, target and scored set, and one (``refused``) per failure.

    Rows of attacks on labels name the ``adversary``, since several parties may run the same one. Their error
    is the share of wrong labels.

    Its folder, with every party's table, lies below ``scratch`` and is removed at the end.
    """
    try:
        with finished(settings, scratch) as done:
            return _cell_rows(place, done, *done.of_role(Role.ACTIVE), *done.of_role(Role.SERVER))
    except (ConfigError, DefenseError) as error:
        return [{**place, "refused": f"was refused: {error}"}]


@contextmanager
def finished(settings: Document, scratch: str) -> Iterator[Run]:
    """The run of an experiment's one scenario, in this process; its folder below ``scratch`` is then removed.

    Raises:
        VflensError: the error of the party that failed.
    """
    from vflens.experiments.results.folders import read_runs
    from vflens.experiments.run.run import run

    Path(scratch).mkdir(parents=True, exist_ok=True)  # a cluster's machine may lack it
    with tempfile.TemporaryDirectory(dir=scratch) as home:
        kind = HorizontalExperiment if "horizontal" in settings else Experiment
        experiment = kind.model_validate({**settings, "out": home})
        folder = run(experiment, in_process=True).scenarios[0]
        (done,) = read_runs([folder])
        yield done


def _cell_rows(place: Document, done: Run, active: str) -> Rows:
    """Rows of a finished run: of attacks without an error, on labels, on columns."""
    from vflens.experiments.results.results import failed, final, label_results, skipped, utility
    from vflens.experiments.results.theory import beside

    use = {name: float(value) for name, value in utility(done).items()}
    scored, labels, theory = final(done), label_results(done), beside(done)
    found = {(r.attack, active) for r in scored} | {(r.attack, r.adversary) for r in labels}
    absent = {(s.attack, s.adversary): f"was skipped: {s.reason}" for s in skipped(done)}
    absent |= {(f.attack, f.adversary): f"failed: {f.reason}" for f in failed(done)}
    unscored = {attack: reason for (attack, party), reason in absent.items() if (attack, party) not in found}
    without = [{**place, "attack": attack, "refused": reason} for attack, reason in unscored.items()]
    named = [{**place, **_label_row(r), **use} for r in labels]
    reconstructed = [
        {**place, **_column_row(r), **theory.get((r.attack, r.target, r.scored_set), {}), **use}
        for r in scored
    ]
    return without + named + reconstructed


def _label_row(r: LabelResult) -> Document:
    row = {"attack": r.attack, "adversary": r.adversary, "target": r.target, "scored_set": r.scored_set}
    errors = {"label_accuracy": r.accuracy, "label_auc": r.auc, "blind": r.blind, "relative": r.relative}
    return {**row, "rows": r.rows, **errors}


def _column_row(r: Result) -> Document:
    row = {"attack": r.attack, "target": r.target, "scored_set": r.scored_set, "rows": r.rows}
    return {**row, "mse": r.mse, "blind": r.blind, "relative": r.relative}


def run_sweep(sweep: SweepFile, pool: Pool, out: Path, command: str) -> Document:
    """Run the missing cells of ``sweep``, then write ``out/sweep.parquet`` and ``out/sweep.html``.

    Raises:
        ConfigError: no attack gave an error in any cell, or another process runs the same sweep.
        VflensError: another error in a cell; finished cells stay.
    """
    with pool.alone():
        return _run_sweep(sweep, pool, out, command)


def run_part(sweep: SweepFile, pool: Pool, part: Part) -> Document:
    """Run the missing cells of one part of ``sweep``; :func:`run_sweep` merges what all parts left.

    Raises:
        ConfigError: another process runs the same part, or merges.
        VflensError: an error in a cell; finished cells stay.
    """
    everything = cells(sweep)
    share = part.share(everything)
    with pool.alone(part):
        _computed(pool, share)
        finished = pool.finished(everything)
    facts = {"sweep": sweep.name, "part": f"{part.number}/{part.of}", "part_cells": len(share)}
    return {**facts, "cells": len(everything), "finished": finished}


def _computed(pool: Pool, those: Sequence[Cell]) -> list[Rows]:
    with tempfile.TemporaryDirectory(
        prefix="vflens-sweep-"
    ) as scratch:  # an interruption may kill workers within a cell
        return pool.run(partial(run_cell, scratch=scratch), those)


def _run_sweep(sweep: SweepFile, pool: Pool, out: Path, command: str) -> Document:
    everything = [row for found in _computed(pool, cells(sweep)) for row in found]
    rows = [{k: v for k, v in r.items() if k != "refused"} for r in everything if not r.get("refused")]
    refused = refusals(everything)
    if not rows:
        raise ConfigError(
            refused[0] if refused else "no attack was scored in any cell: run one with `vflens run`"
        )
    data, page = out / "sweep.parquet", out / "sweep.html"
    write_rows(data, rows)
    title = f"{sweep.name}: every attack against every defence"
    alarms = disagreements(rows)
    caveat = data_set(sweep.data).caveat if sweep.data is not None else ""
    stated = [f"{caveat}."] if caveat else []
    loud = [f"THEORY AND MEASUREMENT DISAGREE: {alarm}" for alarm in alarms]
    varied = {d.title: d.vary for d in sweep.sweep.defenses if d.vary is not None}
    notes = [*stated, cap.WORDS, *loud, *refused]
    drawn = replace(drawing(rows, notes), tables=cap.tables(rows, varied))
    write_page(page, render(title, drawn, data=data.name, command=command))
    pool.forget()
    return {
        "sweep": sweep.name,
        "cells": len(cells(sweep)),
        "rows": len(rows),
        "caveat": caveat,
        "refused": refused,
        "theory_disagreements": alarms,
        "data": str(data),
        "page": str(page),
    }


def disagreements(rows: Sequence[Document]) -> list[str]:
    """One sentence per cell and attack whose error disagrees with theory."""
    return [
        f"{called(r['defense'], r['strength'], ' at ')}, seed {r['seed']}: {r['alarm']}"
        for r in rows
        if r.get("alarm")
    ]


def refusals(rows: Sequence[Document]) -> list[str]:
    """One sentence per refused strength of a defence, and per attack without a result against it."""
    found = {}
    for r in rows:
        if r.get("refused"):
            attack = r.get("attack")
            where = called(r["defense"], r["strength"], " at ")
            found[where, attack] = f"{where}{'' if attack is None else f': {attack}'} {r['refused']}"
    return list(found.values())
