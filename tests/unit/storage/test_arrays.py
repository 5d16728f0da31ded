"""Files written whole or not at all."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from zipfile import ZipFile

import numpy as np
import pytest

from vflens.errors import StorageError
from vflens.storage.files import load_arrays, save_arrays, write_whole


@pytest.mark.parametrize("place", [".", "..", "there"])
def test_a_folder_in_the_file_s_place_is_refused_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    (tmp_path / "at" / "there").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "at")
    refused = r"cannot be written \(.*\): free space or choose another"
    with pytest.raises(StorageError, match=refused):
        save_arrays(Path(place), {"x": np.zeros(3)})
    with pytest.raises(StorageError, match=refused):
        write_whole(Path(place), b"text")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["at", "there"]


def test_a_full_disk_leaves_the_earlier_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x.npz"
    save_arrays(file, {"x": np.ones(3)})

    def full(out: object, **arrays: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full)
    with pytest.raises(StorageError, match="No space left on device"):
        save_arrays(file, {"x": np.zeros(3)})
    assert [p.name for p in tmp_path.iterdir()] == ["x.npz"]
    assert (load_arrays(file)["x"] == 1).all()


def _announcing(file: Path, header: bytes, body: bytes = b"") -> None:
    """An archive of one member with this header."""
    data = b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + body
    with ZipFile(file, "w") as archive:
        archive.writestr("x.npy", data)


def _header(dtype: str, shape: str) -> bytes:
    return f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}}}".encode()


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (
            _header("<f8", "(1000000000,)"),
            r"x\.npy of shape \(1000000000,\) float64 has \d+ bytes: expected 8\d+",
        ),
        (_header("<f8", "(-1, -1)"), r"x\.npy of shape \(-1, -1\) float64 has"),
        (_header("<f8", f"(0, {10**30})"), ""),
        (_header("|V0", f"({10**15},)"), "expected"),
        (_header("<U500000000", "()"), r"expected 200000\d+"),
        (b"(" * 10_000, ""),
        (_header("|O", "(1,)"), r"x\.npy holds Python objects, not numbers\): give"),
        (_header("<f8", "(1,)") + b" " * 20_000, r"the header of x\.npy cannot be read\): give"),
        (b"[" * 9_000 + b"]" * 900, ""),
        (b"{'descr': " * 900, ""),
    ],
)
def test_a_header_is_held_to_the_bytes_behind_it(tmp_path: Path, header: bytes, reason: str) -> None:
    _announcing(tmp_path / "x.npz", header)
    tracemalloc.start()
    try:
        with pytest.raises(StorageError, match=rf"^[^\n]*x\.npz holds no readable arrays \([^\n]*{reason}"):
            load_arrays(tmp_path / "x.npz")
        assert tracemalloc.get_traced_memory()[1] < 8 * 2**20
    finally:
        tracemalloc.stop()


def test_a_compressed_bomb_is_not_unpacked(tmp_path: Path) -> None:
    file = tmp_path / "x.npz"
    np.savez_compressed(file, x=np.zeros(10**6))
    tracemalloc.start()
    try:
        with pytest.raises(
            StorageError, match=r"\d+ bytes claim to hold 8000128: write it without compression"
        ):
            load_arrays(file)
        assert tracemalloc.get_traced_memory()[1] < 2**20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("damage", [{"flag_bits": 0x1}, {"compress_type": 99}, {"flag_bits": 0x20}])
def test_an_archive_that_nobody_here_writes_is_refused(tmp_path: Path, damage: dict[str, int]) -> None:
    """Encrypted, oddly compressed, patched: the library raises what no damaged file of ours does."""
    file = tmp_path / "x.npz"
    save_arrays(file, {"x": np.ones(3)})
    data = bytearray(file.read_bytes())
    directory = data.rindex(b"PK\x01\x02")
    for local, central, name in ((6, 8, "flag_bits"), (8, 10, "compress_type")):
        if name in damage:
            data[local] = data[directory + central] = damage[name]
    file.write_bytes(data)
    with pytest.raises(
        StorageError, match=r"x.npz holds no readable arrays \(.*\): give the folder of a whole"
    ):
        load_arrays(file)
