"""A contract fails where a family of models or a data set breaks it: made-up ones, each with one fault."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from types import SimpleNamespace
from typing import Any, Literal

import numpy as np
import pytest
from brokenplugins import broken
from horizontal import table

from vflens.models.families.softmax_regression import SoftmaxRegression
from vflens.plugins.dataset import Dataset
from vflens.tables.table import Table
from vflens.testing import DatasetContract, FamilyContract
from vflens.types import Array


class Eager(SoftmaxRegression):
    """Its active part learns before it is told to."""

    def active_part(self, site: Any) -> Any:
        part = super().active_part(site)

        def loss_gradient(received: Array, x: Array, y: Array, exchange: Any = None) -> Any:
            found = type(part).loss_gradient(part, received, x, y, exchange)
            found.learn()
            return found

        return SimpleNamespace(loss_gradient=loss_gradient)


class Drawing(SoftmaxRegression):
    def passive_part(self, site: Any) -> Any:
        part = super().passive_part(site)
        part.weight[:] = np.random.normal(size=part.weight.shape)  # noqa: NPY002
        return part


class Forgetful(SoftmaxRegression):
    def passive_part(self, site: Any) -> Any:
        part = super().passive_part(site)
        vars(part)["load"] = lambda state: None
        return part


class Uphill(SoftmaxRegression):
    def passive_part(self, site: Any) -> Any:
        part = super().passive_part(site)
        vars(part)["learn"] = lambda x, g, e=None: type(part).learn(part, x, -g, e)
        return part


class Lossy(SoftmaxRegression):
    family: Literal["softmax_regression"] = "softmax_regression"
    height: float = 1.0

    def model_dump_json(self, **how: Any) -> str:
        return super().model_dump_json(exclude={"height"})


STEPS = "steps_lower_the_loss_and_follow_from_the_keys_alone"


@pytest.mark.parametrize(
    ("family", "failed"),
    [
        (SoftmaxRegression(), set()),
        (Eager(), {STEPS, "a_part_is_taken_up_from_its_state"}),
        (Drawing(), {STEPS}),
        (Forgetful(), {"a_part_is_taken_up_from_its_state"}),
        (Uphill(), {STEPS}),
        (Lossy(height=2.0), {"its_settings_travel_as_json"}),
    ],
)
def test_a_broken_family_fails(family: SoftmaxRegression, failed: set[str]) -> None:
    assert broken(FamilyContract, "family", family) == failed


class Rows(Dataset):
    def load(self) -> Table:
        return table(30, 1)


_NUMBERS = count()


class Changing(Dataset):
    def load(self) -> Table:
        return table(30, next(_NUMBERS))


class Narrow(Rows):
    """Its columns have values beyond their bounds."""

    def load(self) -> Table:
        made = super().load()
        columns = tuple(replace(c, low=0.0, high=1e-9) for c in made.columns)
        return replace(made, columns=columns, features=np.abs(made.features) + 1)


class Unscaled(Rows):
    def prepared(self) -> Table:
        return replace(self.load(), features=self.load().features + 9)


RECIPE = "the_papers_recipe_scales_it_into_the_box"
SOUND = "its_table_is_sound_and_always_the_same"


@pytest.mark.parametrize(
    ("kind", "failed"), [(Rows, set()), (Changing, {SOUND}), (Narrow, {SOUND}), (Unscaled, {RECIPE})]
)
def test_a_broken_data_set_fails(kind: type[Dataset], failed: set[str]) -> None:
    assert broken(DatasetContract, "dataset", kind()) == failed
