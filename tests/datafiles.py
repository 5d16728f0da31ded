"""Tests of whole data sets: skipped where VFLENS_DATA names no folder that holds their files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

WITHOUT = "VFLENS_DATA does not name the folder of the data files"


def needs_file(name: str) -> pytest.MarkDecorator:
    """Skip a test unless the folder of the data files holds ``name``."""
    there = (Path(os.environ.get("VFLENS_DATA", "")) / name).is_file()
    return pytest.mark.skipif(not there, reason=WITHOUT)
