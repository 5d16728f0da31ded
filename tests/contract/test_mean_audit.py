"""An audit computes the mean of the recorded updates again: a server that averages otherwise is found."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from horizontal import deal, federation, server_of, table
from laboratory import close

from vflens.experiments.verify_log.finding import Found
from vflens.experiments.verify_log.verify import verify_logs
from vflens.protocol.acts import Act, Step
from vflens.recorded.horizontal.parameters import averaged
from vflens.services.folder import write_status
from vflens.storage.journal import Journal
from vflens.types import Exchange, Phase, Point, Released, sealed

ROUNDS = 4
KINDS: dict[str, dict[str, Any]] = {
    "all": {},
    "drawn": {"participants": 2},
    "equal weights": {"weights": "equal"},
    "masked": {"secure_aggregation": True},
    "a private bottom": {"method": "lg_fedavg"},
}


def _run(home: Path, change: Callable[[Any], object] = lambda server: None, **horizontal: Any) -> Path:
    """A finished run of three clients below ``home``."""
    tables = {name: table(20 + i, i) for i, name in enumerate(("c1", "c2", "c3"))}
    settings: dict[str, Any] = {"training": {"batch_size": 10, "learning_rate": 0.1}}
    if horizontal.get("method") == "lg_fedavg":
        settings["model"] = {"architecture": "mlp", "width": 3, "hidden": [], "top": [4]}
    masked = horizontal.get("secure_aggregation", False)
    local = federation(
        deal(home, tables, secure_aggregation=masked, horizontal={"rounds": ROUNDS, **horizontal}, **settings)
    )
    change(server_of(local))
    local.run()
    close(local)
    for name in local.parties:
        write_status(home / name, "finished")
    return home


def _found(*folders: Path) -> Found:
    (audited,) = verify_logs(folders)
    return audited.found


@pytest.fixture(scope="module")
def honest(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of an honest run."""
    return _run(tmp_path_factory.mktemp("honest") / "run")


@pytest.mark.parametrize("kind", KINDS)
def test_every_mean_of_an_honest_server_is_computed_again(tmp_path: Path, kind: str) -> None:
    home = _run(tmp_path / "run", **KINDS[kind])
    for folders in ([home / "server"], [home]):
        found = _found(*folders)
        assert found.findings == []
        assert not [note for note in found.notes if "computed again" in note]


@pytest.fixture
def unfair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run whose server leaves the client c1 out of every mean."""
    with monkeypatch.context() as patched:
        patched.setattr("vflens.coordinator.horizontal.rounds.averaged", unfair_of(averaged))
        return _run(tmp_path / "run")


def test_a_client_without_part_in_the_mean_is_found_in_the_server_s_folder(unfair: Path) -> None:
    for folders in ([unfair / "server"], [unfair / "server", unfair / "c2"]):
        (finding,) = _found(*folders).findings
        assert str(finding).startswith(
            "server: released/digests.bin: the parameters of round 1 are not those of round 0 plus the mean "
            "of the recorded updates of c1, c2, c3: "
        )


def test_a_first_model_that_differs_is_found_without_own_arrays_by_a_client_s_record(unfair: Path) -> None:
    (unfair / "server" / "own.npz").unlink()
    alone = _found(unfair / "server")
    assert (alone.findings, [n for n in alone.notes if "0 of 4 means" in n] != []) == ([], True)
    assert len(_found(unfair / "server", unfair / "c3").findings) == 1


def unfair_of(honest: Callable[..., Any]) -> Callable[..., Any]:
    """The mean without the client c1."""
    return lambda of, parameters, updates: honest(of, parameters, [u for u in updates if u.sender != "c1"])


def test_another_model_for_one_client_is_found_by_two_folders(tmp_path: Path) -> None:
    def lie(server: Any) -> None:
        link = server.links["c2"]
        honest = link.submit

        def submit(act: Act[Any]) -> Any:
            if isinstance(act, Step) and act.received is not None:
                tensors = {n: sealed(t + 0.5) for n, t in (act.received.tensors or {}).items()}
                act = replace(act, received=replace(act.received, tensors=tensors))
            return honest(act)

        link.submit = submit

    home = _run(tmp_path / "run", lie)
    for folders in ([home / "c1", home / "c2"], [home / "server", home / "c2"]):
        assert any("parameters of train step 0" in str(f) for f in _found(*folders).findings)


@pytest.mark.parametrize(
    ("sender", "tensors", "problem"),
    [
        ("c1", None, "a second update of 'c1' in round 1"),
        ("mallory", None, "round 1 has no mean ('mallory' is no client)"),
        ("mallory", {}, "round 1 has no mean ('mallory' is no client)"),
    ],
)
def test_a_record_of_an_update_that_cannot_be_is_found(
    honest: Path, tmp_path: Path, sender: str, tensors: Any, problem: str
) -> None:
    home = Path(shutil.copytree(honest, tmp_path / "run"))
    journal = Journal(home / "server" / "transcript", chained=True)
    exchange = Exchange("tiny/run", Phase.TRAIN, 1, 1)
    journal.append(Released(sender, exchange, Point.UPDATE, np.zeros(0, np.int32), tensors))
    journal.link()
    journal.close()
    assert any(problem in f.problem for f in _found(home / "server").findings)


def test_what_cannot_be_computed_again_is_said(honest: Path, tmp_path: Path) -> None:
    home = Path(shutil.copytree(honest, tmp_path / "run"))
    assert any("no mean of updates is computed again" in note for note in _found(home / "c1").notes)
    (home / "server" / "federation.json").write_text(
        '{"run": "tiny/run", "party": "server", "role": "server"}'
    )
    assert any("its federation.json lacks facts" in note for note in _found(home / "server").notes)
