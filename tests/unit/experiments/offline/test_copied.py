"""A run is copied whole, or refused before its copy fills a disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from vflens.errors import ConfigError, DataError, StorageError
from vflens.experiments.offline.command import named_party
from vflens.experiments.offline.copied import private_copy


def _run(folder: Path) -> Path:
    (folder / "transcript").mkdir(parents=True)
    (folder / "transcript/payload.bin").write_bytes(bytes(2 << 20))
    (folder / "rows.npz").write_bytes(b"rows")
    (folder / "mine.txt").write_text("no file of a run")
    return folder


def test_the_files_of_a_run_are_copied(tmp_path: Path) -> None:
    with private_copy(_run(tmp_path / "run")) as copy:
        found = {str(f.relative_to(copy)): f.stat().st_size for f in copy.rglob("*") if f.is_file()}
    assert found == {"transcript/payload.bin": 2 << 20, "rows.npz": 4}
    assert not copy.exists()


def test_errors_name_the_folder_and_not_its_copy(tmp_path: Path) -> None:
    folder = _run(tmp_path / "run")
    with pytest.raises(DataError, match=rf"^{folder}/rows\.npz is damaged$"), private_copy(folder) as copy:
        raise DataError(f"{copy}/rows.npz is damaged")


def _sparse(folder: Path) -> None:
    with (folder / "transcript/payload.bin").open("wb") as out:
        out.truncate(8 << 30)


def _deep(folder: Path) -> None:
    (folder / "recovery" / "/".join("abcde")).mkdir(parents=True)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            _sparse,
            r"transcript/payload\.bin is a file of holes, 8,589,934,592 bytes .*: give a folder as its",
        ),
        (_deep, r"recovery/a/b/c/d is a folder in more than 4 others: give a folder as its party wrote it"),
    ],
)
def test_what_has_no_bound_is_refused(tmp_path: Path, change: Callable[[Path], None], words: str) -> None:
    change(_run(tmp_path / "run"))
    with pytest.raises(StorageError, match=rf"^{tmp_path / 'run'}/{words}"), private_copy(tmp_path / "run"):
        pass


def test_a_copy_larger_than_the_disk_is_not_begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=(2 << 20) - 1))
    with (
        pytest.raises(StorageError, match=r"cannot be copied to .* \(No space left on device\): free space"),
        private_copy(_run(tmp_path / "run")),
    ):
        pass


@pytest.mark.parametrize(("given", "words"), [(None, "is missing"), ("c", "'c' is no target of this attack")])
def test_a_target_that_is_not_named_is_asked_for_in_words(given: str | None, words: str) -> None:
    with pytest.raises(ConfigError, match=rf"^--target {words}: name a or b$"):
        named_party(["b", "a"], given)
