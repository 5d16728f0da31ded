"""The rows of a sweep as its page filters, sorts and draws them."""

import math
from typing import Any

from vflens.experiments.results.utility import UTILITY
from vflens.experiments.sweeps.pool import Rows
from vflens.experiments.sweeps.sweep_page import OF_ROUNDS
from vflens.numerics.measures.intervals import quantile
from vflens.storage.metrics import Name
from vflens.types import Document

_DIMENSIONS = (
    "data", "federation", "defense", "strength", "seed", "attack", "estimates", "measure", "adversary",
    "target", "scored_set",
)  # fmt: skip
_WORDS = {
    "defense": "defence",
    "scored_set": "scored rows",
    "relative": "error / blind error",
    "mse": "MSE per column",
    "blind": "blind guess",
    "closed": "MSE in theory",
    "measured": "MSE before answers are moved into the box",
    "label_accuracy": "labels named rightly",
    "share": "accuracy, AUC or R²",
    "distance": "distance of the column means",
    "label_auc": "AUC of the attack on labels",
    "membership_auc": "AUC of the attack on membership",
    "source_right": "training rows named as their own client's",
    "half_width": "half the width of the MSE's 95 % interval over rows",
    "auc": "AUC of the federation",
    "mean_kl": "mean KL between true and released scores, nats",
    "argmax_kept": "rows that keep their class",
    **{name: UTILITY[name] for name in (Name.R2, Name.R2_ALONE, "r2_gain", Name.RMSE, Name.RMSE_ALONE)},
}
#: What a blind guess reaches: a level, or the figure that holds it.
_BLIND = {
    "relative": 1,
    "label_auc": 0.5,
    "membership_auc": 0.5,
    "mse": "blind",
    "label_accuracy": "blind",
    "source_right": "blind",
}


def explained(seeds: int, opening: Document | None = None) -> Document:
    """What the page needs to know of the figures, with the quantiles for means of up to ``seeds``;
    ``opening``: what it shows first.
    """
    return {
        "dimensions": _DIMENSIONS,
        "settings": OF_ROUNDS,
        "words": _WORDS,
        "blind": _BLIND,
        "quantiles": {n: quantile(n) for n in range(2, seeds + 1)},
        "opening": opening or {},
    }


def packed(rows: Rows) -> Document:
    """``rows`` of results as "heads" and lists of values: the dimensions, the settings that vary, and all
    figures, to six digits; None where a row has none.
    """
    names = dict.fromkeys(k for r in rows for k, v in r.items() if _is_shown(k, v))
    heads = [*(d for d in _DIMENSIONS if d in names), *(k for k in names if k not in _DIMENSIONS)]
    return {"heads": heads, "rows": [[_value(r.get(k)) for k in heads] for r in rows]}


def _is_shown(name: str, value: Any) -> bool:
    if value is None:
        return False
    return name in _DIMENSIONS or name.startswith(OF_ROUNDS) or isinstance(value, int | float)


def _value(value: Any) -> Any:
    """A number that JSON has: infinity is a sign."""
    if not isinstance(value, float):
        return value
    if math.isinf(value):
        return "∞"
    return None if math.isnan(value) else float(f"{value:.6g}")
