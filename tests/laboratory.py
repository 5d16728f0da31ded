"""Tiny federations for tests: a few dozen made-up rows, a few epochs, all parties in this process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import horizontal
import numpy as np
import pyarrow.parquet as pq
from oneprocess import LocalFederation

from vflens.experiments.run.any_experiment import AnyPartiesExperiment
from vflens.experiments.run.dealer import deal_tables, write_parties
from vflens.experiments.run.vertical.experiment import Experiment
from vflens.storage import journal
from vflens.types import Array, Exchange, Phase, Point, Released

NOTHING = np.zeros(0, np.int32)
SYNTHETIC = {"name": "synthetic", "rows": 90, "features": 7, "classes": 3, "informative": 4}
_MADE: list[LocalFederation] = []
THREE = {"passive": ["a", "b", "c"]}
NOISY = [{"name": "gaussian_scores", "at": "coordinator"}]


def experiment(out: Path, *, defenses: Any = (), **changes: Any) -> Experiment:
    """An experiment of one scenario on synthetic rows: 72 to train in batches of 20, 18 to predict."""
    settings: dict[str, Any] = {
        "name": "tiny",
        "seed": 3,
        "out": out,
        "data": SYNTHETIC,
        "split": {"kind": "fraction", "fraction": 0.5},
        "training": {"epochs": 3, "batch_size": 20, "learning_rate": 0.1},
        "attacks": [{"name": "half"}, {"name": "half_star"}],
        "disclose": [{"what": "parameters", "to": "active"}],
        "scenarios": [{"name": "run", "defenses": defenses}],
        "network": {"transport": "tcp"},  # in one process nobody listens: no folders for sockets are left
    }
    return Experiment.model_validate(settings | changes)


def deal(what: AnyPartiesExperiment, home: Path) -> dict[str, Path]:
    """Every party's configuration and table of the first scenario, written below ``home``."""
    return write_parties(what, what.scenarios[0], deal_tables(what), home)


def federation(home: Path, **changes: Any) -> LocalFederation:
    """The parties of :func:`experiment`, dealt below ``home`` and joined in this process."""
    return let_go_later(
        LocalFederation(deal(experiment(home, **changes), home), lambda stage, done, total: None)
    )


def let_go_later(made: LocalFederation) -> LocalFederation:
    """``made``, whose logs :func:`let_go` closes."""
    _MADE.append(made)
    return made


def let_go() -> None:
    """Close the logs of all federations, however their tests ended."""
    while _MADE:
        for member in _MADE.pop().members():
            member.transcript.close()
            member.gate.close()
            member.recovery.close()


def finish(local: LocalFederation) -> None:
    """What :meth:`LocalFederation.run` does once the rows are aligned and the model is trained."""
    local.coordinator.disclose()
    local.coordinator.open_predictions()
    local.complete()


def close(local: LocalFederation) -> None:
    """Close every party."""
    for member in local.members():
        member.close()


def transcripts(home: Path) -> dict[str, str]:
    """Party → digest of the transcript below ``home``."""
    return {f.parent.name: journal.digest(f) for f in sorted(home.glob("*/transcript"))}


def trained(local: LocalFederation) -> dict[str, bytes]:
    """Party → all bits of what it learned, the optimiser's state included."""
    return {
        name: b"".join(array.tobytes() for _, array in sorted(party.state().items()))
        for name, party in local.data_parties.items()
    }


def bits(local: LocalFederation) -> dict[str, bytes]:
    """Party → all bits of what it learned, in any setting."""
    return horizontal.learned(local) or trained(local)


def estimates(home: Path) -> dict[str, bytes]:
    """File → all bits of the estimate that the adversary below ``home`` kept."""
    found = {}
    for file in sorted(home.glob("*/estimates/*.npz")):
        with np.load(file) as saved:
            found[file.name] = b"".join(saved[name].tobytes() for name in ("rows", "values", "status"))
    return found


def payload(
    tensors: Mapping[str, Array] | None,
    *,
    rows: Array = NOTHING,
    sender: str = "passive",
    point: Point = Point.EMBEDDING,
    phase: Phase = Phase.TRAIN,
    step: int = 0,
) -> Released:
    """A payload as a gate would seal it."""
    return Released(sender, Exchange("run", phase, 0, step), point, rows, tensors=tensors)


def same(a: Released, b: Released) -> bool:
    """Whether two payloads are equal bit for bit, dtypes and shapes included."""
    if (a.sender, a.exchange, a.point) != (b.sender, b.exchange, b.point) or not _equal(a.rows, b.rows):
        return False
    if a.tensors is None or b.tensors is None:
        return a.tensors is b.tensors
    return list(a.tensors) == list(b.tensors) and all(_equal(t, b.tensors[n]) for n, t in a.tensors.items())


def _equal(a: Array, b: Array) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def fingerprint(local: LocalFederation) -> Any:
    """All that a repetition could change: parameters, optimisers, transcripts, released rows, counters."""
    lengths = [len(list(m.transcript)) for m in local.members()]
    released = [
        m.gate.released_rows(point, 1).tolist()
        for m in local.members()
        for point in (Point.EMBEDDING, Point.SCORES)
    ]
    learned = [p.recovery.learned for p in local.led.values()]
    return bits(local), lengths, released, learned


def figures(folder: Path) -> dict[tuple[str, str, str], float]:
    """What a party's metrics file says, by metric, attack and column or detail."""
    rows: list[dict[str, Any]] = pq.read_table(folder / "metrics.parquet").to_pylist()
    return {(r["metric"], r["attack"], r["column"] or r["detail"]): r["value"] for r in rows}
