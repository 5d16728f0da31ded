"""Runs independent cells of a sweep or figure, in processes of this machine or on a cluster.

Guarantees:

* each finished cell is one parquet file in ``folder``, written whole or not at all, by the calling process;
* a second run with the same cells, folder and code computes only missing cells; rows from a file have all
  keys of their cell, None where a row had none;
* results come in the order of the cells, in whatever order they finish.

``backend``: "loky" (local processes of one numeric thread each), or "dask": the whole cluster at
RAY_ADDRESS or DASK_SCHEDULER_ADDRESS, whatever ``jobs`` says, else a local one with ``jobs`` workers.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from itertools import islice
from pathlib import Path
from threading import Thread
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

from vflens.errors import ConfigError, UnavailableError
from vflens.experiments.sweeps.cluster import Call, cluster
from vflens.storage.arrow import REFUSED, parquet_rows
from vflens.storage.files import write_whole
from vflens.types import Document, Facts

Backend: TypeAlias = Literal["loky", "dask"]
Rows: TypeAlias = list[Document]
#: Of the numeric libraries of a process: cells share the cores.
_ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Cell:
    """One computation: ``key`` identifies it (JSON values), ``arguments`` are its input; those of one
    ``group`` run one after the other, since each leaves in its process what the next one needs.
    """

    key: Facts
    arguments: tuple[Any, ...] = ()
    group: str = ""

    def file(self) -> str:
        """The name of its file: a digest of key and code, so that changed code computes it again."""
        text = _code() + json.dumps(self.key, sort_keys=True, default=str)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest() + ".parquet"


@cache
def _code() -> str:
    """A digest of the sources that results depend on, without libraries and external plug-ins."""
    found, package = hashlib.blake2b(digest_size=12), Path(__file__).parents[2]
    # Folder by folder: a search of the whole package would not follow its links.
    inner = (file for folder in package.iterdir() for file in folder.rglob("*.py"))
    for file in sorted([*package.glob("*.py"), *inner]):
        found.update(file.relative_to(package).as_posix().encode() + b"\0" + file.read_bytes() + b"\0")
    return found.hexdigest()


class Share(NamedTuple):
    """The ``number``-th of ``of`` shares of the cells; from 1."""

    number: int
    of: int

    @classmethod
    def read(cls, text: str) -> Share:
        """The part that ``text`` names, such as "3/8".

        Raises:
            ConfigError: it names none.
        """
        numbers = re.fullmatch(r"([1-9][0-9]{0,8})/([1-9][0-9]{0,8})", text, re.ASCII)
        part = cls(*map(int, numbers.groups())) if numbers else cls(1, 0)
        if part.number > part.of:
            raise ConfigError(f"--part {text!r}: give I/N with I from 1 to N, such as 3/8")
        return part

    def share(self, cells: Sequence[Cell]) -> Sequence[Cell]:
        """Every N-th cell, so that all parts have cells of every defence."""
        return cells[self.number - 1 :: self.of]


@dataclass(frozen=True)
class Pool:
    """Where cells run and where their results go; each finished cell calls ``progress(done, total)``.

    ``only_finished``: none is computed; a missing one has no rows.
    """

    folder: Path
    jobs: int = 1
    backend: Backend = "loky"
    progress: Callable[[int, int], None] = lambda done, total: None
    only_finished: bool = False

    def __post_init__(self) -> None:
        if self.jobs < 1:
            raise ConfigError(f"jobs = {self.jobs}: give at least 1")
        if self.backend not in get_args(Backend):
            raise ConfigError(f"backend = {self.backend!r}: choose one of {', '.join(get_args(Backend))}")

    @contextmanager
    def alone(self, part: Share | None = None) -> Iterator[None]:
        """Hold the folder of the cells: no second process computes the same ones at the same time.

        Other parts of the cells may be computed beside ``part``.

        Raises:
            ConfigError: another process holds it.
        """
        if self.only_finished:  # beside the process that computes them
            yield
            return
        absent = [folder for folder in self.folder.parents if not folder.exists()]
        self.folder.mkdir(parents=True, exist_ok=True)
        with ExitStack() as held:
            if part is None:  # other parts may be at work in it
                held.callback(_remove, absent)
                held.callback(self._remove_empty)  # it stays with the cells that it has
            folder = os.open(self.folder, os.O_RDONLY)
            self._lock(held, folder, fcntl.LOCK_EX if part is None else fcntl.LOCK_SH)
            if part is not None:
                own = self.folder / f"{part.number}-of-{part.of}.part"
                self._lock(held, os.open(own, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666), fcntl.LOCK_EX)
            yield

    def _lock(self, held: ExitStack, descriptor: int, kind: int) -> None:
        held.callback(os.close, descriptor)
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConfigError(
                f"folder {self.folder} is in use by another process, which computes the same cells: wait for "
                "its end, or choose another --out"
            ) from None
        except OSError:  # NFS locks no folder: a cell that is computed twice is the same
            return

    def _remove_empty(self) -> None:
        with suppress(OSError):
            if not any(self.folder.glob("*.parquet")):
                for file in self.folder.glob("*.json"):
                    file.unlink(missing_ok=True)
            self.folder.rmdir()

    def run(self, work: Callable[..., Rows], cells: Sequence[Cell]) -> list[Rows]:
        """``work(*cell.arguments)`` for every cell, one list of rows each; ``work`` is a module's function,
        for pickling.

        Raises:
            ConfigError: the backend is not installed.
            StorageError: a result cannot be kept.
        """
        done = {i: rows for i, cell in enumerate(cells) if (rows := self._kept(cell)) is not None}
        self.progress(len(done), len(cells))
        if self.only_finished:
            return [done.get(i, []) for i in range(len(cells))]
        first: dict[str, int] = {}
        missing = [i for i in range(len(cells)) if i not in done]
        missing.sort(key=lambda i: first.setdefault(cells[i].group or str(i), i))
        for i, rows in self._computed(work, cells, missing):
            write_rows(self.folder / cells[i].file(), rows)
            done[i] = rows
            self.progress(len(done), len(cells))
        return [done[i] for i in range(len(cells))]

    def _computed(
        self, work: Callable[..., Rows], cells: Sequence[Cell], missing: Sequence[int]
    ) -> Iterator[tuple[int, Rows]]:
        calls: list[Call] = [(_numbered, work, i, cells[i].arguments) for i in missing]
        if calls and self.backend != "loky":
            with cluster(self.jobs) as answers:
                yield from answers(calls)
        elif self.jobs > 1:
            yield from _side_by_side(calls, self.jobs)
        else:
            yield from (_numbered(*call) for _, *call in calls)

    def finished(self, cells: Sequence[Cell]) -> int:
        """The number of ``cells`` that have their file."""
        return sum((self.folder / cell.file()).exists() for cell in cells)

    def _kept(self, cell: Cell) -> Rows | None:
        try:
            return parquet_rows(self.folder / cell.file())
        except (OSError, ValueError):
            return None

    def forget(self) -> None:
        """Remove the cells' files: the result is complete."""
        for pattern in ("*.parquet*", "*.part"):  # a killed process leaves .tmp files and locks
            for file in self.folder.glob(pattern):
                file.unlink(missing_ok=True)
        self._remove_empty()


def _remove(folders: Sequence[Path]) -> None:
    with suppress(OSError):
        for folder in folders:
            folder.rmdir()


def write_rows(file: Path, rows: Rows, refused: Rows | None = None) -> None:
    """Write ``rows`` as parquet, whole or not at all; what was ``refused`` stands in the file's metadata.

    Raises:
        StorageError: it cannot be written.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = BytesIO()
    names = dict.fromkeys(
        name for row in rows for name in row
    )  # pyarrow alone would take the keys of the first row
    table = pa.Table.from_pylist([{name: row.get(name) for name in names} for row in rows])
    if refused is not None:
        known = [{name: value for name, value in row.items() if value is not None} for row in refused]
        table = table.replace_schema_metadata({REFUSED: json.dumps(known, sort_keys=True)})
    pq.write_table(table, buffer, compression="zstd")
    write_whole(file, buffer.getvalue(), remedy="another --out")


def _numbered(work: Callable[..., Rows], i: int, arguments: tuple[Any, ...]) -> tuple[int, Rows]:
    return i, work(*arguments)


def _side_by_side(calls: Sequence[tuple[Any, ...]], jobs: int) -> Iterator[tuple[int, Rows]]:
    """The answers to ``calls`` as they come, from ``jobs`` processes of this machine."""
    from joblib.externals.loky import FIRST_COMPLETED, BrokenProcessPool, ProcessPoolExecutor, wait

    # Not joblib's Parallel: a command that loaded gRPC skips Python's teardown, without which joblib warns
    # of folders for large arguments, and its workers outlive it.
    pool = ProcessPoolExecutor(jobs, env=_ONE_THREAD, initializer=_end_with, initargs=(os.getpid(),))
    try:
        left = iter(calls)  # one for each worker: an interruption of waiting ones ends in a traceback
        running = {pool.submit(*call) for call in islice(left, jobs)}
        while running:
            done, running = wait(running, return_when=FIRST_COMPLETED)
            # What is finished is kept before a killed worker ends all, here or at the next call.
            yield from (f.result() for f in sorted(done, key=lambda f: f.exception() is not None))
            running |= {pool.submit(*call) for call in islice(left, len(done))}
    except BrokenProcessPool as error:
        raise UnavailableError(
            "a worker was killed, as for lack of memory: run again with fewer --jobs; finished cells are kept"
        ) from error
    finally:
        pool.shutdown(wait=True, kill_workers=True)


def _end_with(parent: int) -> None:
    """Let this worker end soon after ``parent``: one whose parent was killed would wait for work for ever."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    Thread(target=watch, daemon=True).start()
