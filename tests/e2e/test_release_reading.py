"""``vflens release`` reads CSV as pandas reads it, whatever its dialect."""

from __future__ import annotations

import bz2
import gzip
import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from commandline import Run
from thinned import thinned

from vflens.tables.exact_numbers import MISSING


@pytest.fixture
def vflens(vflens: Run) -> Run:
    """``vflens release`` in this process."""
    return partial(vflens, "release")


def _json(run: Run, *arguments: str | Path) -> dict[str, Any]:
    code, out, err = run(*arguments, "--json")
    assert code == 0, err
    facts: dict[str, Any] = json.loads(out, parse_constant=pytest.fail)
    return facts


DIALECTS = {
    "plain": b"a,b,y\n1,2.5,u\n3,4,v\n",
    "crlf": b"a,b,y\r\n1,2.5,u\r\n3,4,v\r\n",
    "cr": b"a,b,y\r1,2.5,u\r3,4,v\r",
    "byte order mark": b"\xef\xbb\xbfa,b,y\n1,2.5,u\n3,4,v\n",
    "no last newline": b"a,b,y\n1,2.5,u\n3,4,v",
    "quoted": b'"a","b","y"\n"1",2.5,"u, ""x"""\n3,"4","v"\n',
    "newline in quotes": b'a,"b",y\n1,2.5,"u\nu"\n3,4,v\n',
    "empty lines": b"a,b,y\n\n1,2.5,u\n\n\n3,4,v\n\n",
    "spaces and signs": b"a,b,y\n +1, 2.5 ,u\n-3,.4,v\n",
    "exponents": b"a,b,y\n1e3,2.5E-4,u\n3.,1e-300,v\n",
    "index column": b",a,b,y\n0,1,2.5,u\n1,3,4,v\n",
    "names with commas": b'"a,a","b ""b""",y\n1,2.5,u\n3,4,v\n',
    "unicode": "größe,β,y\n1,2.5,ü\n3,4,v\n".encode(),
}


@pytest.mark.parametrize("dialect", thinned(((dialect,) for dialect in DIALECTS), 3))
@pytest.mark.parametrize("pack", [("", bytes), (".gz", gzip.compress), (".bz2", bz2.compress)])
def test_csv_is_read_as_pandas_reads_it(
    vflens: Run, tmp_path: Path, dialect: str, pack: tuple[str, Callable[[bytes], bytes]]
) -> None:
    table, out = tmp_path / f"t.csv{pack[0]}", tmp_path / "o.csv"
    table.write_bytes(pack[1](DIALECTS[dialect]))
    # noise far below the numbers: what was read can be read off the release
    code, _, err = vflens(table, "--label", "y", "--lambda", "1e32", "--out", out)
    assert code == 0, err
    before, after = pd.read_csv(io.BytesIO(DIALECTS[dialect])), pd.read_csv(out)
    assert list(after.columns) == list(before.columns)
    assert after["y"].tolist() == before["y"].tolist()
    np.testing.assert_allclose(after.drop(columns="y"), before.drop(columns="y"), atol=1e-7)


@pytest.mark.parametrize("marker", MISSING)
def test_missing_is_what_pandas_takes_for_missing(vflens: Run, tmp_path: Path, marker: str) -> None:
    table = tmp_path / "t.csv"
    table.write_text(f"a,b,y\n1,2,u\n3,{marker},v\n5,6,v\n")
    assert pd.read_csv(table)["b"].isna().tolist() == [False, True, False]
    code, _, err = vflens(table, "--label", "y", "--lambda", "1", "--out", tmp_path / "o.csv")
    assert code == 3
    assert "column 'b' misses a value in data row 2" in err
    kept = _json(
        vflens, table, "--label", "y", "--lambda", "1", "--missing", "drop-row", "--out", tmp_path / "o.csv"
    )
    assert kept["rows"] == 2
    assert pd.read_csv(tmp_path / "o.csv")["y"].tolist() == ["u", "v"]
