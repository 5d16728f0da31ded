"""Every attack on layers or on labels, in a federation with passports at both parties."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from laboratory import SYNTHETIC, federation

from vflens.errors import ConfigError
from vflens.experiments.offline.attack import attack_recorded
from vflens.experiments.results.folders import read_party
from vflens.plugins.attack import Attack
from vflens.plugins.malicious import breaks_protocol
from vflens.registry import ATTACKS
from vflens.types import Knowledge, Phase, Setting

KINDS: dict[str, type[Attack]] = {n: ATTACKS.get(n) for n in ATTACKS.names()}
READING = {n: kind for n, kind in KINDS.items() if not breaks_protocol(kind)}
VERTICAL = {n: kind for n, kind in READING.items() if Setting.VERTICAL in kind.settings}
CLASSES = {n: kind for n, kind in VERTICAL.items() if kind.label_kind == "classes"}
LABELS = [n for n, c in CLASSES.items() if c.estimates == "labels" and Knowledge.OPENINGS not in c.needs]
FEATURES = [n for n in CLASSES if n not in LABELS and Knowledge.ARCHITECTURE in CLASSES[n].needs]
# They name classes without a label, which nobody can behind a top model that the party does not know.
NAMING = {"gradient_sign", "label_enumeration"}
QUICK = {"starts": 1, "steps": 4, "learning_steps": 4, "draws": 20}


def _quick(name: str, **settings: Any) -> dict[str, Any]:
    return {"name": name, **{k: v for k, v in QUICK.items() if k in CLASSES[name].model_fields}, **settings}


AUTHORS = {"normalise": "authors", "order": "pool_first", "keys": "fixed"}


@pytest.fixture(scope="module", params=[{"mean": "each"}, AUTHORS], ids=["printed", "authors"])
def home(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two classes, so that attacks that tell two apart can act; the layer as printed, and as the authors'
    code has it.
    """
    folder = tmp_path_factory.mktemp("passports")
    federation(
        folder,
        data={**SYNTHETIC, "rows": 150, "classes": 2, "public": 30},
        model={"architecture": "mlp", "width": 2, "trainable_top": True, "top": [4]},
        training={"epochs": 2, "batch_size": 40, "learning_rate": 0.01},
        attacks=[_quick(n) for n in FEATURES] + [_quick(n, at="passive") for n in LABELS],
        disclose=[
            {"what": "parameters", "to": "active"},
            {"what": "auxiliary", "to": "active", "rows": 10},
            {"what": "labels", "to": "passive", "rows": 10},
        ],
        defenses=[
            {"name": "passport", "at": "passive", **request.param},
            {"name": "passport", "at": "active", **request.param},
        ],
    ).run()
    return folder


def test_each_gives_a_figure(home: Path) -> None:
    facts = [m for party in ("active", "passive") for m in read_party(home / party).metrics]
    assert {(m.name, m.attack) for m in facts if m.name in ("skipped", "failed")} == {
        ("skipped", name) for name in NAMING
    }
    assert {m.attack for m in facts if m.name == "mse"} >= set(FEATURES)
    assert {m.attack for m in facts if m.name == "label_accuracy"} >= set(LABELS) - NAMING


@pytest.mark.parametrize(
    ("name", "settings", "scored"),
    [
        ("bmi", {"learn": "top"}, Phase.PREDICT),
        ("bmi", {"passport": "moments", "learner": "adam"}, Phase.PREDICT),
        ("inverse_network", {"passport": "moments"}, Phase.PREDICT),
        ("wmi_moments", {"training_epochs": 2}, Phase.TRAIN),
        ("moments_only", {"training_epochs": 1}, Phase.TRAIN),
        ("wmi", {"passport": "joint"}, Phase.PREDICT),
    ],
)
def test_settings_are_tried_on_the_record(
    home: Path, tmp_path: Path, name: str, settings: dict[str, Any], scored: Phase
) -> None:
    """The own top with its passport's key is among what the party kept of itself."""
    out = tmp_path / "estimate.npz"
    parameters = {k: v for k, v in _quick(name, **settings).items() if k != "name"}
    found = attack_recorded(home / "active", name, None, out, parameters=parameters, scored=scored)
    with np.load(out) as estimate:
        assert len(estimate["rows"]) == found["rows"] > 20
        assert np.isfinite(estimate["values"]).all()


def test_an_attack_computes_where_its_party_does(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On the record of a run: a party's folder that names a GPU is attacked on one."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    there = shutil.copytree(home / "active", tmp_path / "active")
    config = (there / "config.toml").read_text(encoding="utf-8")
    assert 'device = "cpu"' in config
    (there / "config.toml").write_text(config.replace('device = "cpu"', 'device = "cuda"'), encoding="utf-8")
    with pytest.raises(ConfigError, match="torch finds no GPU on this machine"):
        attack_recorded(there, "wmi", None, tmp_path / "estimate.npz")
