"""A sweep in parts: each computes its share, a killed one loses a cell, the merge has one machine's bytes."""

from __future__ import annotations

import errno
import fcntl
import subprocess
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from commandline import Run, vflens
from laboratory import SYNTHETIC
from processes import ENVIRONMENT, VFLENS

from vflens.errors import ConfigError
from vflens.experiments.sweeps import sweep as module
from vflens.experiments.sweeps.pool import Cell, Pool, Rows, Share
from vflens.experiments.sweeps.sweep import run_part, run_sweep
from vflens.experiments.sweeps.sweep_file import SweepFile

_FIXTURES = (vflens,)  # used by name
SETTINGS: dict[str, Any] = {
    "name": "tiny",
    "data": SYNTHETIC,
    "split": {"kind": "fraction", "fraction": 0.5},
    "training": {"epochs": 2, "batch_size": 20},
    # rows with different keys: of columns, of labels, of an attack that is skipped
    "attacks": [{"name": "half"}, {"name": "gradient_sign", "at": "passive"}, {"name": "black_box"}],
    "sweep": {
        "seeds": 1,
        "defenses": [
            {"at": "coordinator", "name": "gaussian_scores", "vary": "sigma", "values": [0.5, 2.0]},
            {"at": "passive", "name": "transform_inputs", "kind": "signs"},
        ],
    },
}
CELLS = [Cell({"i": i}, (i,)) for i in range(7)]


def test_parts_share_all_cells() -> None:
    parts = [Share(i, 3).share(CELLS) for i in (1, 2, 3)]
    assert sorted(cell.key["i"] for part in parts for cell in part) == list(range(7))
    assert [len(part) for part in parts] == [3, 2, 2]
    assert Share(9, 9).share(CELLS) == []


def test_parts_are_merged_to_the_bytes_of_one_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    what, whole, computed = SweepFile.model_validate(SETTINGS), module.run_cell, list[tuple[str, Any]]()
    alone = run_sweep(what, Pool(tmp_path / "alone"), tmp_path / "one", "again")

    def interrupted(place: dict[str, Any], *arguments: Any, scratch: str) -> Rows:
        computed.append((place["defense"], place["strength"]))
        if len(computed) == 2:
            raise KeyboardInterrupt
        return whole(place, *arguments, scratch=scratch)

    monkeypatch.setattr(module, "run_cell", interrupted)
    pool = Pool(tmp_path / "shared")
    with pytest.raises(KeyboardInterrupt):
        run_part(what, pool, Share(1, 2))
    facts = [run_part(what, pool, part) for part in (Share(2, 2), Share(1, 2), Share(1, 2))]
    assert [f["finished"] for f in facts] == [3, 4, 4]
    assert facts[0] | {"finished": 0} == {
        **{"sweep": "tiny", "part": "2/2", "part_cells": 2, "cells": 4, "finished": 0}
    }
    lost = ("gaussian_scores", 2.0)  # alone computed twice
    assert sorted(computed, key=str) == sorted([*dict.fromkeys(computed), lost], key=str)
    merged = run_sweep(what, pool, tmp_path / "merged", "again")
    assert len(computed) == 5
    assert Path(merged["data"]).read_bytes() == Path(alone["data"]).read_bytes()
    assert {k: merged[k] for k in ("rows", "refused")} == {k: alone[k] for k in ("rows", "refused")}
    assert alone["refused"]
    assert not (tmp_path / "shared").exists()


def test_parts_run_side_by_side_but_not_twice_and_not_beside_the_merge(tmp_path: Path) -> None:
    pool = Pool(tmp_path / "cells")
    with pool.alone(Share(1, 2)), pool.alone(Share(2, 2)):
        for again in (Share(2, 2), None):
            with pytest.raises(ConfigError, match="in use by another process"), pool.alone(again):
                pytest.fail("two processes hold it")
    with pool.alone():
        with pytest.raises(ConfigError, match="in use by another process"), pool.alone(Share(1, 2)):
            pytest.fail("a part runs beside the merge")
        pool.forget()
    assert not pool.folder.exists()


def test_a_file_system_without_locks_takes_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(descriptor: int, kind: int) -> None:
        raise OSError(errno.EBADF, "Bad file descriptor")

    monkeypatch.setattr(fcntl, "flock", refuse)
    pool = Pool(tmp_path / "cells")
    with pool.alone(Share(1, 2)):
        pool.run(lambda i: [{"i": i}], CELLS)
    assert pool.finished(CELLS) == 7


@pytest.mark.parametrize(
    "wrong", ["", "3", "0/2", "3/2", "1/0", "-1/2", "1/2/3", "1 /2", "a/b", "¹/2", "1/1e9"]
)
def test_a_wrong_part_is_refused(wrong: str) -> None:
    with pytest.raises(ConfigError, match=r"^--part '.*': give I/N with I from 1 to N, such as 3/8$"):
        Share.read(wrong)


def test_the_command_prints_what_is_left(tmp_path: Path, vflens: Run) -> None:
    file = experiment(tmp_path)
    ended = vflens("sweep", file, "--part", "2/4", "--out", tmp_path / "out")
    assert ended.code == 0, ended.err
    assert ended.out.splitlines() == [
        "part 2/4: 1 federations; 1 of 4 federations are there",
        f"when all parts are done: vflens sweep {file} --out {tmp_path / 'out'}",
    ]


def experiment(folder: Path) -> Path:
    file = folder / "tiny.toml"
    file.write_text(tomli_w.dumps(SETTINGS), encoding="utf-8")
    return file


@pytest.mark.facts
@pytest.mark.timeout(600)
def test_a_killed_part_loses_only_its_cell(tmp_path: Path) -> None:
    """Three processes at a time, one killed in its second cell; then it runs again, and all are merged."""
    file, shared, alone = experiment(tmp_path), tmp_path / "shared", tmp_path / "alone"
    fault = {"VFLENS_FAIL": "own.npz.replaced:2:kill"}  # once in a cell, before its end

    def started(part: str, **environment: str) -> subprocess.Popen[bytes]:
        command = [*VFLENS, "sweep", str(file), "--out", str(shared), "--part", part]
        return subprocess.Popen(command, env=ENVIRONMENT | environment)

    running = [started("1/3", **fault), started("2/3"), started("3/3")]
    assert [process.wait() for process in running] == [-9, 0, 0]
    assert len(list((shared / ".tiny").glob("*.parquet"))) == 3
    assert started("1/3").wait() == 0
    for out, jobs in ((shared, "1"), (alone, "2")):
        subprocess.run(
            [*VFLENS, "sweep", str(file), "--out", str(out), "--jobs", jobs], env=ENVIRONMENT, check=True
        )
    assert (shared / "sweep.parquet").read_bytes() == (alone / "sweep.parquet").read_bytes()
