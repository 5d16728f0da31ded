"""FedAdOb's horizontal experiments: their federations, defences and attacks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from vflens.experiments.figures import FigureOptions
from vflens.experiments.figures.fedadob.methods import FEATURES, FEDADOB, UNDEFENDED, Against, Method
from vflens.experiments.figures.fedadob.studies import Study
from vflens.types import Document
from vflens.words import counted

PRIVATE, SPLITFED = "private bottom", "SplitFed"
_SHORT = {"optimizer": "adam", "l2": 2e-5, "batch_size": 64, "learning_rate": 0.001}


@dataclass(frozen=True)
class ClientMethod(Method):
    """A defence at every client, and ``averaged``: the method of federated learning; by lg_fedavg the clients
    keep their bottom models.
    """

    averaged: str = "fedavg"
    plugin: str = ""

    def of(self, clients: Sequence[str]) -> Self:
        """The same at each of ``clients``."""
        return replace(self, at=dict.fromkeys(clients, self.plugin) if self.plugin else {})


@dataclass(frozen=True)
class ClientStudy(Study):
    """``clients`` share the rows evenly; ``horizontal`` are their rounds. ``attacked`` and ``granted`` are
    training rows of the first client, whose embeddings and gradients, or columns, the server is granted.
    """

    clients: int = 3
    horizontal: Mapping[str, Any] = field(default_factory=dict)

    @property
    def names(self) -> list[str]:
        """The clients'."""
        width = len(str(self.clients))
        return [f"client-{i:0{width}d}" for i in range(1, self.clients + 1)]

    def settings(self, seed: int, attacks: Sequence[Against], method: Method, strength: float) -> Document:
        assert isinstance(method, ClientMethod)
        norm = {"batch_norm": method.batch_norm} if self.model["architecture"] == "lenet" else {}
        return {
            "name": "fedadob",
            "seed": seed,
            "data": dict(self.data),
            "split": {"kind": "rows"},
            "parties": {"clients": self.clients},
            "horizontal": {**self.horizontal, "method": method.averaged},
            "model": {**self.model, **norm},
            "training": dict(self.training),
            "device": self.device,
            "attacks": [a.configured(self.effort.get(a.name, {})) for a in attacks],
            "disclose": self._grants(method) if attacks else [],
            "transcript": {"every": self.horizontal["rounds"]},
            "scenarios": [{"name": "cell", "defenses": method.of(self.names).defenses(strength)}],
        }

    def _grants(self, method: ClientMethod) -> list[Document]:
        own: Document = {"to": "server", "by": self.names[0]}
        rows = {"embeddings": self.attacked, "gradients": self.attacked}
        rows |= {"auxiliary": self.granted, "labels": self.granted}
        granted = [{**own, "what": what, "rows": n} for what, n in rows.items()]
        return [*granted, *([{**own, "what": "parameters"}] if method.averaged == "lg_fedavg" else [])]

    @property
    def trained(self) -> list[str]:
        """Rows, rounds and seeds in words."""
        t, rows = self.training, self.data.get("sample", "all")
        return [
            f"{self.name}: {counted(self.clients, 'client')} share {counted(rows, 'row')} evenly, "
            f"{counted(self.horizontal['rounds'], 'round')} of one local epoch of {t['optimizer']} at rate "
            f"{t['learning_rate']} in batches of {t['batch_size']}; {counted(self.seeds, 'seed')}."
        ]

    @property
    def notes(self) -> list[str]:
        """:attr:`trained`, and what attacks are granted."""
        return [
            *self.trained,
            "The server receives no embedding and no gradient of a row: of "
            f"{counted(self.attacked, 'training row')} of one client both are granted, not on the wire, at "
            "the client's last model, as one more batch of training; "
            f"{counted(self.granted, 'other row')} with their columns and labels, and a private "
            "bottom model without keys, are granted too.",
        ]


_GRID = (0.5, 0.1, 0.01)
_FEDAVG = ClientMethod(UNDEFENDED, (FEATURES,))
_FEDADOB = ClientMethod(
    FEDADOB, (FEATURES,), vary="largest_mean", values=(2, 10, 50), averaged="lg_fedavg", plugin="passport"
)
_AUTHORS = _FEDADOB.as_in_the_authors_code()
_SPLIT = ClientMethod(SPLITFED, (FEATURES,), averaged="splitfed")
_MIXED = ClientMethod("InstaHide", (FEATURES,), vary="mixed", values=(2, 3, 4), plugin="instahide")
_SPARSE = ClientMethod("sparsification", (FEATURES,), vary="kept", values=_GRID, plugin="sparsification")
_NOISY = ClientMethod(
    "DP",
    (FEATURES,),
    vary="level",
    values=(0.0005, 0.002, 0.01),
    fixed={"clip": 20.0},
    plugin="dp_gaussian",
)
#: Fig. 3, and the private bottom model without passports, which the paper lacks.
DEFENDED = (
    _FEDAVG,
    ClientMethod(PRIVATE, (FEATURES,), averaged="lg_fedavg"),
    _SPARSE,
    _NOISY,
    _MIXED,
    _FEDADOB,
    _AUTHORS,
)
#: Table III, at N = 2.
BLACK_BOX = (_SPLIT, _FEDADOB.at_strengths(2), _AUTHORS.at_strengths(2))
#: Table VIII, at one strength.
TIMED = (
    _FEDAVG,
    _SPLIT,
    _SPARSE.at_strengths(0.1),
    _NOISY.at_strengths(0.002),
    _MIXED.at_strengths(2),
    _FEDADOB.at_strengths(10),
)
SERVER_ATTACKS = (
    Against("WGI", "wgi", {"optimizer": "adam", "smoothness": 0.001}, printed=True),
    Against("WMI", "cafe", printed=True),
    Against("WMI", "wmi"),
    Against("WMI", "wmi:granted", {"start": "granted"}),
    Against("WMI", "wmi_signs", only="InstaHide"),
    Against("WMI", "wmi_averaged", only="DP"),
    Against("WMI", "wmi_masked", only="sparsification"),
    Against("MI", "inverse_network:linear", {"learning_steps": 0}),
    Against("BMI", "bmi"),  # no attack of Fig. 3, and the best one behind passports
)
#: Those on a model whose bottom is one linear layer: there a closed form reads gradients.
ONE_LAYER_ATTACKS = (*SERVER_ATTACKS, Against("WGI", "wgi_moments"))
BLACK_BOX_ATTACKS = (
    Against("BGI", "bgi", {"gradients": "granted"}, printed=True),
    Against("BMI", "bmi", printed=True),
)


def study(options: FigureOptions) -> ClientStudy:
    """The federation that a size runs beside LeNet-MNIST; the paper's other models are "paper only"."""
    size, seeds = options.size, options.seeds
    if size == "quick":
        return ClientStudy(
            "cnn on digits",
            "LeNet-MNIST",
            {"name": "digits"},
            {"architecture": "cnn", "top": [32], "cut": 1},
            training={**_SHORT, "learning_rate": 0.002},
            seeds=seeds or 1,
            attacked=12,
            granted=50,
            clients=3,
            horizontal={"rounds": 25},
            effort={"wgi": {"steps": 400}, "bmi": {"learning_steps": 100}, "bgi": {"steps": 300}},
        )
    whole = size == "full"
    return ClientStudy(
        "LeNet on MNIST" if whole else "LeNet on MNIST, reduced",
        "LeNet-MNIST",
        {"name": "mnist"} if whole else {"name": "mnist", "sample": 6000},
        {"architecture": "lenet", "top": [120, 84], "cut": "fedadob-horizontal"},
        training={"optimizer": "sgd", "l2": 2e-5, "batch_size": 64, "learning_rate": 0.01}
        if whole
        else _SHORT,
        seeds=seeds or 3,
        attacked=100 if whole else 20,
        granted=1000 if whole else 100,
        clients=10,
        horizontal={"rounds": 50 if whole else 25},
        effort={}
        if whole
        else {"wgi": {"steps": 400}, "bmi": {"learning_steps": 100}, "bgi": {"steps": 300}},
    )


def one_layer(of: ClientStudy) -> ClientStudy:
    """The study ``of`` with a bottom model of one linear layer."""
    bottom = {"architecture": "mlp", "width": 64, "top": [32]}
    return replace(of, name=f"mlp on {of.name.partition(' on ')[2]}", model=bottom)
