"""What every family of models promises, checked for each installed one."""

from __future__ import annotations

import pytest

from vflens.models.family import ModelFamily, checked_model
from vflens.registry import MODELS
from vflens.testing import FamilyContract

#: Settings of each family, beside its name.
SETTINGS = {
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
