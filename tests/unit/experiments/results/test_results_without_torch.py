"""What a run used is described where its plug-ins' extra is not installed."""

from __future__ import annotations

import pytest

from vflens.errors import ConfigError
from vflens.experiments.audit import words
from vflens.experiments.pages import report
from vflens.experiments.results import clear_training, ledger
from vflens.plugins.attack import installed_attack, up_to_affine
from vflens.plugins.defense import installed_defense
from vflens.registry import Registry


@pytest.fixture
def _no_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def get(registry: Registry, name: str) -> type:
        raise ConfigError(f"{name} needs the extra deep")

    monkeypatch.setattr(Registry, "get", get)


@pytest.mark.usefixtures("_no_torch")
def test_what_cannot_be_loaded_is_left_out() -> None:
    assert installed_attack("wmi") is None
    assert installed_defense("passport") is None
    assert report._declared("wmi")["summary"] == "not installed here"
    assert ledger._hooks("passport") == frozenset()
    assert not up_to_affine("wmi")
    assert not clear_training.reads_training("wmi")
    assert words._knows("wmi", 3) == ""
