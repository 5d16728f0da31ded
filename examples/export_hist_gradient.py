"""Write scikit-learn's HistGradientBoosting as JSON that ``vflens audit --weights`` reads.

In the environment that trained it: ``from export_hist_gradient import export`` and
``export(model, "model.json")``. Tried with scikit-learn 1.9.1.
"""

import json
from pathlib import Path
from typing import Any

_LOSSES = {
    "HalfBinomialLoss": "logistic",
    "HalfMultinomialLoss": "softmax",
    "HalfSquaredError": "squared error",
}
_FIELDS = {"feature": "feature_idx", "threshold": "num_threshold", "value": "value", "rows": "count"}


def export(model: Any, file: str | Path) -> None:
    """Write a fitted HistGradientBoostingClassifier or HistGradientBoostingRegressor to ``file``.

    Raises:
        ValueError: its loss or its splits of categories cannot be audited.
    """
    loss = _LOSSES.get(type(model._loss).__name__)
    if loss is None or model.is_categorical_ is not None:
        raise ValueError("vflens reads numbers with the losses log_loss and squared_error")
    written = {
        "vflens_trees": 1,
        "loss": loss,
        "inputs": model.n_features_in_,
        "names": list(map(str, getattr(model, "feature_names_in_", ()))),
        "base": model._baseline_prediction.ravel().tolist(),
        "rate": model.learning_rate,
        "penalty": model.l2_regularization,
        "bounded": model.monotonic_cst is not None,
        "trees": [_tree(one.nodes) for step in model._predictors for one in step],
    }
    Path(file).write_text(json.dumps(written), encoding="utf-8")


def _tree(nodes: Any) -> dict[str, list[float]]:
    arrays = {name: nodes[field].tolist() for name, field in _FIELDS.items()}
    leaf = nodes["is_leaf"].astype(bool)
    return arrays | {
        side: [-1 if at else int(n) for at, n in zip(leaf, nodes[side], strict=True)]
        for side in ("left", "right")
    }
