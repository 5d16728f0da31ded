"""Which files are synced to the disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from vflens.storage.durable import keep, sync


def test_a_folder_is_synced_from_when_it_is_kept_until_it_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = list[int]()
    monkeypatch.setattr("os.fdatasync", synced.append)
    for number, machine in enumerate((False, True, False, True)):
        keep(tmp_path / "party", machine=machine)
        sync(number, tmp_path / "party/transcript")
        sync(number, tmp_path / "another/transcript")
    keep(tmp_path / "party", machine=False)
    assert synced == [1, 3]
