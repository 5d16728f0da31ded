"""Cells on clusters: as many at a time as there are slots; a worker that dies loses only its cell."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from vflens.errors import ConfigError, UnavailableError
from vflens.experiments.sweeps.pool import Cell, Pool, Rows

CELLS = [Cell({"i": i}, (i,)) for i in range(16)]
SLOTS = 8

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::UserWarning"),
]


@pytest.fixture(autouse=True)
def _no_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)


@pytest.fixture
def _eight_slots() -> Iterator[None]:
    """A Dask cluster in threads of this process, found by its address."""
    dask = pytest.importorskip("dask")
    distributed = pytest.importorskip("distributed")
    local = {"n_workers": 1, "threads_per_worker": SLOTS, "processes": False, "dashboard_address": None}
    with (
        distributed.LocalCluster(**local) as cluster,
        dask.config.set({"scheduler-address": cluster.scheduler_address}),
    ):
        yield


# Functions within functions are pickled by value: a worker cannot import this file.


def together(folder: Path) -> Callable[[int], Rows]:
    """A cell that ends once ``SLOTS`` of them have begun."""

    def work(i: int) -> Rows:
        (folder / str(i)).touch()
        deadline = time.monotonic() + 60
        while len(list(folder.iterdir())) < SLOTS:
            assert time.monotonic() < deadline, "the others have not begun"
            time.sleep(0.01)
        return [{"i": i}]

    return work


def killing(folder: Path, times: int) -> Callable[[int], Rows]:
    """A cell that kills its worker, cell 3 so many times."""

    def work(i: int) -> Rows:
        died = len(list(folder.iterdir()))
        if i == 3 and died < times:
            (folder / str(died)).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return [{"i": i}]

    return work


def folders(tmp_path: Path) -> tuple[Path, Path]:
    shared = tmp_path / "shared"
    shared.mkdir()
    return shared, tmp_path / "cells"


@pytest.mark.usefixtures("_eight_slots")
@pytest.mark.timeout(300)
def test_as_many_cells_as_slots_are_in_flight_whatever_jobs_says(tmp_path: Path) -> None:
    shared, kept = folders(tmp_path)
    done = Pool(kept, 1, "dask").run(together(shared), CELLS)
    assert [rows[0]["i"] for rows in done] == list(range(16))


@pytest.mark.usefixtures("_eight_slots")
def test_an_error_in_a_cell_is_the_caller_s(tmp_path: Path) -> None:
    def work(i: int) -> Rows:
        if i == 3:
            raise ConfigError("i = 3: take another")
        return [{"i": i}]

    with pytest.raises(ConfigError, match=r"^i = 3: take another$"):
        Pool(tmp_path, 1, "dask").run(work, CELLS[:4])


@pytest.mark.facts
@pytest.mark.usefixtures("_eight_slots")
@pytest.mark.timeout(300)
def test_sixteen_half_seconds_on_eight_slots_take_one_second(tmp_path: Path) -> None:
    def nap(i: int) -> Rows:
        time.sleep(0.5)
        return [{"i": i}]

    Pool(tmp_path / "warm", 1, "dask").run(nap, CELLS[:1])
    begun = time.perf_counter()
    Pool(tmp_path / "cells", 1, "dask").run(nap, CELLS)
    assert time.perf_counter() - begun < 1.6


@pytest.mark.facts
@pytest.mark.timeout(300)
def test_a_killed_worker_loses_only_its_cell(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    shared, kept = folders(tmp_path)
    facts: list[int] = []
    pool = Pool(kept, 2, "dask", lambda done, total: facts.append(done))
    done = pool.run(killing(shared, times=1), CELLS)
    assert [rows[0]["i"] for rows in done] == list(range(16))
    assert facts == list(range(17))
    assert len(list(shared.iterdir())) == 1


@pytest.mark.facts
@pytest.mark.timeout(300)
def test_a_cell_that_kills_every_worker_is_one_sentence(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    shared, kept = folders(tmp_path)
    with pytest.raises(UnavailableError, match=r"^a cell ended several workers of the cluster .*more memory"):
        Pool(kept, 1, "dask").run(killing(shared, times=99), CELLS[2:4])
