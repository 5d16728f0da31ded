"""A party's run folder: its configuration, its status, and the files of an earlier run."""

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path
from typing import Any

from vflens.config import DataPartyConfig, LeaderConfig, PartyConfig, load_party
from vflens.config.writing import toml_text
from vflens.errors import ConfigError, StorageError
from vflens.member.stage import Reached
from vflens.services.forking.lifeline import launched
from vflens.services.same_run import check_settings, note_settings
from vflens.storage import durable
from vflens.storage.files import write_whole
from vflens.storage.heads import Heads, check_logs, from_json, heads_in, to_json
from vflens.storage.json_file import in_words, json_object
from vflens.storage.private import exposure, owner_only, write_private
from vflens.storage.regular import opened, opened_to_write, read_text
from vflens.types import Document

#: What a party writes in its folder; its configuration and table stay where they are.
OF_A_RUN = (
    "absent.json", "alignment.npz", "blinded.json", "estimates", "events.jsonl", "federation.json",
    "heads.json", "metrics.parquet", "nonce", "order.npz", "own.npz", "pictures.npz", "predictions.npz",
    "recovery", "released", "rows.npz", "run_nonce", "scored.json", "settings.json", "starts.json",
    "state.json", "status.json", "transcript",
)  # fmt: skip


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold ``folder`` for this process alone, until it ends in any way.

    Files written meanwhile are for the process's user alone.

    Raises:
        ConfigError: another process holds it.
        StorageError: it cannot be written, or other users can open it.
    """
    with owner_only():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            check_private(folder)
            lock = opened_to_write(folder / "lock", "ab")
        except OSError as error:
            raise StorageError(
                f"{folder} cannot be written ({error.strerror}): choose another `out`"
            ) from error
        with _locked(lock, folder):
            yield


def is_held(folder: Path) -> bool:
    """Whether a process holds ``folder``: see :func:`exclusive`."""
    try:
        with opened(folder / "lock") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def check_private(folder: Path) -> None:
    """Refuse a run folder that other users can open: it holds the party's columns, labels and secrets.

    Raises:
        StorageError: names the command that closes it.
    """
    if open_to := exposure(folder, 0o700):
        raise StorageError(f"run folder {folder} {open_to}, or choose another `out`")


@contextmanager
def _locked(lock: FileIO, folder: Path) -> Iterator[None]:
    with lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ConfigError(
                f"run folder {folder} is in use by another party's process: stop it, or choose another `out`"
            ) from None
        yield


def begin(config: PartyConfig, say: Callable[[str], None] = lambda words: None) -> bool:
    """Prepare ``config.out`` for a run: move earlier results to ``earlier-N`` and ``say`` so, write
    configuration and status. With ``config.resume`` an unfinished run stays where it is; return whether there
    is one.

    ``config.toml`` is then the configuration in use; an equivalent file stays, with its comments.

    Raises:
        StorageError: it cannot be written, or its run cannot be resumed.
        ConfigError: its run has other settings.
    """
    durable.keep(config.out, machine=config.limits.durable == "machine")
    began = _began(config.out)
    resumed = config.resume and began
    if resumed:
        check_settings(config)
    try:
        if resumed:
            check_kept(config)
        file = config.out / "config.toml"
        kept = launched() or _says(file, config)  # a launcher gives this very file
        if not resumed and (began or (file.exists() and not kept)):
            earlier = _move_aside(config.out, config_too=not kept)
            say(f"the earlier run in {config.out} moved to {earlier.name}: nothing of it is lost")
        if not kept:
            write_private(file, toml_text(_at_home(config)))
        if not resumed:
            note_settings(config)
    except OSError as error:
        raise StorageError(
            f"{config.out} cannot be written ({error.strerror}): choose another `out`"
        ) from error
    write_status(config.out, "running")
    return resumed


def check_kept(config: PartyConfig) -> None:
    """Refuse a run's logs that lack records which they had: to open one cuts what no line of it names.

    Raises:
        StorageError: names the log.
        OSError: a log cannot be read.
    """
    noted = {name: _noted(config.out / name) for name in ("state.json", "status.json")}
    check_logs(config.out, noted, config.party, synced=config.limits.durable == "machine")


def _began(folder: Path) -> bool:
    """Whether a run began in ``folder``; a status alone is its launcher's, of a party that died before."""
    found = {name for name in OF_A_RUN if (folder / name).exists()}
    return "status.json" in found and len(found) > 1


def is_over(config: PartyConfig) -> bool:
    """Whether the run in ``config.out`` is finished and needs this party no more.

    A data party that its leader did not tell of the end can be needed again.

    Raises:
        ConfigError: the run has other settings.
        StorageError: the folder does not say how far its run has come.
    """
    if state_of(config.out) != "finished":
        return False
    check_settings(config)
    reached = Reached(config.out)
    reached.restore()
    return reached.ended or isinstance(config, LeaderConfig)


def write_status(folder: Path, state: str, reason: str = "") -> None:
    """Write ``status.json``: running, finished, interrupted or failed, the reason, and the heads of the logs.

    Raises:
        StorageError: it cannot be written; the earlier status stays.
    """
    document: Document = {"state": state, "reason": reason}
    with suppress(OSError):  # a state without heads is better than none
        document |= {"heads": to_json(heads)} if (heads := heads_in(folder)) else {}
    file, text = folder / "status.json", json.dumps(document)
    try:
        write_whole(file, text.encode())
    except StorageError:
        if not file.exists() or not _overwritten(file, text):
            raise


def _noted(file: Path) -> Heads:
    """The heads of the logs in the JSON of ``file``; {} where it has none, or cannot be read."""
    found: Document = {}
    with suppress(OSError, ValueError):
        found = json_object(read_text(file))
    try:
        return from_json(found.get("heads", {}))
    except ValueError as error:
        raise StorageError(
            f"{file} (heads) does not name the heads of the logs ({in_words(error)}): bring back the folder "
            "as it was, or begin a new run, without --resume"
        ) from error


def state_of(folder: Path) -> str:
    """The last status of :func:`write_status` in ``folder``, "" without a readable one."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        return str(json_object(read_text(folder / "status.json"))["state"])
    return ""


def _overwritten(file: Path, text: str) -> bool:
    """Overwrite ``file`` with ``text`` in place and return success: on a full disk it still has its own
    block.
    """
    with suppress(OSError), opened_to_write(file) as out:
        out.write(text.encode())
        out.truncate()
        return True
    return False


def _says(file: Path, config: PartyConfig) -> bool:
    """Whether ``file`` loads as ``config``."""
    free = {"resume": False}  # a flag of the command line may differ from the file
    found, own = _loaded(file), config.model_copy(update=free)
    if found is None:
        return False
    found = found.model_copy(update=free)
    return found == own or _at_home(found) == _at_home(own)


def _loaded(file: Path) -> PartyConfig | None:
    """The configuration in ``file``, or None."""
    try:
        return load_party(file)
    except ConfigError:
        return None


def _at_home(config: PartyConfig) -> dict[str, Any]:
    """``config`` for its file in ``config.out``: that folder is ".", a file below it has a relative path."""
    settings, home = {**config.model_dump(mode="json"), "out": "."}, config.out.resolve()
    if isinstance(config, DataPartyConfig):
        settings["data"] = {**settings["data"], "file": str(_below(config.data.file.resolve(), home))}
    if config.tls is not None:
        settings["tls"] = {name: str(_below(file, home)) for name, file in config.tls}
    return settings


def _below(file: Path, folder: Path) -> Path:
    """``file`` seen from ``folder`` if it lies in it."""
    return file.relative_to(folder) if file.is_relative_to(folder) else file


def clear(folder: Path) -> None:
    """Prepare ``folder`` for the dealer: a run in it moves to ``earlier-N``, with its configuration and
    table.

    Raises:
        OSError: they cannot be moved.
    """
    if (folder / "status.json").exists():
        earlier, table = _move_aside(folder, config_too=True), folder / "data.parquet"
        if table.exists():
            table.replace(earlier / table.name)
            table.unlink(missing_ok=True)  # two links to one file: no move happened


def _move_aside(folder: Path, *, config_too: bool) -> Path:
    """Move a run's files to ``earlier-N``; return that folder.

    ``config.toml`` is copied, unless it changed after the run's end and so is not the run's. The table stays
    too; the configuration of the earlier run still names it.
    """
    number = 1
    while (folder / f"earlier-{number}").exists():
        number += 1
    target = folder / f"earlier-{number}"
    target.mkdir(mode=0o700)
    config, status = folder / "config.toml", folder / "status.json"
    was = _loaded(config)
    if config_too and config.exists():
        config.rename(target / "config.toml")
    elif config.exists() and config.stat().st_mtime_ns <= status.stat().st_mtime_ns:
        shutil.copy2(config, target / "config.toml")
    for name in OF_A_RUN:
        if (folder / name).exists():
            (folder / name).rename(target / name)
    if state_of(target) == "running":  # no process does: this one holds the folder
        write_status(target, "interrupted", "the process was killed")
    if was is not None and (target / "config.toml").exists():
        _keep_table(was, target.resolve())
    return target


def _keep_table(was: PartyConfig, earlier: Path) -> None:
    """Adapt ``config.toml`` in ``earlier``, from ``was``: it names the run's table, and its own folder as
    ``out``.
    """
    home = was.model_copy(update={"out": earlier})
    if isinstance(was, DataPartyConfig):
        linked = _linked(was.data.file, was.out, earlier)
        home = home.model_copy(update={"data": was.data.model_copy(update={"file": linked})})
    if was.tls is not None:  # certificates stay where they are: no party is served from here
        files = {name: earlier / _below(file, was.out) for name, file in was.tls}
        home = home.model_copy(update={"tls": was.tls.model_copy(update=files)})
    if load_party(earlier / "config.toml") != home:
        write_private(earlier / "config.toml", toml_text(_at_home(home)))


def _linked(table: Path, folder: Path, earlier: Path) -> Path:
    """Link ``table`` into ``earlier`` if it lies in ``folder``: a new table in ``folder`` leaves the link.

    Without links it is in ``folder`` alone.
    """
    if not table.is_relative_to(folder):
        return table
    link = earlier / table.relative_to(folder)
    try:
        link.parent.mkdir(parents=True, exist_ok=True)
        os.link(table, link)
    except OSError:
        return table
    return link
