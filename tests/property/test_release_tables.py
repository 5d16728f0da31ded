"""Odd tables: every release ends correct, or in one sentence of the right class."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import example, given, settings
from hypothesis.extra.numpy import arrays

from experiments.release import release
from experiments.release_file import TableFile
from experiments.release_options import Options
from vfl.errors import ConfigError, DataError
from vfl.types import Array

SCALES = st.sampled_from([0.0, 1e-300, 1e-12, 1e-3, 1.0, 1e3, 1e12, 1e100, 1e300])
NOISE = {
    "gaussian": {"lambda_": 1.0},
    "scaled": {"lambda_": 1.0, "pi": "standardise"},
    "laplace": {"target_mse": 1.0},
    "bounded": {"lambda_": 1.0, "lower": "-1", "upper": "2"},
    "correlated": {"m": 100.0},
    "drowned": {"m": 1e30},
}
MECHANISMS = {"scaled": "gaussian", "drowned": "correlated"}


@st.composite
def tables(draw: st.DrawFn) -> tuple[Array, Array]:
    """Up to 12 rows and 4 columns, each column of its own scale; rows may repeat, columns may be constant."""
    rows, columns = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    x = draw(arrays(np.float64, (rows, columns), elements=st.integers(-3, 3).map(float)))
    scales = np.array([draw(SCALES) for _ in range(columns)])
    labels = draw(arrays(np.int64, rows, elements=st.integers(0, 1)))
    return x * scales + draw(st.sampled_from([0.0, 5.0])), labels


def _released(x: Array, labels: Array, noise: str, folder: Path, suffix: str) -> Array | None:
    """The released numbers; None where the table was refused."""
    names = [f"c{j}" for j in range(x.shape[1])]
    columns = {n: x[:, j] for j, n in enumerate(names)} | {"y": labels}
    table, out = folder / "t.parquet", folder / f"o{suffix}"
    pq.write_table(pa.table(columns), table)
    options = Options(
        table=table, out=out, mechanism=MECHANISMS.get(noise, noise), label="y", seed="1", **NOISE[noise]
    )  # type: ignore[arg-type]
    refusal = None
    try:
        done = release(options, lambda *_: None)
    except (ConfigError, DataError) as error:
        refusal = str(error)
    if refusal is not None:
        assert "\n" not in refusal
        assert [f.name for f in folder.iterdir()] == ["t.parquet"]
        return None
    json.dumps(done.facts, allow_nan=False)
    file = TableFile(out)
    assert file.names == (*names, "y")
    read = list(file.blocks(names, ["y"], "", lambda *_: None))
    assert [v for b in read for v in b["y"].cast("int64").to_pylist()] == labels.tolist()
    return np.concatenate([np.column_stack([b[n].to_numpy() for n in names]) for b in read])


WIDE = np.array([[1e-12, 1e12], [2e-12, -1e12], [0.0, 3e12], [-1e-12, 2e12]])


@settings(max_examples=60, deadline=None)
@given(tables(), st.sampled_from(sorted(NOISE)), st.sampled_from([".csv", ".parquet"]))
@example((WIDE, np.array([0, 1, 0, 1])), "correlated", ".csv")
@example((WIDE, np.array([0, 1, 0, 1])), "gaussian", ".csv")
@example((WIDE, np.array([0, 1, 0, 1])), "scaled", ".csv")
@example((np.ones((6, 3)), np.array([0, 1, 0, 1, 1, 1])), "correlated", ".csv")
@example((np.zeros((2, 2)), np.array([0, 1])), "drowned", ".csv")
def test_an_odd_table_is_released_or_refused_in_a_sentence(
    table: tuple[Array, Array], noise: str, suffix: str
) -> None:
    x, labels = table
    with tempfile.TemporaryDirectory() as folder:
        released = _released(x, labels, noise, Path(folder), suffix)
    if released is None:
        return
    assert released.shape == x.shape
    assert np.isfinite(released).all()
    moved = released != x
    if noise in ("gaussian", "laplace", "bounded"):  # noise in every cell, not rounded away
        assert moved.all()


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 40), st.integers(1, 5), st.sampled_from(["gaussian", "laplace", "bounded"]))
def test_ordinary_tables_are_never_refused(rows: int, columns: int, noise: str) -> None:
    x = np.random.default_rng(rows).normal(size=(rows + 1, columns))
    labels = np.arange(rows + 1) % 2
    with tempfile.TemporaryDirectory() as folder:
        assert _released(x, labels, noise, Path(folder), ".csv") is not None
