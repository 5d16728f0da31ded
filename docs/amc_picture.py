"""Picture of the page of ``amc``: ``python docs/amc_picture.py`` writes it and prints the page's figures.

``docs/attacks/amc.svg``: labels that a passive party names rightly, with the agreed optimiser, with that of
its attack, and from fresh weights; some half an hour.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from federation_pictures import Bars, figure
from plugin_pictures import DOCS, bars

from vflens.experiments.results.record import read_runs
from vflens.experiments.run.run import run
from vflens.experiments.run.vertical.experiment import Experiment
from vflens.storage import journal
from vflens.storage.metrics import Name
from vflens.types import Phase, Point

SEEDS = range(1, 9)
HALVES = {"kind": "image_halves"}
ADAM = {"epochs": 15, "batch_size": 64, "learning_rate": 0.005}
DESCENT = {"optimizer": "sgd", "epochs": 30, "batch_size": 64, "learning_rate": 0.1}
#: What is trained → its settings.
KINDS: dict[str, dict[str, Any]] = {
    "digits, Adam": {"data": {"name": "digits"}, "split": HALVES, "training": ADAM},
    "digits, descent": {"data": {"name": "digits"}, "split": HALVES, "training": DESCENT},
    "satellite, descent": {"data": {"name": "satellite", "sample": 2000}, "training": DESCENT},
    "mnist, descent": {
        "data": {"name": "mnist", "sample": 3000},
        "split": HALVES,
        "model": {"architecture": "lenet", "top": [84], "combine": "concatenate"},
        "training": {**DESCENT, "epochs": 20},
    },
}
#: What a run is called → its attack, and the settings of it.
RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "agreed": ("pmc", {}),
    "fresh weights": ("pmc", {"untrained": True}),
    "malicious": ("amc", {}),
    "γ = 5, r_max = 10": ("amc", {"gain": 5.0, "most": 10.0}),
    "β = .999": ("amc", {"momentum": 0.999}),  # hardly a mean turns: nearly every step is doubled
}


class Found(NamedTuple):
    """Shares of prediction and training labels named rightly, the federation's accuracy, and the mean norm of
    the embeddings that arrived in the last epoch.
    """

    predicted: float
    trained: float
    accuracy: float
    norm: float


def federation(kind: str, seed: int, attack: str, settings: dict[str, Any]) -> Found:
    """What ``attack`` finds in a passive party, whose model it trains if it is amc."""
    with TemporaryDirectory() as home:
        made = {
            "name": "picture",
            "seed": seed,
            "out": home,
            "split": {"kind": "fraction", "fraction": 0.5},
            "model": {"architecture": "mlp", "combine": "concatenate"},
            "disclose": [{"what": "labels", "to": "passive", "rows": 40}],
            "malicious": attack == "amc",
            "attacks": [{"name": attack, "at": "passive", **settings}],
            "scenarios": [{"name": "run"}],
            **KINDS[kind],
        }
        (folder,) = run(Experiment.model_validate(made), in_process=True).scenarios
        metrics = [m for r in read_runs([folder]) for p in r.parties for m in p.metrics]
        predicted, trained = (figure(metrics, Name.LABEL_ACCURACY, attack, s) for s in ("predict", "train"))
        norm = arrived(folder, made["training"]["epochs"] - 1)
        return Found(predicted, trained, figure(metrics, Name.ACCURACY), norm)


def arrived(folder: Path, epoch: int) -> float:
    """The mean norm of the passive party's embeddings in ``epoch``, as the coordinator saw them."""
    norms = [
        np.linalg.norm(r.tensor("embedding"), axis=1)
        for r in journal.read(folder / "coordinator/transcript")
        if (r.point, r.exchange.phase, r.sender) == (Point.EMBEDDING, Phase.TRAIN, "passive")
        and r.exchange.round == epoch
    ]
    return float(np.concatenate(norms).mean())


def compared() -> str:
    """The picture; it prints means, and differences from the agreed optimiser with their standard errors."""
    shown = Bars()
    for kind in KINDS:
        found = {name: np.array([federation(kind, s, *of) for s in SEEDS]) for name, of in RUNS.items()}
        for name, runs in found.items():
            apart = runs - found["agreed"]
            error = apart.std(axis=0, ddof=1) / np.sqrt(len(runs))
            means = zip(Found._fields, runs.mean(axis=0), apart.mean(axis=0), error, strict=True)
            print(
                kind, name, *(f"{what} {m:.3f} ({a:+.3f} ± {e:.3f})" for what, m, a, e in means), flush=True
            )
            print("  ahead:", (apart[:, 0] > 0).sum(), "norms:", (runs / found["agreed"])[:, 3].round(2))
            shown.append((f"{kind}: {name}", float(runs[:, 0].mean()), f"{runs[:, 0].mean():.3f}"))
    return bars(f"labels of prediction rows named rightly, mean of {len(SEEDS)} seeds", shown, 1.0)


if __name__ == "__main__":
    (DOCS / "attacks/amc.svg").write_text(compared(), encoding="utf-8")
