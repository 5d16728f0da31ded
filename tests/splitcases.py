"""Settings of small split networks: passports and noise, summed or side by side, at each place of
aggregation.
"""

from __future__ import annotations

from typing import Any

MODEL = {"architecture": "mlp", "width": 6, "hidden": [8], "top": [7], "dropout": 0.2}
PASSPORTS = [{"name": "passport", "at": "passive"}, {"name": "passport", "at": "active"}]
SETTINGS: dict[str, Any] = {
    "model": MODEL,
    "training": {"epochs": 4, "batch_size": 20, "learning_rate": 0.01},
    "limits": {"checkpoint_steps": 3},
    "attacks": [{"name": "wmi", "steps": 5}, {"name": "bmi", "steps": 5, "learning_steps": 5}],
    "disclose": [
        {"what": "parameters", "to": "active"},
        {"what": "auxiliary", "to": "active", "rows": 10},
    ],
    "defenses": [*PASSPORTS, {"name": "dp_gaussian", "at": "active"}],
}
CONCATENATED = {**SETTINGS, "model": {**MODEL, "combine": "concatenate"}}
DIRECT = {**SETTINGS, "aggregator": "active"}
STALE = {**DIRECT, "training": {**SETTINGS["training"], "staleness": 1}}
PLACES = {"coordinator": SETTINGS, "active": DIRECT, "active, one step stale": STALE}
