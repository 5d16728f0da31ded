"""A table in a mapped file gives the bits of one in memory, and its pages do not stay in memory."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from laboratory import estimates, experiment, figures, let_go_later, trained, transcripts
from oneprocess import LocalFederation

from vflens import array
from vflens.array import ScaledColumns, mapped
from vflens.errors import DataError, StorageError
from vflens.experiments.run.dealer import deal_tables, write_parties
from vflens.storage import files
from vflens.tables import features, reading
from vflens.tables.description import PartyFile
from vflens.tables.features import moved
from vflens.tables.files import read_party_table
from vflens.tables.scaling import Scaler
from vflens.types import Array

ROWS, COLUMNS = 200_000, 5
TIMES = {"train_seconds", "predict_seconds", "steps_per_second"}


def _map_all(monkeypatch: pytest.MonkeyPatch, block_bytes: int = 1 << 16) -> None:
    monkeypatch.setattr(files, "MAPPED_BYTES", 0)
    monkeypatch.setattr(array, "_BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(features, "_MOVED_BYTES", block_bytes)
    monkeypatch.setattr(features, "_SLAB_BYTES", 4 * block_bytes)


def _resident(numbers: Array) -> int:
    """The bytes of the mapping of ``numbers`` that lie in this process's memory."""
    begins = f"{numbers.__array_interface__['data'][0]:x}-"
    lines = iter(Path("/proc/self/smaps").read_text(encoding="utf-8").splitlines())
    next(line for line in lines if line.startswith(begins))
    return int(next(line for line in lines if line.startswith("Rss:")).split()[1]) << 10


def _long_table(home: Path) -> PartyFile:
    rng = np.random.default_rng(0)
    columns = {f"c{j}": pa.array(rng.normal(size=ROWS)) for j in range(COLUMNS)}
    columns["c1"] = pa.array(rng.integers(0, 3, ROWS).astype(float), mask=rng.random(ROWS) < 0.1)
    ids = {"id": pa.array(map(str, range(ROWS)))}
    pq.write_table(pa.table(ids | columns), home / "own.parquet", row_group_size=70_000)
    return PartyFile(file=home / "own.parquet", id_column="id", missing="mean", bounds={"c2": (-9, 9)})


def _run(home: Path) -> LocalFederation:
    what = experiment(
        home,
        lab=True,
        attacks=[{"name": "half_star"}, {"name": "lmmse"}, {"name": "agnostic"}],
        disclose=[{"what": w, "to": "active"} for w in ("parameters", "moments")],
    )
    dealt = write_parties(what, what.scenarios[0], deal_tables(what), home)
    local = let_go_later(LocalFederation(dealt, lambda stage, done, total: None))
    local.run()
    return local


def test_a_federation_on_mapped_tables_has_the_bits_of_one_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    theirs = _run(tmp_path / "memory")
    _map_all(monkeypatch, 200)
    ours = _run(tmp_path / "mapped")
    for local, expected in ((ours, True), (theirs, False)):
        for party in local.data_parties.values():
            assert bool(mapped(party.run.truth.kept)) is expected
            assert not mapped(party.table.features)  # else it would hold the first file
    assert trained(ours) == trained(theirs)
    assert transcripts(tmp_path / "mapped") == transcripts(tmp_path / "memory")
    assert estimates(tmp_path / "mapped") == estimates(tmp_path / "memory") != {}
    for name in ("passive", "active"):
        found, expected_of = (figures(tmp_path / kind / name) for kind in ("mapped", "memory"))
        assert found.keys() == expected_of.keys()
        for key in (key for key in found if key[0] not in TIMES):
            np.testing.assert_array_equal(found[key], expected_of[key], str(key))


def _scaled(spec: PartyFile) -> tuple[Array, Array, list[Any]]:
    """The numbers of a table, as read and as scaled in another order; and what came of them."""
    table, order = read_party_table(spec), np.random.default_rng(1).permutation(ROWS).astype(np.int32)
    digest, read = table.digest().tobytes(), table.features
    kept = moved(read, order)
    scaler = Scaler.fit(table.columns, kept, np.arange(ROWS))
    clipped, columns, rows = scaler.transform_in_place(kept), ScaledColumns(kept), np.arange(0, ROWS, 7)
    return read, kept, [digest, clipped, columns.mean(rows).tobytes(), columns[rows].tobytes()]


def test_a_mapped_table_is_read_and_scaled_bit_by_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = _long_table(tmp_path)
    _, in_memory, expected = _scaled(spec)
    _map_all(monkeypatch)
    read, kept, found = _scaled(spec)
    assert mapped(read)
    assert mapped(kept)
    assert found == expected
    assert kept.tobytes() == in_memory.tobytes()


def test_pages_of_a_mapped_table_do_not_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are counted whenever some are let go: each pass touches them all."""
    shares, go = list[float](), array.let_go

    def noting(numbers: Array) -> None:
        if mapped(numbers):
            whole = numbers.base if isinstance(numbers.base, np.ndarray) else numbers
            shares.append(_resident(whole) / whole.nbytes)
        go(numbers)

    _map_all(monkeypatch, 1 << 18)
    for module in ("vflens.array", "vflens.tables.features", "vflens.tables.scaling"):
        monkeypatch.setattr(f"{module}.let_go", noting)
    read, kept, _ = _scaled(_long_table(tmp_path))
    shares += [_resident(numbers) / numbers.nbytes for numbers in (read, kept)]
    assert len(shares) > 100
    assert 0 < max(shares) < 0.5


def test_a_full_disk_is_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    spec = _long_table(tmp_path)
    _map_all(monkeypatch)
    monkeypatch.setattr(os, "posix_fallocate", full)
    sentence = r"keeps no table of 8 MiB \(No space left on device\): free space there, or set TMPDIR to a"
    with pytest.raises(StorageError, match=sentence):
        read_party_table(spec)


@pytest.mark.parametrize("rows", [1, 3])
def test_a_file_that_changes_while_it_is_read_is_refused(
    rows: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, plain = tmp_path / "own.csv", features.features_of
    file.write_text("id,a\nx,1\ny,2\n")

    def later(*given: Any) -> Any:
        file.write_text("id,a\n" + "".join(f"{i},1\n" for i in range(rows)))
        return plain(*given)

    monkeypatch.setattr(reading, "features_of", later)
    with pytest.raises(DataError, match="it changed while it was read: start again when no program"):
        read_party_table(PartyFile(file=file, id_column="id"))
