"""What a run is worth: the accuracy of its model, AUC, R² and what else tells of its utility."""

from collections.abc import Mapping
from typing import NamedTuple

from vflens.experiments.results.folders import PartyRuns
from vflens.storage.metrics import Name

#: What tells of a run's utility, in words.
UTILITY: Mapping[str, str] = {
    **{Name.ACCURACY: "accuracy", Name.ACCURACY_ALONE: "accuracy alone", "accuracy_gain": "accuracy gained"},
    Name.ACCURACY_RELEASED: "accuracy, released tables",
    Name.ACCURACY_CLEAR: "accuracy, trained in the clear",
    **{Name.AUC: "AUC", Name.AUC_ALONE: "AUC alone", "auc_gain": "AUC gained"},
    **{Name.AUC_RELEASED: "AUC, released tables", Name.AUC_CLEAR: "AUC, trained in the clear"},
    **{Name.R2: "R²", Name.R2_ALONE: "R² alone", "r2_gain": "R² gained"},
    **{Name.R2_RELEASED: "R², released tables", Name.R2_CLEAR: "R², trained in the clear"},
    **{Name.RMSE: "RMSE in the label's unit", Name.RMSE_ALONE: "RMSE alone"},
    **{Name.RMSE_RELEASED: "RMSE, released tables", Name.RMSE_CLEAR: "RMSE, trained in the clear"},
    **{Name.MEAN_KL: "mean KL, nats", Name.ARGMAX_KEPT: "arg-max kept"},
}


def utility(run: PartyRuns) -> dict[str, float]:
    """Accuracy and AUC, of a number R² and RMSE, alone, gained, of a protected run's clear twin; mean KL
    (nats), arg-max kept; means over clients.
    """
    found: dict[str, float] = {}
    for name in UTILITY:
        together = name.removesuffix("_gain")
        if together == name and (value := _mean(run, Name[name.upper()])) is not None:
            found[name] = value
        elif together != name and {together, f"{together}_alone"} <= found.keys():
            found[name] = found[together] - found[f"{together}_alone"]
    return found


def worth(utility: Mapping[str, float]) -> Name:
    """The name of the first measure in ``utility``: R² of a number, else accuracy; :data:`UTILITY` has the
    words.
    """
    return Name.R2 if Name.R2 in utility else Name.ACCURACY


def _mean(run: PartyRuns, metric: Name) -> float | None:
    """The last figure called ``metric`` of each party that measured it, on average."""
    values = list(figures_by_party(run, metric).values())
    return sum(values) / len(values) if values else None


def figures_by_party(run: PartyRuns, metric: Name) -> dict[str, float]:
    """Party → its last figure called ``metric``, of those that measured it."""
    return {p.name: m.value for p in run.parties for m in p.metrics if m.name == metric}


class ClientAccuracy(NamedTuple):
    """The accuracy of ``client`` on its own prediction rows: with the others, and by a model of its own rows
    ``alone``.
    """

    client: str
    accuracy: float
    alone: float


def clients(run: PartyRuns) -> list[ClientAccuracy]:
    """Each client of a horizontal run, in name order."""
    together, alone = figures_by_party(run, Name.ACCURACY), figures_by_party(run, Name.ACCURACY_ALONE)
    return [ClientAccuracy(name, together[name], alone[name]) for name in run.alike if name in alone]
