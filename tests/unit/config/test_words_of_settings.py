"""Whatever stands in a setting of any party, the refusal is in our words: none of pydantic's gets through."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from nonempty import nonempty
from pydantic import BaseModel, TypeAdapter, ValidationError

from vflens.config.loading import CONFIGS
from vflens.config.reading import describe_problem
from vflens.errors import VflensError
from vflens.types import Role

FOREIGN = ("Input should", "Value error", "String should", "List should", "valid", "validation", "http")
WEIRD: list[Any] = [
    None,
    True,
    -1,
    0.5,
    float("inf"),
    float("nan"),
    "",
    "x",
    [],
    {},
    [[]],
    [{}],
    {"a": 1},
    10**400,
]


def _settings(model: type[BaseModel], place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        yield (*place, name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from _settings(field.annotation, (*place, name))


def _refusals(kind: type[BaseModel]) -> Iterator[str]:
    """What is said of each value in each place; that other settings are missing is left out."""
    for place in _settings(kind):
        for value in WEIRD:
            settings: Any = value
            for name in reversed(place):
                settings = {name: settings}
            try:
                TypeAdapter(kind).validate_python(settings)
            except ValidationError as error:
                yield from (describe_problem(e) for e in error.errors() if e["loc"][: len(place)] == place)
            except VflensError as error:
                yield str(error)


@pytest.mark.parametrize("role", CONFIGS)
def test_no_refusal_has_pydantic_s_words(role: Role) -> None:
    refusals = list(nonempty(_refusals(CONFIGS[role])))
    assert len(refusals) > 500
    assert [text for text in refusals if any(words in text for words in FOREIGN)] == []
    assert any("give a whole number" in text for text in refusals)
