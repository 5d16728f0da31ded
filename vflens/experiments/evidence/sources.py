"""What an audit's document and a sweep's rows hold, as findings."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from vflens.experiments.audit.outcomes import AttackOutcome
from vflens.experiments.audit.record import AuditRecord
from vflens.experiments.evidence.measured import RELEASE, TRAFFIC
from vflens.experiments.outcome.finding import Finding, Findings, Quantity, with_tries
from vflens.experiments.outcome.table import with_figures, without_figures
from vflens.numerics.measures.intervals import ends_of, half_width
from vflens.plugins.attack import installed_attack
from vflens.storage.arrow import REFUSED
from vflens.types import Document, Facts, Phase

if TYPE_CHECKING:
    import pyarrow as pa

NO_DEFENCE = "no defence"


def of_audit(record: AuditRecord, source: str = "") -> Findings:
    """An audit: every attack on the planned or given model without a defence, over simulated models."""
    every = [f for a in record.attacks for f in _of_attack(record, a)]
    people = [
        replace(f, adversary=TRAFFIC if f.scored_set == Phase.TRAIN else RELEASE)
        for case in record.worst_cases
        for f in case.findings
    ]
    order = Quantity.WITHIN, Quantity.ALL, Quantity.ERROR
    return Findings(
        where="the audit",
        found=with_tries((*sorted(every, key=lambda f: order.index(f.quantity)), *people)),
        columns=record.columns,
        failed=tuple(record.failed),
        capped=dict(_capped(record)),
        source=source,
        more=lambda key, rows: record.plan.stated(
            key, rows + record.known_rows if key == "rows" else record.attacked_rows
        ),
    )


def _of_attack(record: AuditRecord, a: AttackOutcome) -> Iterator[Finding]:
    """One attack: each column to within its tolerance, in its own unit, and all of them."""
    model = f"{a.kind} models" + (f", {a.released}" if a.released else "")
    place: Facts = {
        **{"attack": a.attack, "target": f"{record.subject}, {model}", "scored_set": a.phase},
        **{
            "rows": a.rows,
            "there": record.table_rows,
            "adversary": TRAFFIC if a.phase is Phase.TRAIN else RELEASE,
        },
    }
    whole = {f.subject: {"varies": f.varies, "deciding": f.deciding} for f in record.by_column}
    for j, column in enumerate(record.columns):
        own: Facts = {**place, "subject": column, **whole.get(column, {})}
        if column in record.tolerance:  # pixels have none
            guesses = {"imputation": a.imputed_found[j], "tolerance": record.tolerance[column]}
            of: Facts = {**own, **guesses, "blind": a.blind_found[j]}
            yield Finding.of_share(Quantity.WITHIN, a.found[j], **of)
        if record.units:
            squares = _ends(a.columns[j], a.column_stderr[j], a.column_blind[j])
            roots: Facts = {name: math.sqrt(square) * record.units[j] for name, square in squares.items()}
            yield Finding(quantity=Quantity.ERROR, **own, **roots)
    figures = _ends(a.mse, a.stderr, math.fsum(a.column_blind) / len(a.column_blind))
    yield Finding(quantity=Quantity.ALL, subject="columns", **place, **figures)


def _ends(mse: float, stderr: float, blind: float) -> Facts:
    return {"value": mse, **ends_of(mse, half_width(stderr)), "blind": blind}


def _capped(record: AuditRecord) -> Iterator[tuple[str, int]]:
    """The slow attacks of an audit that tried fewer rows than there are, and how many."""
    for a in record.attacks:
        kind = installed_attack(a.attack)
        slow = kind is not None and kind.audited is not None and kind.audited.rows is not None
        if slow and a.rows < (record.attacked_rows or 0):
            yield a.attack, a.rows


def of_sweep(rows: Sequence[Document], undefended: str, refused: Sequence[Document] = ()) -> list[Findings]:
    """A sweep's results: one for each federation, those called ``undefended`` first. Of what was
    ``refused`` an attack that failed and a whole federation stand among what failed.
    """
    cells: dict[str, list[Document]] = {}
    for r in (*rows, *filter(_broke, refused)):
        cells.setdefault(f"with {cell_name(r, undefended)}, seed {r['seed']}", []).append(r)
    return [_of_cell(where, cell, undefended) for where, cell in cells.items()]


def _broke(row: Facts) -> bool:
    """Whether a ``row`` without a figure is more than an attack that lacked knowledge."""
    return not row.get("attack") or str(row["refused"]).startswith("failed")


def refused_in(table: pa.Table) -> list[Document] | None:
    """The rows of a sweep's ``table`` without a figure, each with why (``refused``); None where an older
    version wrote it.

    Raises:
        ValueError: they are damaged.
    """
    kept = (table.schema.metadata or {}).get(REFUSED.encode())
    if kept is None:
        return None
    found: list[Document] = json.loads(kept)
    return found


def cell_name(r: Facts, undefended: str) -> str:
    """The defence of a sweep's row ``r`` with its strength, and what else varies, but the seed."""
    if r["defense"] == undefended:
        return f"{NO_DEFENCE}{varied(r)}"
    strength = "" if r.get("strength") is None else f" {r['strength']:g}"
    return f"{r['defense']}{strength}{varied(r)}"


def varied(r: Facts) -> str:
    """The settings that vary besides the defence of a sweep's row ``r``."""
    return "".join(f", {k} = {v}" for k, v in r.items() if k.startswith("horizontal."))


def _of_cell(where: str, rows: Sequence[Document], undefended: str) -> Findings:
    cell = with_figures(rows)
    found = with_tries(Finding.of_json(f) for r in cell for f in r.get("findings") or ())
    order = sorted(found, key=lambda f: f.quantity is not Quantity.WITHIN)
    return Findings(
        where=where,
        found=tuple(order),
        columns=tuple(dict.fromkeys(f.subject for f in found if f.quantity is Quantity.WITHIN)),
        defended=rows[0]["defense"] != undefended,
        failed=tuple(r.get("attack") or "the federation" for r in without_figures(rows)),
    )
