"""Evidence from what commands found: runs, an audit, a sweep's rows, a score."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from vflens.experiments.audit.record import AuditRecord
from vflens.experiments.evidence.thresholds import BlindError, Evidence
from vflens.experiments.outcome.decide import HARDLY
from vflens.experiments.results.own_units import FoundColumn
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.results.results import half_width
from vflens.experiments.results.titles import defenses, places, rows_of
from vflens.plugins.attack import installed_attack, is_blind
from vflens.storage.arrow import REFUSED
from vflens.types import Document, Facts

if TYPE_CHECKING:
    import pyarrow as pa

NO_DEFENCE = "no defence"


def of_runs(runs: Sequence[RecordedRun]) -> list[Evidence]:
    """Of each run: what its attacks found of columns, labels and membership."""
    return [
        Evidence(
            where=where,
            defended=bool(defenses(run)),
            columns=tuple(_names(run)),
            found=run.found_columns,
            errors=(*_errors(run), *_labels(run), *_membership(run), *_affine(run)),
            failed=tuple(dict.fromkeys(f.attack for f in run.failed)),
        )
        for run, where in zip(runs, places(runs), strict=True)
    ]


def _names(run: RecordedRun) -> Iterator[str]:
    """The columns of all parties, and a numeric label."""
    for info in run.infos().values():
        yield from (c.name for c in (*info.columns, *filter(None, [info.label])) if not c.pixel)


def _errors(run: RecordedRun) -> Iterator[BlindError]:
    for r in run.results:
        if not is_blind(r.attack):
            what = "label" if run.label_of(r.target) else "columns"
            subject = f"{what} of {r.target}, {rows_of(r.scored_set)}"
            yield BlindError(r.attack, subject, r.rows, r.mse, blind=r.blind, half_width=r.half_width)


def _labels(run: RecordedRun) -> Iterator[BlindError]:
    for r in run.labels:
        subject = f"labels of {r.target}, {r.kind} rows"
        yield BlindError(r.attack, subject, r.rows, r.accuracy, blind=r.blind, share=True)


def _membership(run: RecordedRun) -> Iterator[BlindError]:
    """AUC as if it were a share of the smaller class, half of the candidates: its variance is at most
    A(1 − A)/min(m, n) (Birnbaum and Klose, Annals of Mathematical Statistics 28 (1957)).
    """
    for r in run.membership:
        subject = f"pairs of a training row of {r.target} and another"
        yield BlindError(r.attack, subject, max(1, r.rows // 2), r.auc, blind=r.blind, share=True)


def _affine(run: RecordedRun) -> Iterator[BlindError]:
    """Attacks that leave an affine map open, where it explains more than hardly anything: no interval."""
    rows = {(m.attack, m.target): m.rows for p in run.parties for m in p.metrics if m.name == "affine_r2"}
    for (attack, target), r2 in run.explained.items():
        n, d = rows[attack, target], len(run.columns_of(target))
        adjusted = 1 - (1 - r2) * (n - 1) / (n - d - 1) if n > d + 1 else 1.0
        if adjusted > HARDLY:
            subject = f"columns of {target} after the best affine map, training rows"
            yield BlindError(attack, subject, n, 1 - adjusted, blind=1.0)


def of_audit(record: AuditRecord) -> Evidence:
    """Of an audit: every attack on the planned or given model without a defence, over simulated models."""
    shares, errors = [], []
    for a in record.attacks:
        model = f"{a.kind} models" + (f", {a.released}" if a.released else "")
        place = (a.attack, f"{record.subject}, {model}", a.phase, a.rows)
        for j, column in enumerate(record.columns):
            if column in record.tolerance:  # pixels have none
                of_column = a.found[j], a.blind_found[j], a.imputed_found[j], record.tolerance[column]
                shares.append(FoundColumn(*place, column, *of_column))
        blind = math.fsum(a.column_blind) / len(a.column_blind)
        words = f"columns of {place[1]}, {rows_of(a.phase)}"
        half = half_width(a.stderr)
        errors.append(BlindError(a.attack, words, a.rows, a.mse, blind=blind, half_width=half))
    return Evidence(
        *("the audit", False, record.columns, tuple(shares), tuple(errors), tuple(record.failed)),
        capped=dict(_capped(record)),
    )


def _capped(record: AuditRecord) -> Iterator[tuple[str, int]]:
    """The slow attacks of an audit that tried fewer rows than there are, and how many."""
    for a in record.attacks:
        kind = installed_attack(a.attack)
        slow = kind is not None and kind.audited is not None and kind.audited.rows is not None
        if slow and a.rows < (record.attacked_rows or 0):
            yield a.attack, a.rows


def of_sweep(rows: Sequence[Facts], undefended: str, refused: Sequence[Facts] = ()) -> list[Evidence]:
    """Of the results of a sweep: one for each federation, those called ``undefended`` first. Of what was
    ``refused`` an attack that failed and a whole federation stand among what failed.
    """
    cells: dict[str, list[Facts]] = {}
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


def _of_cell(where: str, found: Sequence[Facts], undefended: str) -> Evidence:
    cell = [r for r in found if not r.get("refused")]
    failed = tuple(r.get("attack") or "the federation" for r in found if r.get("refused"))
    shares = tuple(FoundColumn(**f) for r in cell if r.get("found") for f in json.loads(r["found"]))
    columns = tuple(dict.fromkeys(f.column for f in shares))
    errors = tuple(_of_row(r) for r in cell if not is_blind(r["attack"]))
    defended = found[0]["defense"] != undefended
    return Evidence(where, defended, columns, found=shares, errors=errors, failed=failed)


def _of_row(r: Facts) -> BlindError:
    for name, what, rows in (
        ("label_accuracy", "labels", r["rows"]),
        ("membership_auc", "pairs", r["rows"] // 2),
    ):
        if r.get(name) is not None:
            subject = f"{what} of {r['target']}, {rows_of(r['scored_set'])}"
            return BlindError(r["attack"], subject, max(1, rows), r[name], blind=r["blind"], share=True)
    what = "label" if r.get("label") else "columns"
    subject = f"{what} of {r['target']}, {rows_of(r['scored_set'])}"
    errors = {"blind": r["blind"], "half_width": r.get("half_width")}
    return BlindError(r["attack"], subject, r["rows"], r["mse"], **errors)


def of_score(facts: Facts) -> Evidence:
    """Of one score by the target."""
    columns = {name: c for name, c in facts.get("columns", {}).items() if "found" in c and "blind_found" in c}
    shares = [
        FoundColumn(
            *(facts["attack"], "the target", "scored", facts["rows"]),
            column=name,
            found=c["found"],
            blind=c["blind_found"],
            imputation=None,
            tolerance=c["tolerance"],
        )
        for name, c in columns.items()
    ]
    return Evidence(
        "the estimate", False, tuple(columns), found=tuple(shares), errors=tuple(_of_score(facts))
    )


def _of_score(facts: Facts) -> Iterator[BlindError]:
    attack, rows = facts["attack"], facts["rows"]
    for name in ("label_accuracy", "matched_label_accuracy"):
        if name in facts:
            yield BlindError(attack, "labels", rows, facts[name], blind=facts[f"blind_{name}"], share=True)
    if "membership_auc" in facts:
        yield BlindError(
            attack, "pairs of rows", max(1, rows // 2), facts["membership_auc"], blind=0.5, share=True
        )
    for name in ("mse", "matched_mse"):
        if f"blind_{name}" in facts:
            half = facts.get("half_width") if name == "mse" else None
            yield BlindError(
                attack, "columns", rows, facts[name], blind=facts[f"blind_{name}"], half_width=half
            )
