"""Synthetic run folders, written file by file as the parties write them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import tomli_w

from vflens.experiments.results.record import RecordedRun, read_runs

SECRETS = {
    "seed": "SECRET-seed",
    "alignment_key": "SECRET-alignment-key",
    "operator_token": "SECRET-operator-token",
    "peers": [{"name": "other", "token": "SECRET-peer-token"}],
}
SCHEMA = pa.schema(
    [
        ("metric", pa.string()),
        ("value", pa.float64()),
        *(
            (name, pa.string())
            for name in ("attack", "adversary", "target", "scored_set", "column", "detail")
        ),
        ("rows", pa.int64()),
        ("step", pa.int64()),
        ("values", pa.list_(pa.float64())),
    ]
)
PIXELS = [(r, c) for r in (2, 3) for c in (5, 6)]
BLIND = {"zero": 0.3, "half": 0.15, "random": 0.233, "column_means": 0.08}


def metric(name: str, value: float, **labels: Any) -> dict[str, Any]:
    """One row of ``metrics.parquet``."""
    empty = dict.fromkeys(("attack", "adversary", "target", "scored_set", "column", "detail"), "") | {
        "rows": 0,
        "step": 0,
        "values": [],
    }
    return {"metric": name, "value": value, **empty, **labels}


def scores(errors: dict[str, float], rows: int = 360, target: str = "passive") -> list[dict[str, Any]]:
    """What the target's scoring service keeps at one milestone."""
    where = {"target": target, "scored_set": "predict", "rows": rows}
    columns = [f"pixel_{r}_{c}" for r, c in PIXELS]
    return [
        *(metric("blind_mse", mse, attack=guess, **where) for guess, mse in BLIND.items()),
        *(metric("column_blind_mse", 0.08, column=c, **where) for c in columns),
        *(metric("mse", mse, attack=a, **where) for a, mse in errors.items()),
        *(metric("mse_stderr", 0.001, attack=a, **where) for a in errors),
        *(metric("unusable", 0.0, attack=a, **where) for a in errors),
        *(
            metric("column_mse", mse, attack=a, column=c, **where)
            for a, mse in errors.items()
            for c in columns
        ),
    ]


def as_arrays(metrics: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """``metrics`` with the figures of all columns in one row, as a target with pixels keeps them."""
    together: dict[str, dict[str, Any]] = {}
    for m in metrics:
        key = json.dumps(
            {k: v for k, v in m.items() if k not in ("value", "column")} | {"own": m["column"] == ""}
        )
        row = together.setdefault(key, {**m, "column": ""})
        if m["column"]:
            row["values"] = [*row["values"], m["value"]]
    return list(together.values())


def theory(attack: str, measured: float, closed: float, rows: int = 360) -> list[dict[str, Any]]:
    """What the target adds of Theorem 2; the bounds are .06 and .2."""
    figures = {
        "rows": rows,
        "measured": measured,
        "closed": closed,
        "lower": 0.02,
        "upper": 0.2,
        "any_center": 0.06,
    }
    where = {"attack": attack, "target": "passive", "scored_set": "predict", "rows": rows}
    return [metric(f"theory_{name}", value, **where) for name, value in figures.items()]


def write_party(
    folder: Path,
    role: str,
    *,
    metrics: list[dict[str, Any]] | None = None,
    config: dict[str, Any] | None = None,
    facts: dict[str, Any] | None = None,
    status: dict[str, str] | None = None,
    crossings: list[dict[str, Any]] | None = None,
) -> Path:
    """The folder of one party; its run is the parent folder's name and its own name the folder's."""
    folder.mkdir(parents=True, exist_ok=True)
    who = {"party": folder.name, "role": role, "run": folder.parent.name}
    (folder / "config.toml").write_text(tomli_w.dumps({**who, **SECRETS, **(config or {})}))
    pixels = [{"name": f"pixel_{r}_{c}", "low": 0.0, "high": 16.0, "pixel": [r, c]} for r, c in PIXELS]
    parties = [
        {"name": "coordinator", "role": "coordinator", "n_classes": 0, "columns": []},
        {"name": "active", "role": "active", "n_classes": 10, "columns": []},
        {"name": "passive", "role": "passive", "n_classes": 0, "columns": pixels},
    ]
    versions = {"vflens": "0.1.0", "numpy": "2.4.6"}
    known = {**who, "parties": parties, "versions": versions, "transcript_digest": "ab12", **(facts or {})}
    (folder / "federation.json").write_text(json.dumps(known))
    (folder / "status.json").write_text(json.dumps(status or {"state": "finished", "reason": ""}))
    pq.write_table(pa.Table.from_pylist(metrics or [], SCHEMA), folder / "metrics.parquet")
    (folder / "transcript").mkdir(exist_ok=True)
    lines = [json.dumps(c) + "\n" for c in crossings or []]
    (folder / "transcript" / "index.jsonl").write_text("".join(lines))
    return folder


def crossing(
    sender: str, phase: str, point: str, nbytes: int = 100, *, withheld: bool = False
) -> dict[str, Any]:
    """One line of a transcript's index."""
    place = {"run": "demo", "round": 0, "step": 0, "rows": {"dtype": "int32", "shape": [1], "offset": 0}}
    return {"sender": sender, "phase": phase, "point": point, "nbytes": nbytes, "withheld": withheld, **place}


def write_pictures(folder: Path, attacks: list[str], rows: int = 3) -> None:
    """``pictures.npz`` of the target."""
    rng = np.random.default_rng(0)
    names = ["original", *(f"estimate:{a}" for a in attacks)]
    arrays: dict[str, Any] = {name: rng.uniform(-0.1, 1.1, (rows, len(PIXELS))) for name in names}
    np.savez(folder / "pictures.npz", rows=np.arange(rows, dtype=np.int32), **arrays)


def write_run(
    run: Path,
    errors: dict[str, float] | None = None,
    *,
    defenses: list[dict[str, Any]] | None = None,
    accuracy: float = 0.96,
    extra: Sequence[dict[str, Any]] = (),
) -> Path:
    """All three parties of a finished run, with every number that a report can show, and the target's
    ``extra`` metrics.
    """
    errors = {"lmmse": 0.021, "half_star": 0.112} if errors is None else errors
    milestones = [m for rows in (50, 100, 360) for m in scores(errors, rows)]
    milestones += [*theory("half_star", 0.12, 0.12), *extra]
    grants = [{"what": "parameters", "to": "active"}, {"what": "auxiliary", "to": "active", "rows": 50}]
    passive = write_party(
        run / "passive",
        "passive",
        metrics=milestones,
        config={"disclose": grants},
        crossings=[crossing("coordinator", "train", "gradient")],
    )
    write_pictures(passive, list(errors))
    write_party(
        run / "active",
        "active",
        config={"attacks": [{"name": a} for a in errors]},
        metrics=[
            *(metric("train_loss", 1 / (1 + step), step=step) for step in range(3)),
            metric("accuracy", accuracy, scored_set="predict"),
            metric("accuracy_alone", 0.9, scored_set="predict"),
        ],
        crossings=[crossing("coordinator", "predict", "scores")] * 2
        + [crossing("passive", "disclose", "parameters")],
    )
    write_party(
        run / "coordinator",
        "coordinator",
        config={"defenses": defenses or [], "training": {"epochs": 5}},
        metrics=[metric("mean_kl", 0.01), metric("steps", 1200), metric("bytes_received", 5e6)],
        crossings=[crossing("passive", "train", "embedding")],
    )
    return run


def target(tmp_path: Path, metrics: list[dict[str, Any]], **files: Any) -> RecordedRun:
    """A run of which only the target's folder is given."""
    write_party(tmp_path / "demo" / "passive", "passive", metrics=metrics, **files)
    return read_runs([tmp_path / "demo"])[0]
