"""Ctrl-C is recognised in whatever wraps it while the program loads."""

from __future__ import annotations

import pytest
from pydantic_core import SchemaError

from vflens.cli.main import _is_interruption


@pytest.mark.parametrize(
    ("error", "is_one"),
    [
        (KeyboardInterrupt(), True),
        (SchemaError('Error building "literal" validator: KeyboardInterrupt: '), True),
        (SchemaError('Error building "literal" validator: TypeError: no'), False),
        (ValueError("KeyboardInterrupt"), False),
    ],
)
def test_a_wrapped_interruption_is_one(error: BaseException, is_one: bool) -> None:
    assert _is_interruption(error) is is_one
