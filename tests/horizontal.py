"""Tiny horizontal federations for tests: a few dozen made-up rows, all parties in this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from oneprocess import LocalFederation

from vflens.clients.horizontal.client import Client
from vflens.config.writing import toml_text
from vflens.coordinator.horizontal.server import Server
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.randomness import secret_from_seed
from vflens.tables.files import write_party_table
from vflens.tables.table import Table
from vflens.types import Array, ColumnInfo

CLASSES = ("no", "perhaps", "yes")
COLUMNS = tuple(ColumnInfo(f"c{j}", -4.0, 4.0) for j in range(4))


def experiment(
    out: Path, *, defenses: Sequence[Mapping[str, Any]] = (), **settings: Any
) -> HorizontalExperiment:
    """An experiment of one scenario."""
    scenarios = [{"name": "run", "defenses": defenses}]
    return HorizontalExperiment.model_validate(
        {
            "name": "tiny",
            "seed": 3,
            "out": out,
            "network": {"transport": "tcp"},
            "scenarios": scenarios,
            **settings,
        }
    )


def table(rows: int, seed: int, predict: int = 6) -> Table:
    """``rows`` rows of which the last ``predict`` are to be predicted; classes follow from the columns."""
    rng = np.random.default_rng(seed)
    x = np.clip(rng.normal(size=(rows, len(COLUMNS))), -4, 4)
    labels = np.clip(np.round(x[:, 0] + x[:, 1] + 1), 0, 2).astype(np.int64)
    split = (np.arange(rows) >= rows - predict).astype(np.uint8)
    ids = np.array([f"person {seed}-{i} of the register".encode() for i in range(rows)])
    return Table(ids, COLUMNS, x, labels, class_names=CLASSES, split=split)


def deal(
    folder: Path,
    tables: Mapping[str, Table],
    *,
    defenses: Sequence[Mapping[str, Any]] = (),
    limits: Mapping[str, Any] | None = None,
    transcript: Mapping[str, Any] | None = None,
    secure_aggregation: bool = False,
    disclose: Sequence[Mapping[str, Any]] = (),
    **server: Any,
) -> dict[str, Path]:
    """The configurations of one client for each of ``tables``, and of their server."""
    names, files = ["server", *tables], dict[str, Path]()
    for name in names:
        home = folder / name
        home.mkdir(parents=True)
        others = ["server"] if name != "server" else list(tables)
        settings: dict[str, Any] = {
            "party": name,
            "role": "server" if name == "server" else "client",
            "run": "tiny/run",
            "address": f"unix:{home}/socket",
            "out": ".",
            "seed": secret_from_seed("7", name).hex(),
            "lab": True,
            "limits": dict(limits or {}),
            "transcript": dict(transcript or {}),
            "peers": [
                {
                    "name": other,
                    "role": "server" if other == "server" else "client",
                    "address": f"unix:{folder / other}/socket",
                    "token": secret_from_seed("7", "token", *sorted((name, other))).hex(),
                }
                for other in others
            ],
        }
        if name == "server":
            settings |= {k: v for k, v in server.items() if v is not None}
        else:
            spec = write_party_table(tables[name], home)
            settings |= {"data": spec.model_dump(mode="json", exclude_none=True), "defenses": list(defenses)}
            settings |= {"secure_aggregation": secure_aggregation, "disclose": list(disclose)}
        files[name] = home / "config.toml"
        files[name].write_text(toml_text(settings), encoding="utf-8")
        files[name].chmod(0o600)
    return files


def federation(files: Mapping[str, Path]) -> LocalFederation:
    """The parties of :func:`deal` in this process."""
    return LocalFederation(files, lambda stage, done, total: None)


def server_of(local: LocalFederation) -> Server:
    """The server among the parties."""
    leader = local.leader
    assert isinstance(leader, Server)
    return leader


def clients_of(local: LocalFederation) -> dict[str, Client]:
    """The clients by name."""
    return {name: p for name, p in local.parties.items() if isinstance(p, Client)}


def learned(local: LocalFederation) -> dict[str, bytes]:
    """Party → all bits of its model, a private bottom model's too; empty where the federation is not
    horizontal.
    """
    if not isinstance(local.leader, Server):
        return {}
    held = {local.leader.name: local.leader.parameters}
    held |= {name: acting(client) for name, client in clients_of(local).items()}
    return {who: b"".join(v.tobytes() for v in of.values()) for who, of in held.items()}


def acting(client: Client) -> dict[str, Array]:
    """What the model of a client computes with: its state without an optimiser, which ends with a round."""
    state = client.run.model.state()
    return {name: value for name, value in state.items() if name.startswith(("model/", "theta"))}


def scaled(of: Table) -> tuple[Array, Array]:
    """Training rows in [0, 1] and their one-hot labels."""
    train = of.split == 0
    assert of.labels is not None
    return (of.features[train] + 4) / 8, np.eye(len(CLASSES))[of.labels[train]]
