"""A small file must not fill the memory: it is refused once it has unpacked to far more than its size."""

from __future__ import annotations

import bz2
import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from commandline import Refused
from thinned import first

from vflens.errors import DataError
from vflens.storage.arrow import numbers
from vflens.tables import cells
from vflens.tables.description import PartyFile
from vflens.tables.files import read_party_table

REFUSED = "MiB, far more than its own size: if you trust it, store it as a plain .csv"
ROWS = 200_000
KINDS = ("csv.gz", "csv.bz2", "csv.zst", "zeros", "one text", "plain texts", "many columns")
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "csv.gz": gzip.compress,
    "csv.bz2": bz2.compress,
    "csv.zst": lambda cells: bytes(pa.compress(cells, "zstd", asbytes=True)),
}


def _bomb(folder: Path, kind: str, rows: int) -> Path:
    """A small file of so many rows, or of fewer with long texts."""
    if kind in PACKED:
        (folder / f"t.{kind}").write_bytes(PACKED[kind](b"id,a\n" + b"1,1\n" * rows))
        return folder / f"t.{kind}"
    texts = {"one text": rows // 10, "plain texts": rows // 1000, "many columns": rows // 100}.get(kind, rows)
    zeros = numbers(np.zeros(texts, np.int32))
    column = zeros if kind in ("zeros", "many columns") else pa.array(["t" * 10_000])
    if kind == "one text":
        column = pa.DictionaryArray.from_arrays(zeros, column)
    elif kind == "plain texts":
        column = column.take(zeros)
    names = ["a", *map(str, range(200 if kind == "many columns" else 0))]
    table = pa.table({"id": zeros, **dict.fromkeys(names, column)})
    packing = {"compression": "zstd", "use_dictionary": kind != "plain texts"}
    pq.write_table(table, folder / "t.parquet", store_schema=False, **packing)  # read as plain strings
    return folder / "t.parquet"


@pytest.fixture(params=KINDS)
def bomb(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(cells, "_LEAST_BYTES", 1 << 20)
    if request.param == "many columns":  # its footer alone makes it large
        monkeypatch.setattr(cells, "_TIMES", 2)
    return _bomb(tmp_path, request.param, ROWS)


def test_a_bomb_is_refused_by_all_commands(bomb: Path, tmp_path: Path, refused: Refused) -> None:
    (tmp_path / "own.toml").write_text(f'file = "{bomb}"\n')
    assert REFUSED in refused(3, "check", tmp_path / "own.toml")
    assert REFUSED in refused(3, "audit", bomb, "--classes", "2", "--out", tmp_path / "a.html")
    encode = ("--encode", "a=one_hot") if bomb.suffix == ".parquet" else ()
    assert REFUSED in refused(3, "release", bomb, "--lambda", "1", *encode, "--out", tmp_path / "o.csv")
    with pytest.raises(DataError, match=rf"^{bomb}: "):
        read_party_table(PartyFile(file=bomb))


@pytest.mark.parametrize("kind", first(["csv.gz", "one text"]))
def test_memory_stays_bounded(tmp_path: Path, kind: str) -> None:
    """Another process checks it in less memory than its cells take."""
    code = (
        "import sys; from pathlib import Path; from vflens.tables.description import PartyFile\n"
        "from vflens.tables.files import check_party_table\n"
        "try: check_party_table(PartyFile(file=Path(sys.argv[1])))\n"
        "except Exception as error: print(type(error).__name__)\n"
        "print(*(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM')))"
    )
    file = _bomb(tmp_path, kind, 20_000_000 if kind == "csv.gz" else 2_000_000)
    done = subprocess.run([sys.executable, "-c", code, str(file)], capture_output=True, text=True, check=True)
    refusal, kib = done.stdout.split()
    assert refusal == "DataError"
    assert int(kib) >> 10 < 512


def test_a_file_may_unpack_to_what_its_size_allows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The remedy works: a plain file is its own size; an honest packed one unpacks less than 200 times."""
    monkeypatch.setattr(cells, "_LEAST_BYTES", 1 << 10)
    rows = "".join(f"r{i},{i * 37 % 1000}\n" for i in range(5000))
    (tmp_path / "t.csv").write_text("id,a\n" + rows)
    (tmp_path / "t.csv.gz").write_bytes(gzip.compress((tmp_path / "t.csv").read_bytes()))
    (tmp_path / "t.csv.zst").write_bytes(PACKED["csv.zst"]((tmp_path / "t.csv").read_bytes()))
    for name in ("t.csv", "t.csv.gz", "t.csv.zst"):
        assert len(read_party_table(PartyFile(file=tmp_path / name)).ids) == 5000
    monkeypatch.setattr(cells, "_TIMES", 1)
    with pytest.raises(DataError, match="it unpacks to more than 0 MiB"):
        read_party_table(PartyFile(file=tmp_path / "t.csv.gz"))
