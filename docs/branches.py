"""Three branches of Bank train together: which branch is a predicted customer from, to whoever gets scores?

``VFLENS_DATA=… python docs/branches.py`` deals the customers by their job, and at random, and prints what the
report says of each; the picture goes into ``docs/attacks/branches.svg``. One minute.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from plugin_pictures import DOCS, bars

from vflens.datasets.bank import Bank, _raw
from vflens.experiments.results.labels_membership import sites_told
from vflens.experiments.results.record import read_runs
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.experiments.run.run import run
from vflens.tables.table import Table
from vflens.types import Array

OFFICE = ("admin.", "management", "entrepreneur", "self-employed")
HANDS = ("blue-collar", "technician", "services", "housemaid")
BRANCHES = ("at-a-desk", "by-hand", "others")
KNOWN, ASKED = 1000, 1000  # rows of each branch


def branches(jobs: Array) -> Array:
    """The branch of each customer: by the kind of job; retired, students and without one are the others."""
    found: Array = np.select([np.isin(jobs, OFFICE), np.isin(jobs, HANDS)], [0, 1], 2)
    return found


def written(table: Table, rows: Array, file: Path) -> Mapping[str, Any]:
    """``rows`` of ``table`` without the job in ``file``, and the settings that read it."""
    kept = [i for i, c in enumerate(table.columns) if c.name != "job"]
    names, labels = [table.columns[i].name for i in kept], table.labels
    assert labels is not None
    with file.open("w", newline="") as opened:
        to = csv.writer(opened)
        to.writerow(["id", *names, "y"])
        for i in rows:
            to.writerow([i, *(f"{v:.12g}" for v in table.features[i, kept]), ("no", "yes")[labels[i]]])
    ends = zip(table.features.min(axis=0).tolist(), table.features.max(axis=0).tolist(), strict=True)
    bounds = {c.name: list(of) for c, of in zip(table.columns, ends, strict=True) if c.name in names}
    return {"file": str(file), "label_column": "y", "classes": ["no", "yes"], "bounds": bounds}


def measured(table: Table, dealt: Array, home: Path) -> Any:
    """The finding of a run of branches that have the customers so ``dealt``."""
    files = {}
    for place, name in enumerate(BRANCHES):
        files[name] = written(table, np.flatnonzero(dealt == place), home / f"{name}.csv")
    grants = {"auxiliary": KNOWN, "candidates": 2 * ASKED}  # half of them are predicted, and judged
    settings = {
        "name": "branches",
        "seed": 1,
        "out": str(home / "runs"),
        "files": files,
        "predict_share": 0.4,
        "split": {"kind": "rows"},
        "parties": {"clients": list(BRANCHES)},
        "horizontal": {"rounds": 5, "local_epochs": 5},
        "disclose": [{"what": what, "to": "server", "rows": rows} for what, rows in grants.items()],
        "attacks": [{"name": "source_by_scores"}],
    }
    (done,) = read_runs(run(HorizontalExperiment.model_validate(settings), in_process=True).scenarios)
    return done.sites


def main() -> None:
    """Both deals."""
    table, by_job = Bank().load(), branches(_raw()["job"])
    deals = {"by job": by_job, "at random": np.random.default_rng(1).permutation(by_job)}
    shown, guess = [], 0.0
    for title, dealt in deals.items():
        with TemporaryDirectory() as home:
            (found,) = measured(table, dealt, Path(home))
        print(f"{title}: {sites_told([found])[0]}")
        shown += [(f"{title}, {found.state}", found.value, f"{found.value:.3f}")]
        shown += [(f"{title}, branches permuted", found.blind, f"{found.blind:.3f}")]
        guess = 1 / len(BRANCHES)
    title = "three branches of Bank: predicted rows whose branch is named rightly (dashed: 1/3)"
    (DOCS / "attacks" / "branches.svg").write_text(bars(title, shown, guess))


if __name__ == "__main__":
    main()
