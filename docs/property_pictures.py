"""The picture of attacks on properties: ``python docs/property_pictures.py`` runs them and writes it.

In ``docs/attacks``: ``property.svg``, how far column means lie from the truth, a mean over columns and seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from federation_pictures import CANCER, Bars, defended, measured
from plugin_pictures import DOCS, bars

from vflens.experiments.results.folders import Metric
from vflens.storage.metrics import Name

SEEDS = (1, 2, 3)
SHOWN = {
    "granted rows": "",
    **{name: name for name in ("property_guess", "property_embeddings", "property_scores")},
}


def errors() -> str:
    """From messages of a network, with noise on them and without, and from scores of softmax regression."""
    noise = [{"name": "no defence"}, *(defended("dp_gaussian", "passive", level=v) for v in (0.3, 3.0))]
    network: dict[str, Any] = {"model": {"architecture": "mlp", "width": 40, "top": [16]}}
    found: dict[str, list[float]] = {}
    for seed in SEEDS:
        for attack, settings, scenarios in (
            ("property_embeddings", network, noise),
            ("property_scores", {}, noise[:1]),
        ):
            for name, metrics in measured(
                scenarios,
                seed=seed,
                data=CANCER,
                training={"epochs": 20, "batch_size": 32, "learning_rate": 0.01},
                attacks=[{"name": n, "populations": 50} for n in ("property_guess", attack)],
                disclose=[{"what": "auxiliary", "to": "active", "rows": 60}],
                **settings,
            ):
                for label, shown in SHOWN.items():
                    if shown in ("", "property_guess", attack):
                        where = f"{name.replace('-', ' ')}: {label}"
                        found.setdefault(where, []).append(_error(metrics, shown))
    rows = Bars((where, float(np.mean(values)), f"{np.mean(values):.4f}") for where, values in found.items())
    line = float(np.mean(found["no defence: granted rows"]))
    return bars("breast cancer, column means of prediction rows: distance (dashed: granted rows)", rows, line)


def _error(metrics: Sequence[Metric], attack: str) -> float:
    """The distance of ``attack`` on prediction rows, a mean over columns; "" of the granted rows' means."""
    name = Name.COLUMN_MEAN_ERROR if attack else Name.COLUMN_BLIND_MEAN_ERROR
    here = {
        m.column: m.value for m in metrics if (m.name, m.attack, m.scored_set) == (name, attack, "predict")
    }
    return float(np.mean(list(here.values())))


def main() -> None:
    """Write it."""
    (DOCS / "attacks" / "property.svg").write_text(errors(), encoding="utf-8")


if __name__ == "__main__":
    main()
