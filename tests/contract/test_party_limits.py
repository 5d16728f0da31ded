"""A party's own limits: a coordinator that asks for more is refused before anything is built."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import SYNTHETIC, federation
from nonempty import nonempty

from vflens.errors import ConfigError
from vflens.experiments.run.check import check
from vflens.models.family import checked_model
from vflens.models.settings import Training
from vflens.protocol.acts import Prepare
from vflens.protocol.vertical.agreement import VerticalAgreement

LIMITS = {"epochs": 100, "min_learning_rate": 1e-3, "max_width": 16, "memory_mib": 4}
MLP: dict[str, Any] = {"architecture": "mlp", "width": 8}
BEYOND: list[tuple[str, dict[str, Any], dict[str, Any] | None, str]] = [
    ("epochs", {"epochs": 2**31 - 1}, None,
            r"^training\.epochs: 2147483647 in run 'tiny/run', "
            r"limits\.epochs at '{}' is 100: train with less, or raise it$"),
    ("rate", {"learning_rate": 1e-300}, None,
            r"^training\.learning_rate: 1e-300 in run 'tiny/run', "
            r"limits\.min_learning_rate at '{}' is 0\.001: train with a "
            r"larger one, or lower it$"),
    ("hidden", {}, {**MLP, "hidden": [65536] * 16},
            r"^the widest layer: 65536 in run 'tiny/run', "
            r"limits\.max_width at '{}' is 16: train with less, or "
            r"raise it$"),
    ("top", {}, {**MLP, "top": [17]}, r"^the widest layer: 17 "),
    ("embedding", {}, {**MLP, "width": 17, "top": [4]}, r"^the widest layer: 17 "),
    ("memory", {}, {**MLP, "hidden": [65536] * 16},
            r"^MiB for rows, model and a step: 19[0-9]+ in run "
            r"'tiny/run', limits\.memory_mib at '{}' is 4: train "
            r"with less, or raise it$"),
]  # fmt: skip


@pytest.mark.parametrize(("training", "model", "words"), [c[1:] for c in BEYOND], ids=[c[0] for c in BEYOND])
def test_a_run_beyond_a_limit_is_refused_and_nothing_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, training: dict[str, Any], model: Any, words: str
) -> None:
    local = federation(tmp_path, limits=LIMITS, attacks=[])
    parties = local.coordinator._describe()
    rows = np.arange(90, dtype=np.int32)
    asked = VerticalAgreement(
        run="tiny/run",
        parties=parties,
        rows=90,
        train=rows[:72],
        predict=rows[72:],
        training=Training(**training),
        lab=True,
        model=checked_model(model),
    )
    for party in nonempty(local.data_parties.values()):
        monkeypatch.setattr(party, "begin_run", lambda *_: pytest.fail("built"))
        if "memory_mib" in words:
            limits = party.config.limits.model_copy(update={"max_width": 65536})
            party.config = party.config.model_copy(update={"limits": limits})
        with pytest.raises(ConfigError, match=words.format(party.name)):
            local.coordinator.links[party.name].call(Prepare(asked, rows))
        assert party.federation is None


def test_a_run_at_its_limits_is_taken(tmp_path: Path) -> None:
    limits = {"epochs": 3, "min_learning_rate": 0.1, "max_width": 3, "memory_mib": 1}
    local = federation(tmp_path, limits=limits)
    local.coordinator.prepare()
    assert local.coordinator.aligned.training.epochs == 3


def test_check_says_so_before_the_run(tmp_path: Path) -> None:
    import tomli_w

    settings = {
        "name": "tiny", "data": SYNTHETIC, "split": {"kind": "fraction", "fraction": 0.5},
        "training": {"epochs": 51}, "limits": {"epochs": 50}, "scenarios": [{"name": "run"}],
    }  # fmt: skip
    file = tmp_path / "experiment.toml"
    file.write_text(tomli_w.dumps(settings))
    with pytest.raises(
        ConfigError,
        match=r"^training\.epochs: 51 in run 'tiny', limits\.epochs at 'active' is 50: train with",
    ):
        check(file)
