"""Exit codes and the classes that they stand for."""

from __future__ import annotations

import pytest

import vflens.cli.release  # noqa: F401  # it has an error class of its own, with the code of an interruption
from vflens.errors import VflensError, by_exit_code, by_name, classes, exit_codes


@pytest.mark.parametrize("cls", classes())
def test_a_class_is_found_by_its_name_and_by_its_code(cls: type[VflensError]) -> None:
    assert by_name(cls.__name__) is cls
    assert by_exit_code(cls.exit_code) is cls


@pytest.mark.parametrize("code", [0, 17, 130, -9])
def test_a_code_of_no_class_is_a_failure(code: int) -> None:
    assert by_exit_code(code) is VflensError


def test_a_name_of_no_class_is_a_failure() -> None:
    """A peer sends the name: what another module derived is not for it to raise."""
    assert {by_name(name) for name in ("", "ValueError", "_InterruptedError")} == {VflensError}


def test_codes_and_words_are_each_of_one_meaning() -> None:
    assert list(exit_codes()) == [*range(17), 130]
    assert len(set(exit_codes().values())) == 18
