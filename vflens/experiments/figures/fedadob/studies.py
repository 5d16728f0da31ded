"""A study is one model on one data set at one size: its rows, epochs and seeds, in the words of its page."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from vflens.datasets._resolve import dataset
from vflens.errors import ConfigError
from vflens.experiments.figures import FigureOptions
from vflens.experiments.figures.fedadob.methods import Against, Method
from vflens.types import Document
from vflens.words import counted

#: The whole image at the passive party, labels alone at the active one, as in the paper.
_WHOLE = {"kind": "image_tiles", "rows": 1, "columns": 1}
_NORMED = ("cnn", "lenet", "alexnet")  # resnet18 has its own batch norms, others none
#: Appendix A, Table X. Weight decay 4e-5 is the gradient of 2e-5·Σθ².
_PAPER = {"optimizer": "sgd", "learning_rate": 0.01, "l2": 2e-5, "batch_size": 64}
_SHORT = {"optimizer": "adam", "l2": 2e-5, "batch_size": 64}


@dataclass(frozen=True)
class Study:
    """``name`` is ours, ``beside`` the paper's model whose numbers stand beside it.

    ``attacked`` prediction rows are reconstructed; ``granted`` auxiliary rows and ``labels`` labels are
    granted to attacks; ``effort`` are settings of attacks by name that this size needs.
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

    def settings(self, seed: int, attacks: Sequence[Against], method: Method, strength: float) -> Document:
        """An experiment of one scenario, as a table."""
        norm = {"batch_norm": method.batch_norm} if self.model["architecture"] in _NORMED else {}
        grants: list[Document] = [
            {"what": "parameters", "to": "active"},
            {"what": "auxiliary", "to": "active", "rows": self.granted},
            {"what": "moments", "to": "active"},
            {"what": "labels", "to": "passive", "rows": self.labels},
        ]
        return {
            "name": "fedadob",
            "seed": seed,
            "data": dict(self.data),
            "split": dict(self.split),
            "model": {**self.model, **norm},
            "training": dict(self.training),
            "device": self.device,
            "attacks": [a.configured(self.effort.get(a.name, {})) for a in attacks],
            "attacked_rows": self.attacked,
            "disclose": grants,
            # an epoch of LeNet's is 100 MB at each party
            "transcript": {"every": 1 if any(a.whole for a in attacks) else self.training["epochs"]},
            "scenarios": [{"name": "cell", "defenses": method.defenses(strength)}],
        }

    @property
    def trained(self) -> list[str]:
        """Rows, epochs and seeds in words, and what the data set says of itself."""
        t, rows = self.training, self.data.get("sample", "all")
        caveat = dataset(self.data["name"], {}).caveat
        stated = (
            f"{self.name}: {counted(rows, 'row')}, {counted(t['epochs'], 'epoch')} of {t['optimizer']} at "
            f"rate {t['learning_rate']} in batches of {t['batch_size']}; {counted(self.seeds, 'seed')}."
        )
        return [stated, f"{caveat}."] if caveat else [stated]

    @property
    def notes(self) -> list[str]:
        """:attr:`trained`, and what attacks are granted."""
        less = [f"{n}: {', '.join(f'{k} = {v}' for k, v in e.items())}" for n, e in self.effort.items()]
        granted = (
            f"Attacks on features estimate {counted(self.attacked, 'prediction row')} and are granted "
            f"{counted(self.granted, 'training row')}, those on labels {counted(self.labels, 'label')}. One "
            "passive party has all features, the active party labels alone. Baselines have a batch norm "
            "behind the last convolution, FedAdOb has passports there."
        )
        return [*self.trained, granted, *([f"Settings of this size: {'; '.join(less)}."] if less else [])]


def studies(options: FigureOptions) -> list[Study]:
    """The studies that a size runs, or that of the model which is asked for; the paper's other models are
    "paper only".

    Raises:
        ConfigError: the size does not run the model.
    """
    found = {"quick": [_digits()], "default": [_mnist_short()], "full": _full()}[options.size]
    known = [s.model["architecture"] for s in found]
    if options.model not in ("", *known):
        raise ConfigError(f"--model {options.model!r}: this size runs {', '.join(known)}, choose one of them")
    wanted = [s for s in found if options.model in ("", s.model["architecture"])]
    return [_shortened(replace(s, seeds=options.seeds or s.seeds), options.epochs) for s in wanted]


def _shortened(study: Study, epochs: int | None) -> Study:
    """``study`` for so many epochs; its name tells them, wherever it stands."""
    if epochs is None:
        return study
    name = f"{study.name}, {epochs} of {counted(study.training['epochs'], 'epoch')}"
    return replace(study, name=name, training={**study.training, "epochs": epochs})


def _digits() -> Study:
    return Study(
        "cnn on digits",
        "LeNet-MNIST",
        {"name": "digits"},
        {"architecture": "cnn", "top": [64]},
        training={**_SHORT, "epochs": 25, "learning_rate": 0.001},
        seeds=1,
        attacked=50,
        granted=50,
        effort={
            "moments_only": {"draws": 100},
            "bmi:printed": {"learning_steps": 50},
            "pmc:printed": {"fine_tune_steps": 200},
        },
    )


def _mnist_short() -> Study:
    return Study(
        "LeNet on MNIST, reduced",
        "LeNet-MNIST",
        {"name": "mnist", "sample": 3000},
        {"architecture": "lenet", "top": [120, 84]},
        training={**_SHORT, "epochs": 8, "learning_rate": 0.001},
        seeds=3,
        attacked=50,
        granted=100,
        effort={
            "moments_only": {"draws": 100},
            "bmi": {"learning_steps": 100},
            "bmi:moments": {"learning_steps": 100},
            "bmi:printed": {"learning_steps": 30},
            "inverse_network": {"learning_steps": 20},
            "inverse_network:moments": {"learning_steps": 20},
            "pmc:printed": {"fine_tune_steps": 300},
        },
    )


def _full() -> list[Study]:
    """Table IX and X; the CIFAR-10 at hand is a copy in JPEG."""
    wanted = (
        ("AlexNet on CIFAR-10", "AlexNet-CIFAR10", "alexnet"),
        ("ResNet-18 on CIFAR-10", "ResNet-CIFAR10", "resnet18"),
    )
    learner = {"learner": "adam", "learning_steps": 20}
    effort = dict.fromkeys(("bmi", "bmi:moments", "bmi:printed"), learner)
    whole = replace(whole_mnist(), attacked=200, device=_device(), effort=effort)
    training = {**_PAPER, "epochs": 100}
    return [
        whole,
        *(
            replace(
                whole,
                name=name,
                beside=beside,
                data={"name": "cifar10"},
                model={"architecture": architecture},
                training=training,
            )
            for name, beside, architecture in wanted
        ),
    ]


def whole_mnist() -> Study:
    """LeNet at the paper's rows, rate and epochs."""
    return Study(
        "LeNet on MNIST",
        "LeNet-MNIST",
        {"name": "mnist"},
        {"architecture": "lenet", "top": [120, 84]},
        training={**_PAPER, "epochs": 50},
        seeds=3,
        attacked=1000,
        granted=1000,
    )


def clicks(options: FigureOptions) -> list[Study]:
    """Fig. 6: two classes, features at both parties, with the paper's top model of one linear layer, and with
    a hidden layer in it.
    """
    size = options.size
    data: Document
    model: Document
    if size == "quick":
        name, data = "mlp on breast_cancer", {"name": "breast_cancer"}
        model = {"architecture": "mlp", "width": 16, "hidden": [32], "top": []}
    else:
        name, data = "DCN on Criteo at 1 : 16", {"name": "criteo", "ratio": 16}
        model = {"architecture": "dcn", "combine": "concatenate"}  # 351 columns in two
    linear = Study(
        name,
        "DCN-Criteo",
        data,
        model,
        training={**_SHORT, "epochs": {"quick": 30, "default": 5, "full": 50}[size], "learning_rate": 0.001},
        seeds=options.seeds or (1 if size == "quick" else 3),
        attacked=50,
        granted=50,
        split={"kind": "fraction", "fraction": 0.5},
    )
    return [linear, replace(linear, name=f"{name}, deeper top", model={**model, "top": [16]})]


def _device() -> str:
    import torch

    return "cuda" if torch.cuda.is_available() else "cpu"
