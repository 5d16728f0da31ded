"""What every family of models promises, checked for each installed one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from thirdfamily import importable, installed

from vflens.models.family import ModelFamily, checked_model
from vflens.registry import MODELS
from vflens.testing import FamilyContract

_FIXTURES = (importable, installed)  # used by name
#: Settings of each family, beside its name.
SETTINGS: dict[str, list[dict[str, Any]]] = {
    "softmax_regression": [{}],
    "linear_regression": [{}],
    "split_network": [
        {"architecture": "mlp", "width": 3, "hidden": [5]},
        {"architecture": "mlp", "width": 3, "hidden": [], "top": [4], "combine": "concatenate"},
    ],
}


def test_every_family_is_held_to_it() -> None:
    assert sorted(SETTINGS) == MODELS.names()


class TestEveryFamily(FamilyContract):
    @pytest.fixture(
        params=[{"family": name, **each} for name in SETTINGS for each in SETTINGS[name]], ids=str
    )
    def family(self, request: pytest.FixtureRequest) -> ModelFamily:
        return checked_model(request.param)


class TestOneOfAnotherPackage(FamilyContract):
    @pytest.fixture
    def family(self, importable: Path) -> ModelFamily:
        return checked_model({"family": "one_hot_regression", "height": 2.0})
