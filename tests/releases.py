"""``vflens release`` in this process, and tables for it."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commandline import Run

from vflens.types import Array


@pytest.fixture
def vflens(vflens: Run) -> Run:
    """``vflens release`` in this process."""
    return partial(vflens, "release")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """400 rows: an identifier, a float, a whole number, text, a label, in that order."""
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "who": [f"p{i}" for i in rng.permutation(400)],
            "income": rng.normal(50, 20, 400),
            "age": rng.integers(18, 80, 400),
            "job": rng.choice(["clerk", "cook, chef", 'a "sir"'], 400),
            "y": rng.choice(["no", "yes"], 400),
        }
    )
    frame.to_csv(tmp_path / "table.csv", index=False)
    return tmp_path / "table.csv"


def facts_of(run: Run, *arguments: str | Path) -> dict[str, Any]:
    code, out, err = run(*arguments, "--json")
    assert code == 0, err
    facts: dict[str, Any] = json.loads(out, parse_constant=pytest.fail)
    return facts


def numbers_in(folder: Path, x: Array, y: Array | None = None) -> Path:
    frame = pd.DataFrame(x, columns=[f"c{j}" for j in range(x.shape[1])])
    if y is not None:
        frame["y"] = y
    frame.to_csv(folder / "numbers.csv", index=False)
    return folder / "numbers.csv"
