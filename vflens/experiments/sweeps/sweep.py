"""A sweep: one experiment under every strength of every defence and several seeds, always with all attacks.

Each cell is a whole federation in one process, in a temporary folder, so that every attack meets every
defence in the real protocol. :class:`vflens.experiments.sweeps.pool.Pool` runs the cells; an interrupted
sweep resumes.
"""

from __future__ import annotations

import json
import math
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from vflens.errors import ConfigError, DefenseError, ProtocolError
from vflens.experiments.outcome.finding import Finding, Quantity
from vflens.experiments.outcome.table import overall, with_figures, without_figures
from vflens.experiments.pages.drawing import Drawing
from vflens.experiments.pages.page import plotly, templates, write_page
from vflens.experiments.results.findings import of_label, of_member
from vflens.experiments.run.dealer import data_set
from vflens.experiments.run.loading import TRAINED, experiment_kind
from vflens.experiments.sweeps import cap
from vflens.experiments.sweeps.explorer import explained, packed
from vflens.experiments.sweeps.pool import Cell, Pool, Rows, Share, write_rows
from vflens.experiments.sweeps.sweep_file import AnySweep, SweepFile, cells
from vflens.experiments.sweeps.sweep_page import called, drawing, of_variant
from vflens.storage.files import write_whole
from vflens.storage.metrics import Name
from vflens.types import Array, Document, Facts

if TYPE_CHECKING:
    from vflens.experiments.results.record import RecordedRun
    from vflens.experiments.results.results import Result

FACTS = "sweep.json"  # beside the cells: what they are cells of
_MOST_TABLES = 100  # on the page
_ASSUMED = {
    True: "What attacks on predictions find says nothing of training. All parties ran in one process: "
    "isolation was a convention.",
    False: "The adversary is the server. All parties ran in one process: isolation was a convention.",
}


def run_cell(place: Document, settings: Document, trains: str = "", *, scratch: str) -> Rows:
    """Run one federation; a row per attack, target and scored set, and one (``refused``) per failure.

    Rows of attacks on labels name the ``adversary``, since several parties may run the same one. Their error
    is the share of wrong labels. Rows of attacks on membership name it too; their error is 1 − AUC. An attack
    on whose row it is has one row of all clients; its error is the share named wrongly.

    Its folder, with every party's table, lies below ``scratch`` and is removed at the end. What decides its
    training is the digest ``trains``: a cell with that of the one before in this process does not train
    again. "": it trains.
    """
    kept = TRAINED.set(_trained(trains) if trains else None)
    try:
        with finished(settings, scratch) as done:
            return _cell_rows(place, done, *done.attackers)
    except (ConfigError, DefenseError) as error:
        return [{**place, "refused": f"was refused: {error}"}]
    except ProtocolError as error:  # nobody lies in one process: its numbers left their range
        return [{**place, "refused": f"did not end: {error}"}]
    finally:
        TRAINED.reset(kept)


@lru_cache(maxsize=1)
def _trained(trains: str) -> dict[str, Mapping[str, Array]]:
    """What the training of this digest left, in the one that this process has."""
    return {}


@contextmanager
def finished(settings: Document, scratch: str) -> Iterator[RecordedRun]:
    """The run of an experiment's one scenario, in this process; its folder below ``scratch`` is then removed.

    Raises:
        VflensError: the error of the party that failed.
    """
    from vflens.experiments.results.record import read_runs
    from vflens.experiments.run.run import begun

    Path(scratch).mkdir(parents=True, exist_ok=True)  # a cluster's machine may lack it
    with tempfile.TemporaryDirectory(dir=scratch) as home:
        experiment = experiment_kind(settings).model_validate({**settings, "out": home})
        (done,) = read_runs([*begun(experiment, in_process=True)])
        yield done


def _cell_rows(place: Document, done: RecordedRun, adversary: str) -> Rows:
    """Rows of a finished run: of attacks without an error, on labels, on membership, on clients, on columns.

    ``adversary`` estimates columns and clients: the active party, or the server.
    """
    use = {name: float(value) for name, value in done.utility.items()}
    theory = _stated(done)
    of_labels = ((of_label(done, r), r) for r in done.labels)
    each = [(f, overall(f, r.adversary, label_auc=r.auc)) for f, r in of_labels]
    for m in done.membership:
        f = of_member(done, m)
        each.append((f, {**overall(f, m.adversary), "rows": m.rows, "scored_set": "candidate"}))
    each += [(f, overall(f, adversary)) for f in done.findings.only(Quantity.SITES)]
    rows = [{**place, **row, **_findings([f]), **use} for f, row in each]
    for r in done.results:
        stated = theory.get((r.attack, r.target, r.scored_set), {})
        rows.append({**place, **_column_row(done, r), **_findings(_of_columns(done, r)), **stated, **use})
    found = {(row["attack"], row.get("adversary", adversary)) for row in rows}
    absent = {(s.attack, s.adversary): f"was skipped: {s.reason}" for s in done.skipped}
    absent |= {(f.attack, f.adversary): f"failed: {f.reason}" for f in done.failed}
    absent |= {(attack, adversary): reason for attack, reason in _partly_named(done)}
    unscored = {attack: reason for (attack, party), reason in absent.items() if (attack, party) not in found}
    return [*({**place, "attack": attack, "refused": reason} for attack, reason in unscored.items()), *rows]


def _partly_named(run: RecordedRun) -> Iterator[tuple[str, str]]:
    """Attacks on whose row it is that some clients scored: a guess is right in 1/K over all of them alone."""
    found: dict[str, set[str]] = {}
    for m in run.metrics(Name.SOURCE_RIGHT):
        found.setdefault(m.attack, set()).add(m.target)
    for attack, clients in found.items():
        if missing := sorted(set(run.alike) - clients):
            names = ", ".join(missing)
            yield attack, f"has no score over all clients: let {names} grant candidates to the server too"


def _stated(run: RecordedRun) -> dict[tuple[str, str, str], Document]:
    """(attack, target, scored set) → ``statement``, ``closed``, ``measured`` (before answers are
    moved into the box) and ``alarm``, for rows of a table.
    """
    found: dict[tuple[str, str, str], Document] = {}
    for c in run.theory:
        compared = not c.excuse and math.isfinite(c.closed)
        closed = {"statement": c.statement, "closed": c.closed, "measured": c.measured} if compared else {}
        found[c.attack, c.target, c.scored_set] = {**closed, **({"alarm": c.alarm} if c.alarm else {})}
    for d in run.disorders:
        if d.alarm:
            row = found.setdefault((d.attack, d.target, "predict"), {})
            row["alarm"] = "; ".join(filter(None, (row.get("alarm"), d.alarm)))
    return found


def _column_row(run: RecordedRun, r: Result) -> Document:
    """A numeric label is the column."""
    label = run.label_of(r.target)
    of_label = {"label": label.name} if label else {}
    return {**overall(run.finding_of(r)), "half_width": r.half_width, **of_label}


def _of_columns(run: RecordedRun, r: Result) -> Iterator[Finding]:
    """What ``r`` finds of each column, to within its tolerance, and of all."""
    place, judged = (r.attack, r.target, r.scored_set), (Quantity.WITHIN, Quantity.ALL)
    return (f for f in run.findings.only(*judged) if (f.attack, f.target, f.scored_set) == place)


def _findings(found: Iterable[Finding]) -> Document:
    return {"findings": [f.json for f in found]}


def run_sweep(sweep: AnySweep, pool: Pool, out: Path, command: str) -> Document:
    """Run the missing cells of ``sweep``, then write ``out/sweep.parquet`` and ``out/sweep.html``.

    Raises:
        ConfigError: no attack gave an error in any cell, or another process runs the same sweep.
        VflensError: another error in a cell; finished cells stay.
    """
    with pool.alone():
        _describe(sweep, pool)
        return _run_sweep(sweep, pool, out, command)


def run_part(sweep: AnySweep, pool: Pool, part: Share) -> Document:
    """Run the missing cells of one part of ``sweep``; :func:`run_sweep` merges what all parts left.

    Raises:
        ConfigError: another process runs the same part, or merges.
        VflensError: an error in a cell; finished cells stay.
    """
    everything = cells(sweep)
    share = part.share(everything)
    with pool.alone(part):
        _describe(sweep, pool)
        _computed(pool, share)
        finished = pool.finished(everything)
    facts = {"sweep": sweep.name, "part": f"{part.number}/{part.of}", "part_cells": len(share)}
    return {**facts, "cells": len(everything), "finished": finished}


def _describe(sweep: AnySweep, pool: Pool) -> None:
    """Write what the cells belong to, for a live page."""
    files = [cell.file() for cell in cells(sweep)]
    facts = {"sweep": sweep.name, "seeds": sweep.sweep.seeds, "files": files}
    write_whole(pool.folder / FACTS, json.dumps(facts).encode(), remedy="another --out")


def _computed(pool: Pool, those: Sequence[Cell]) -> list[Rows]:
    with tempfile.TemporaryDirectory(
        prefix="vflens-sweep-"
    ) as scratch:  # an interruption may kill workers within a cell
        return pool.run(partial(run_cell, scratch=scratch), those)


def _run_sweep(sweep: AnySweep, pool: Pool, out: Path, command: str) -> Document:
    everything = [row for found in _computed(pool, cells(sweep)) for row in found]
    rows = [{k: v for k, v in r.items() if k != "refused"} for r in with_figures(everything)]
    refused = refusals(everything)
    if not rows:
        raise ConfigError(
            refused[0] if refused else "no attack was scored in any cell: run one with `vflens run`"
        )
    data, page = out / "sweep.parquet", out / "sweep.html"
    write_rows(data, rows, without_figures(everything))
    alarms = disagreements(rows)
    caveat = data_set(sweep.data).caveat if sweep.data is not None else ""
    stated = [f"{caveat}."] if caveat else []
    loud = [f"THEORY AND MEASUREMENT DISAGREE: {alarm}" for alarm in alarms]
    varied = {d.title: d.vary for d in sweep.sweep.defenses if d.vary is not None}
    notes = [_ASSUMED[isinstance(sweep, SweepFile)], *stated, cap.WORDS, *loud]
    drawn = replace(drawing(rows, notes), tables=cap.tables(rows, varied)[:_MOST_TABLES])
    title = f"{sweep.name}: every attack against every defence"
    write_page(page, render(title, drawn, refused, data=data.name, command=command))
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


def render(
    title: str,
    drawn: Drawing,
    refused: Sequence[str],
    *,
    data: str,
    command: str,
    opening: Document | None = None,
    ahead: int = 0,
) -> str:
    """The page: title, lead, notes, what has no result, every row, plots, tables, the command; ``opening``:
    what is chosen of its rows at first; ``ahead``: so many tables, and a plot, stand before the
    rows.
    """
    seeds = len({r["seed"] for r in drawn.rows})
    given = {"explained": explained(seeds, opening), "packed": packed(drawn.rows), "ahead": ahead}
    template = templates().get_template("sweep.html.j2")
    given |= {"plotly": plotly(), "data": data, "command": command}
    return template.render(title=title, drawing=drawn, refused=refused, **given)


def disagreements(rows: Sequence[Document]) -> list[str]:
    """One sentence per cell and attack whose error disagrees with theory."""
    return [f"{_place(r)}, seed {r['seed']}: {r['alarm']}" for r in rows if r.get("alarm")]


def refusals(rows: Sequence[Document]) -> list[str]:
    """One sentence per refused strength of a defence, and per attack without a result against it."""
    found = {}
    for r in without_figures(rows):
        attack, where = r.get("attack"), _place(r)
        found[where, attack] = f"{where}{'' if attack is None else f': {attack}'} {r['refused']}"
    return list(found.values())


def _place(row: Facts) -> str:
    """Defence, strength and variant of a row, in words."""
    return called(row["defense"], row["strength"], " at ") + of_variant(row)
