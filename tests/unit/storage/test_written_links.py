"""A link in a run folder that somebody sent is never written through, whichever file or log folder it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from vflens.errors import StorageError
from vflens.member.step_log import StepLog
from vflens.services.folder import exclusive
from vflens.storage.journal import Journal
from vflens.storage.log import party_log
from vflens.storage.release_digests import ReleaseDigests
from vflens.storage.transcript import Transcript

WORK = b"{}"  # to some of them a beginning of their file


def _log_an_event(folder: Path) -> None:
    party_log(folder / "events.jsonl", "a").info("hello")


WRITERS: dict[str, Callable[[Path], object]] = {
    "index.jsonl": lambda folder: Journal(folder, chained=True),
    "payload.bin": lambda folder: Journal(folder, chained=True),
    "chain.bin": lambda folder: Journal(folder, chained=True),
    "digests.bin": ReleaseDigests,
    "steps.bin": lambda folder: StepLog(folder / "steps.bin"),
    "left_out.json": lambda folder: Transcript(folder, every=2),
}


@pytest.mark.parametrize("name", WRITERS)
def test_a_linked_file_is_refused(tmp_path: Path, name: str) -> None:
    mine, folder = _linked(tmp_path, name)
    with pytest.raises(StorageError, match="it is a link"):
        WRITERS[name](folder)
    assert mine.read_bytes() == WORK


@pytest.mark.parametrize("name", WRITERS)
def test_a_linked_log_folder_is_refused(tmp_path: Path, name: str) -> None:
    """Its files would be written where the link leads."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (tmp_path / "log").symlink_to(elsewhere)
    with pytest.raises(StorageError, match="it is a link"):
        WRITERS[name](tmp_path / "log")
    assert not list(elsewhere.iterdir())


def test_a_linked_lock_makes_no_file(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    folder.mkdir(mode=0o700)
    (folder / "lock").symlink_to(tmp_path / "new")
    with pytest.raises(StorageError, match="it is a link"), exclusive(folder):
        pass
    assert not (tmp_path / "new").exists()


def test_events_are_not_added_to_a_linked_file(tmp_path: Path) -> None:
    mine, folder = _linked(tmp_path, "events.jsonl")
    _log_an_event(folder)  # a line that cannot be written is lost
    assert mine.read_bytes() == WORK


def _linked(tmp_path: Path, name: str) -> tuple[Path, Path]:
    """A file of the reader's own, and a folder whose file ``name`` is a link to it."""
    mine, folder = tmp_path / "diary.txt", tmp_path / "log"
    mine.write_bytes(WORK)
    folder.mkdir()
    (folder / name).symlink_to(mine)
    return mine, folder
