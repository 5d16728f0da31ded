"""A party's run folder: its configuration, its status, and what becomes of an earlier run's files."""

from __future__ import annotations

import fcntl
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import tomli_w

from vfl.config import PartyConfig
from vfl.errors import ConfigError, StorageError

_OF_A_RUN = (
    "estimates", "events.jsonl", "federation.json", "metrics.parquet", "order.npz", "own.npz",
    "pictures.npz", "recovery", "released", "rows.npz", "status.json", "transcript",
)  # fmt: skip


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """Hold ``folder`` for this process alone; the claim ends with the process, however it ends.

    Raises:
        ConfigError: another process holds it.
        StorageError: it cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / "lock").open("a")
    except OSError as error:
        raise StorageError(f"{folder} cannot be written ({error.strerror}): choose another `out`") from error
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(
                f"run folder {folder} is in use by another party's process: stop it, or choose another `out`"
            ) from None
        yield


def begin(config: PartyConfig) -> None:
    """Make ``config.out`` ready for a run: earlier results moved to ``earlier-N``, configuration and status written.

    Raises:
        StorageError: it cannot be written.
    """
    try:
        if (config.out / "status.json").exists():
            _move_aside(config.out)
        file = config.out / "config.toml"
        if not file.exists():  # a dealt configuration lies in the run folder already
            file.write_text(tomli_w.dumps(_plain(config.model_dump(mode="json"))), encoding="utf-8")
            file.chmod(0o600)  # it holds the party's secret and its tokens
    except OSError as error:
        raise StorageError(
            f"{config.out} cannot be written ({error.strerror}): choose another `out`"
        ) from error
    write_status(config.out, "running")


def write_status(folder: Path, state: str, reason: str = "") -> None:
    """``status.json``: running, finished, interrupted or failed, and why.

    Raises:
        StorageError: it cannot be written.
    """
    try:
        (folder / "status.json").write_text(json.dumps({"state": state, "reason": reason}), encoding="utf-8")
    except OSError as error:
        raise StorageError(
            f"{folder} cannot be written ({error.strerror}): free space or choose another `out`"
        ) from error


def _move_aside(folder: Path) -> None:
    number = 1
    while (folder / f"earlier-{number}").exists():
        number += 1
    target = folder / f"earlier-{number}"
    target.mkdir()
    for name in _OF_A_RUN:
        if (folder / name).exists():
            (folder / name).rename(target / name)


def _plain(value: Any) -> Any:
    """``value`` without None, which TOML lacks."""
    if isinstance(value, Mapping):
        return {k: _plain(v) for k, v in value.items() if v is not None}
    return [_plain(v) for v in value] if isinstance(value, list) else value
