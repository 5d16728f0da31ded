"""A machine that loses power: of its files only what was synced is left."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from unittest.mock import patch

from accidents import Killed
from world import World, bury

from vflens.config import PartyConfig

FREE = {"events.jsonl", "output.log"}  # no reply depends on them


class Disk:
    """What the disk has of the files below ``home``: at first all of them, then what is synced."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._contents: dict[int, bytes] = {}  # by inode
        self._names: dict[Path, dict[str, int]] = {}  # folder → name → inode
        for path in (home, *home.rglob("*")):
            self._take(path)

    def sync(self, descriptor: int) -> None:
        """What stands in for os.fsync and os.fdatasync; the real disk is left alone."""
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if self._home in (path, *path.parents):
            self._take(path)

    def _take(self, path: Path) -> None:
        if path.is_dir():
            self._names[path] = {entry.name: entry.inode() for entry in os.scandir(path)}
        elif path.exists():
            self._contents[path.stat().st_ino] = path.read_bytes()

    def files(self, folder: Path) -> dict[Path, bytes]:
        """The files below ``folder`` after a loss of power; one that was never synced is empty."""
        found: dict[Path, bytes] = {}
        for name, inode in self._names.get(folder, {}).items():
            path = folder / name
            if path in self._names or path.is_dir():
                found |= self.files(path)
            else:
                found[path] = self._contents.get(inode, b"")
        return found

    def unsynced(self, folder: Path) -> list[str]:
        """The files below ``folder`` that a loss of power would change."""
        left = self.files(folder)
        files = [f for f in folder.rglob("*") if f.is_file() and f.name not in FREE]
        return [str(f.relative_to(folder)) for f in files if left.get(f) != f.read_bytes()]


@contextmanager
def disk_of(home: Path) -> Iterator[Disk]:
    """What this process syncs below ``home`` from now on."""
    disk = Disk(home)
    with patch("os.fsync", disk.sync), patch("os.fdatasync", disk.sync):
        yield disk


class Powered(World):
    """A world on a ``disk``; a party whose machine lost power starts again with what is left there."""

    def __init__(self, configs: list[PartyConfig], home: Path, disk: Disk) -> None:
        super().__init__(configs, home, "plain")
        self._disk = disk
        self._left: dict[str, dict[Path, bytes]] = {}

    def lose_power(self, who: str, point: str, number: int) -> None:
        """Let the machine of ``who`` lose power when it comes to ``point`` for the ``number``-th time."""

        def end() -> None:
            self._left[who] = self._disk.files(self.home / who)
            raise Killed

        self.fail(who, point, number, end)

    def _resume(self, name: str) -> None:
        if (left := self._left.pop(name, None)) is not None:
            bury(self.local.parties[name])
            shutil.rmtree(self.home / name)
            for file, data in left.items():
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(data)
        super()._resume(name)
