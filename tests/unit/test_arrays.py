"""Files written whole or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vfl.arrays import load_arrays, save_arrays, write_whole
from vfl.errors import StorageError


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
        write_whole(Path(place), "text")
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
