"""A study is one model on one data set at one size: its rows, epochs and seeds, in the words of its page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from vflens.experiments.figures import Size
from vflens.experiments.figures.fedadob.methods import Against
from vflens.types import Document

#: The whole image at the passive party, labels alone at the active one, as in the paper.
_WHOLE = {"kind": "image_tiles", "rows": 1, "columns": 1}
#: Appendix A, Table X. Weight decay 4e-5 is the gradient of 2e-5·Σθ².
_PAPER = {"optimizer": "sgd", "learning_rate": 0.01, "l2": 2e-5, "batch_size": 64}
_SHORT = {"optimizer": "adam", "l2": 2e-5, "batch_size": 64}


@dataclass(frozen=True)
class Study:
    """``name`` is ours, ``beside`` the paper's model whose numbers stand beside it.

    ``attacked`` prediction rows are reconstructed; ``granted`` auxiliary rows and ``labels`` labels are
    granted to attacks; ``effort`` are settings of attacks by name that this size reduces.
    """

    name: str
    beside: str
    data: Mapping[str, Any]
    model: Mapping[str, Any]
    training: Mapping[str, Any]
    seeds: int
    attacked: int
    granted: int
    labels: int = 40
    device: str = "cpu"
    split: Mapping[str, Any] = field(default_factory=lambda: _WHOLE)
    effort: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    def settings(self, seed: int, attacks: Sequence[Against], defenses: Sequence[Document]) -> Document:
        """An experiment of one scenario, as a table."""
        grants: list[Document] = [
            {"what": "parameters", "to": "active"},
            {"what": "auxiliary", "to": "active", "rows": self.granted},
            {"what": "labels", "to": "passive", "rows": self.labels},
        ]
        return {
            "name": "fedadob",
            "seed": seed,
            "data": dict(self.data),
            "split": dict(self.split),
            "model": dict(self.model),
            "training": dict(self.training),
            "device": self.device,
            "attacks": [a.configured(self.effort.get(a.name, {})) for a in attacks],
            "attacked_rows": self.attacked,
            "disclose": grants,
            "transcript": {"every": self.training["epochs"]},  # an epoch of LeNet's is 100 MB at each party
            "scenarios": [{"name": "cell", "defenses": list(defenses)}],
        }

    @property
    def stated(self) -> str:
        """Rows, epochs and grants in words."""
        t, rows = self.training, self.data.get("sample", "all")
        seeds = f"{self.seeds} seed{'s' if self.seeds > 1 else ''}"
        less = [f"{n} {', '.join(f'{k} = {v}' for k, v in e.items())}" for n, e in self.effort.items()]
        return (
            f"{self.name}: {rows} rows, {t['epochs']} epochs of {t['optimizer']} at rate "
            f"{t['learning_rate']} in batches of {t['batch_size']}; {seeds}; attacks on features estimate "
            f"{self.attacked} prediction rows and are granted {self.granted} training rows, those on labels "
            f"{self.labels} labels{'; '.join(['', *less])}"
        )


def studies(size: Size) -> list[Study]:
    """The studies that a size runs; the paper's other models are "paper only"."""
    return {"quick": [_digits()], "default": [_mnist_short()], "full": _full()}[size]


def _digits() -> Study:
    return Study(
        "cnn on digits",
        "LeNet-MNIST",
        {"name": "digits"},
        {"architecture": "cnn", "top": [64]},
        {**_SHORT, "epochs": 15, "learning_rate": 0.001},
        seeds=1,
        attacked=50,
        granted=50,
        effort={"pmc:printed": {"fine_tune_steps": 200}},
    )


def _mnist_short() -> Study:
    return Study(
        "LeNet on MNIST, reduced",
        "LeNet-MNIST",
        {"name": "mnist", "sample": 3000},
        {"architecture": "lenet", "top": [120, 84]},
        {**_SHORT, "epochs": 8, "learning_rate": 0.001},
        seeds=3,
        attacked=50,
        granted=100,
        effort={"pmc:printed": {"fine_tune_steps": 300}},
    )


def _full() -> list[Study]:
    lenet = Study(
        "LeNet on MNIST",
        "LeNet-MNIST",
        {"name": "mnist"},
        {"architecture": "lenet", "top": [120, 84]},
        {**_PAPER, "epochs": 50},
        seeds=3,
        attacked=1000,
        granted=10_000,
        device=_device(),
    )
    return [lenet]


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
