"""Pictures of defences inside a split network: ``python docs/defense_pictures.py`` runs federations and
writes SVGs, in some five minutes.

In ``docs/defenses``. ``features.svg``: attacks on columns against defences of a passive party.
``labels.svg``: attacks on labels against defences of the active party. ``clients.svg``: accuracy under
defences of clients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

import numpy as np
from federation_pictures import Bars, defended, figure, measured
from plugin_pictures import DOCS, bars

from vflens.experiments.results.folders import Metric
from vflens.experiments.results.record import read_runs
from vflens.experiments.run.loading import load_any
from vflens.experiments.run.run import run
from vflens.storage.metrics import Name

INVERSIONS = ("wmi", "wmi_moments")
LABELS = ("norm_scoring", "direction_scoring", "pmc")

#: From a scenario's figures: the blind error, then the least error of an attack, and that attack.
Judged: TypeAlias = Callable[[Sequence[Metric]], tuple[float, tuple[float, str]]]


def everywhere(name: str, **settings: Any) -> dict[str, Any]:
    """A scenario of one defence at both data parties."""
    one, other = (defended(name, at, **settings) for at in ("passive", "active"))
    return {**one, "defenses": [*one["defenses"], *other["defenses"]]}


def drawn(title: str, scenarios: Sequence[dict[str, Any]], judged: Judged, **settings: Any) -> str:
    """A bar for each scenario: the least error of an attack, as ``judged``."""
    shown, blind = Bars(), 0.0
    for name, found in measured(scenarios, **settings):
        blind, (error, attack) = judged(found)
        text = f"{error:.3f} ({attack}), accuracy {figure(found, Name.ACCURACY):.3f}"
        shown.append((name.replace("-", " "), error, text))
    return bars(title, shown, blind)


def feature_errors() -> str:
    """Error of the strongest inversion against each defence."""
    return drawn(
        "digits, right halves: MSE per pixel of the strongest inversion (dashed: best blind guess)",
        [
            {"name": "no defence"},
            *(everywhere("instahide", mixed=m) for m in (1, 2)),
            *(defended("mid", "passive", strength=s) for s in (1e-3, 1e-2)),
            *(defended("distance_correlation", "passive", alpha=a) for a in (0.1, 1.0)),
            *(defended("soteria", "passive", share=s) for s in (0.2, 0.5)),
        ],
        lambda found: (
            min(m.value for m in found if m.name == Name.BLIND_MSE),
            min((figure(found, Name.MSE, a), a) for a in INVERSIONS),
        ),
        data={"name": "digits"},
        split={"kind": "image_halves"},
        predict_share=0.1,
        model={"architecture": "mlp", "hidden": [64]},
        training={"epochs": 15, "batch_size": 64, "learning_rate": 0.005},
        attacks=[{"name": attack} for attack in INVERSIONS],
        disclose=[{"what": "parameters", "to": "active"}, {"what": "auxiliary", "to": "active", "rows": 50}],
    )


def label_errors() -> str:
    """Share of labels of training rows named wrongly by the strongest attack, against each defence."""
    return drawn(
        "breast cancer, embeddings of 8: share of training labels named wrongly by the strongest attack "
        "(dashed: always the likeliest class)",
        [
            {"name": "no defence"},
            *(defended("grad_perturb", "active", epsilon=e) for e in (10.0, 1.0)),
            *(defended("mid", "active", strength=s) for s in (1e-2, 1e-1)),
            *(defended("distance_correlation", "active", alpha=a) for a in (0.1, 1.0)),
        ],
        lambda found: (
            1 - figure(found, Name.BLIND_LABEL_ACCURACY, scored="train"),
            min((1 - figure(found, Name.LABEL_ACCURACY, a, "train"), a) for a in LABELS),
        ),
        data={"name": "breast_cancer"},
        model={"architecture": "mlp", "width": 8, "top": [8]},
        training={"epochs": 10, "batch_size": 32, "learning_rate": 0.01},
        attacks=[{"name": a, "at": "passive"} for a in LABELS],
        disclose=[{"what": "labels", "to": "passive", "rows": 40}],
    )


def client_accuracy() -> str:
    """Share of prediction rows named rightly, mean over clients, under each defence of them."""
    experiment = load_any(DOCS.parent / "examples/horizontal_defences.toml")
    shown, alone = Bars(), 0.0
    with TemporaryDirectory() as folder:
        ran = run(experiment.model_copy(update={"out": Path(folder)}), in_process=True)
        for found in read_runs(ran.scenarios):
            together, alone = np.mean([(t, a) for _, t, a in found.clients], axis=0).tolist()
            spent = sorted({f", ε = {p.epsilon:.2g} of {p.unit}" for p in found.privacy})
            shown.append((found.name.partition("/")[2], together, f"{together:.3f}{''.join(spent)}"))
    return bars("digits, two clients: mean accuracy (dashed: each client alone)", shown, alone)


PICTURES: dict[str, Callable[[], str]] = {
    "features.svg": feature_errors,
    "labels.svg": label_errors,
    "clients.svg": client_accuracy,
}


def main(folder: Path = DOCS / "defenses") -> None:
    """Write every picture into ``folder``."""
    for name, picture in PICTURES.items():
        (folder / name).write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
