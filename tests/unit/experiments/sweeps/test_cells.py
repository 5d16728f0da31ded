"""Cells of a sweep: kept one by one, resumed after an interruption, the same on every backend."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from joblib.externals import loky
from joblib.externals.loky import BrokenProcessPool, ProcessPoolExecutor
from thinned import first

from vflens.errors import ConfigError, StorageError, UnavailableError
from vflens.experiments.sweeps import pool as cells
from vflens.experiments.sweeps.pool import Cell, Pool, write_rows

CELLS = [Cell({"i": i}, (i,)) for i in range(5)]


def square(i: int) -> list[dict[str, Any]]:
    return [{"i": i, "square": float(np.square(i)), "process": os.getpid()}]


def broken_at_three(i: int) -> list[dict[str, Any]]:
    if i == 3:
        raise KeyboardInterrupt
    return square(i)


def refusing(i: int) -> list[dict[str, Any]]:
    raise AssertionError(f"cell {i} was kept")


def test_results_come_in_the_order_of_the_cells(tmp_path: Path) -> None:
    facts: list[tuple[int, int]] = []
    found = Pool(tmp_path, progress=lambda done, total: facts.append((done, total))).run(square, CELLS)
    assert [rows[0]["square"] for rows in found] == [0, 1, 4, 9, 16]
    assert facts == [(n, 5) for n in range(6)]


def threads(i: int) -> list[dict[str, Any]]:
    import torch
    from threadpoolctl import threadpool_info

    return [
        {"i": i, "threads": max([torch.get_num_threads(), *(p["num_threads"] for p in threadpool_info())])}
    ]


@pytest.mark.facts
def test_each_process_has_one_numeric_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that two cells on two cores do not wait for each other."""
    monkeypatch.setenv("OMP_NUM_THREADS", "4")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "4")
    found = Pool(tmp_path, jobs=2).run(threads, CELLS[:2])
    assert [rows[0]["threads"] for rows in found] == [1, 1]


def test_processes_share_the_work(tmp_path: Path) -> None:
    found = Pool(tmp_path, jobs=2).run(square, CELLS)
    assert [rows[0]["square"] for rows in found] == [0, 1, 4, 9, 16]
    workers = {rows[0]["process"] for rows in found}
    assert os.getpid() not in workers
    assert not [p for p in workers if Path(f"/proc/{p}").exists()]  # a command leaves none behind


def killed_at_three(i: int) -> list[dict[str, Any]]:
    if i == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return square(i)


def test_a_killed_process_is_no_fault_and_loses_its_cells_only(tmp_path: Path) -> None:
    """The kernel kills one for want of memory."""
    with pytest.raises(UnavailableError, match=r"was killed, .* with fewer --jobs; finished cells are kept$"):
        Pool(tmp_path, jobs=2).run(killed_at_three, CELLS)
    assert [file.name for file in tmp_path.glob("*") if file.suffix != ".parquet"] == []
    assert 0 < Pool(tmp_path).finished(CELLS) < 5
    found = Pool(tmp_path, jobs=2).run(square, CELLS)
    assert [rows[0]["square"] for rows in found] == [0, 1, 4, 9, 16]


@pytest.mark.parametrize("at_submit", [False, True])
def test_what_is_finished_beside_a_killed_process_is_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at_submit: bool
) -> None:
    """The killed one comes first among those that ended, or shows at the next call."""

    class Ended(ProcessPoolExecutor):  # type: ignore[misc]  # loky has no types
        def submit(self, work: Any, *arguments: Any) -> Any:
            if at_submit and len(ended) == 2:
                raise BrokenProcessPool
            ended.append(Future())
            if ended[1:] or at_submit:
                ended[-1].set_result(work(*arguments))
            else:
                ended[0].set_exception(BrokenProcessPool())
            return ended[-1]

    ended: list[Any] = []
    monkeypatch.setattr(loky, "ProcessPoolExecutor", Ended)
    monkeypatch.setattr(loky, "wait", lambda running, return_when: (list(ended), set()))
    with pytest.raises(UnavailableError, match="was killed"):
        Pool(tmp_path, jobs=2).run(square, CELLS)
    assert Pool(tmp_path).finished(CELLS) == 1 + at_submit


def test_a_second_process_does_not_compute_the_same_cells(tmp_path: Path) -> None:
    folder = tmp_path / ".name-0"
    code = "import sys; from pathlib import Path; from vflens.experiments.sweeps.pool import Pool\n"
    code += f"with Pool(Path({str(folder)!r})).alone(): print('alone', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "alone\n"
        with (
            pytest.raises(ConfigError, match=r"name-0 is in use by another process, which computes the same"),
            Pool(folder).alone(),
        ):
            pytest.fail("two processes hold it")
        with Pool(tmp_path / ".name-1").alone():  # another seed has cells of its own
            pass
        other.kill()  # whatever its end, the folder is free again
    with Pool(folder).alone():
        Pool(folder).run(square, CELLS[:1])
    assert [f.name for f in tmp_path.iterdir()] == [".name-0"]


def test_an_interrupted_sweep_resumes_with_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        Pool(tmp_path).run(broken_at_three, CELLS)
    kept = sorted(tmp_path.glob("*.parquet"))
    assert len(kept) == 3
    done: list[int] = []

    def counting(i: int) -> list[dict[str, Any]]:
        done.append(i)
        return square(i)

    found = Pool(tmp_path).run(counting, CELLS)
    assert done == [3, 4]
    assert [rows[0]["square"] for rows in found] == [0, 1, 4, 9, 16]
    assert Pool(tmp_path).run(refusing, CELLS) == found
    Pool(tmp_path).forget()
    assert not tmp_path.exists()


def test_a_damaged_or_another_cell_is_computed(tmp_path: Path) -> None:
    Pool(tmp_path).run(square, CELLS[:1])
    (tmp_path / CELLS[0].file()).write_bytes(b"PAR1 torn")
    assert Pool(tmp_path).run(square, CELLS[:1])[0][0]["square"] == 0
    assert pq.read_table(tmp_path / CELLS[0].file()).num_rows == 1
    assert Cell({"i": 0}).file() != Cell({"i": 0, "seed": 1}).file()
    assert Cell({"a": 1, "b": 2}).file() == Cell({"b": 2, "a": 1}).file()


# the packages whose modules a cell of a sweep runs
@pytest.mark.parametrize(
    "package", ["attacks", "clients", "coordinator", "defenses", "experiments", "services", "numerics", ""]
)
def test_what_other_code_began_is_computed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    (tmp_path / package).mkdir(exist_ok=True)  # "": the modules beside the packages
    monkeypatch.setattr(cells, "__file__", str(tmp_path / "experiments" / "sweeps" / "pool.py"))
    names = []
    for text in ("x = 1", "x = 2", "x = 1"):
        (tmp_path / package / "a.py").write_text(text)
        cells._code.cache_clear()
        names.append(CELLS[0].file())
    cells._code.cache_clear()
    assert names[0] == names[2] != names[1]


ENDLESS = """
import contextlib, os, sys, time
from pathlib import Path
from vflens.experiments.sweeps.pool import Cell, Pool

def work(i):
    os.write(1, b"began\\n")  # whole: two workers share the pipe
    time.sleep(86_400)

with contextlib.suppress(KeyboardInterrupt):
    Pool(Path(sys.argv[1]), 2).run(work, [Cell({"i": i}, (i,)) for i in range(12)])
"""


@pytest.mark.timeout(900)  # three processes start, on a loaded machine in minutes; a failure sleeps for a day
@pytest.mark.parametrize("sent", first([signal.SIGINT, signal.SIGKILL]))
def test_an_ended_pool_leaves_no_worker_and_no_traceback(tmp_path: Path, sent: signal.Signals) -> None:
    """Workers hold the pipe of standard output: its end is theirs."""
    command, pipe = [sys.executable, "-c", ENDLESS, str(tmp_path)], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) as running:
        assert running.stdout is not None
        assert [running.stdout.readline() for _ in range(2)] == ["began\n"] * 2
        running.send_signal(sent)
        _, err = running.communicate()
    assert sent is signal.SIGKILL or "Traceback" not in err  # loky may warn of a lock, seldom


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^jobs = 0: give at least 1$"):
        Pool(tmp_path, jobs=0)
    with pytest.raises(ConfigError, match=r"^backend = 'slurm': choose one of loky, dask$"):
        Pool(tmp_path, backend="slurm")  # type: ignore[arg-type]
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"cannot be written .*: free space or choose another --out$"):
        Pool(tmp_path / "file").run(square, CELLS[:1])


def test_a_backend_that_is_not_installed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "distributed", None)
    with pytest.raises(ConfigError, match=r"^backend = 'dask' needs another package "):
        Pool(tmp_path, backend="dask").run(square, CELLS)


def test_kept_rows_lose_no_key_that_the_first_row_lacks(tmp_path: Path) -> None:
    file = tmp_path / "x.parquet"
    write_rows(file, [{"a": 1, "refused": "no"}, {"a": 2, "mse": 0.5}])
    assert pq.read_table(file).to_pylist() == [
        {"a": 1, "refused": "no", "mse": None},
        {"a": 2, "refused": None, "mse": 0.5},
    ]
