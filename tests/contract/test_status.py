"""The operator's view of a party: from its folder, and by asking who serves."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import horizontal
import pytest
from accidents import train_until
from certs import files, subject
from commandline import Run
from laboratory import close, deal, experiment
from oneprocess import LocalFederation
from processes import change

from vflens.config import load_party
from vflens.services.folder import begin, exclusive, write_status
from vflens.services.hall import start_server
from vflens.services.status import status, words
from vflens.types import Role
from vflens.wire.tls.issue import draw_authority

Ask = Callable[[str], tuple[int, dict[str, Any], str]]


@dataclass
class Home:
    """Dealt parties that listen on sockets, and the status that the command gives of one."""

    files: dict[str, Path]
    ask: Ask


@pytest.fixture
def home(tmp_path: Path, vflens: Run) -> Home:
    files = deal(experiment(tmp_path, network={"transport": "unix"}), tmp_path)

    def ask(party: str) -> tuple[int, dict[str, Any], str]:
        code, out, error = vflens("status", "--config", files[party], "--json")
        return code, json.loads(out), error

    return Home(files, ask)


def _join(home: Home) -> LocalFederation:
    for file in home.files.values():
        begin(load_party(file))
    return LocalFederation(home.files, lambda stage, done, total: None)


def test_a_party_that_was_never_started_is_down(home: Home) -> None:
    code, found, error = home.ask("passive")
    assert (code, found["state"], found["phase"], found["step"]) == (11, "never started", "alignment", None)
    assert "passive 'passive': never started" in error
    assert error.endswith(f"start it with: {_command(home)}\n")


def _command(home: Home) -> str:
    return shlex.join(["vflens", "serve", "passive", "--config", str(home.files["passive"]), "--resume"])


def test_a_party_in_training_shows_its_step_and_which_peers_serve(home: Home, vflens: Run) -> None:
    local = _join(home)
    local.coordinator.prepare()
    train_until(local, 5)
    passive, config = local.passive["passive"], load_party(home.files["passive"])
    passive.log.warning("refused", error="a caller without a token")
    with exclusive(config.out):
        assert home.ask("passive")[0] == 11  # it holds its folder and does not listen
        servers = [start_server(m, m.config, m.log) for m in (passive, local.coordinator)]
        try:
            code, found, _ = home.ask("passive")
            text = vflens("status", "--config", home.files["passive"]).out
        finally:
            for server in servers:
                server.stop(0).wait()
    assert (code, found["state"], found["phase"], found["serves"]) == (0, "running", "training", True)
    assert (found["step"], found["steps"]) == (3, 12)  # the gradient of the fourth step is the last that came
    assert found["peers"] == {"coordinator": True, "active": False}
    assert found["last_error"].endswith("refused: a caller without a token")
    assert "phase: training, step 3 of 12; restarts: 0" in text
    assert "peer active: does not answer" in text
    assert passive.config.peers[0].token not in text
    close(local)
    code, found, error = home.ask("passive")
    assert (code, found["state"], found["peers"]) == (11, "killed", {})
    assert "killed, no process runs in" in error
    assert error.endswith(f"look at its log, then start it with: {_command(home)}\n")


@pytest.mark.parametrize(
    ("days", "shown", "printed"),
    [
        (3.5, "ends in 3 days (", "does not answer: look at its log"),
        (-0.01, "ended on ", "new connections are refused: certificate "),
    ],
)
def test_a_certificate_that_ends_soon_or_has_ended(
    home: Home, tmp_path: Path, days: float, shown: str, printed: str
) -> None:
    whom = subject("passive", Role.PASSIVE)
    tls = files(tmp_path / "tls", whom, draw_authority(whom.federation), days=days)
    change(home.files["passive"], tls={name: str(path) for name, path in tls})
    folder = load_party(home.files["passive"]).out
    with exclusive(folder):
        write_status(folder, "running")
        code, found, error = home.ask("passive")
    assert (code, found["state"], found["serves"]) == (11, "running", False)
    assert shown in found["certificate"]["problem"]
    assert f"certificate: {found['certificate']['problem']}" in words(found)
    assert printed in error


@pytest.mark.parametrize(
    ("state", "code", "sentence"),
    [
        ("finished", 0, ""),
        ("failed", 1, "passive 'passive': its run is failed (the disk is full): mend that, then start it "),
        ("interrupted", 1, "its run is interrupted (the disk is full)"),
    ],
)
def test_the_code_says_how_a_run_ended(home: Home, state: str, code: int, sentence: str) -> None:
    folder = load_party(home.files["passive"]).out
    write_status(folder, state, "" if state == "finished" else "the disk is full")
    ended, found, error = home.ask("passive")
    assert (ended, found["state"]) == (code, state)
    assert sentence in error


@pytest.mark.parametrize("text", ["", "garbage", "[]", '{"reason": ""}'])
def test_a_damaged_status_is_unknown_and_no_party_that_never_began(home: Home, text: str) -> None:
    folder = load_party(home.files["passive"]).out
    (folder / "status.json").write_text(text)
    (folder / "state.json").write_text('{"stage": "finished"}')
    code, found, error = home.ask("passive")
    assert (code, found["state"], found["phase"]) == (1, "unknown", "finished")
    assert f"{folder}/status.json does not say how its run ended: bring it back as it was, or go on" in error


def test_a_sampled_transcript_and_torn_lines_do_not_hide_the_step(home: Home) -> None:
    folder = load_party(home.files["passive"]).out / "transcript"
    folder.mkdir()
    (folder / "left_out.json").write_text('{"gradient active": [9, 1000, 8]}')
    lines = '{"phase":"train","step":3}\n{"phase":"predict","step":0}\n{"phase":"train","step":'
    (folder / "index.jsonl").write_text(lines)
    assert home.ask("passive")[1]["step"] == 8
    (folder / "left_out.json").unlink()
    assert home.ask("passive")[1]["step"] == 3


def test_a_finished_party_is_at_no_step(home: Home) -> None:
    """No party receives every step: at the end it would seem to stand before it."""
    folder = load_party(home.files["passive"]).out
    (folder / "transcript").mkdir()
    (folder / "transcript/index.jsonl").write_text('{"phase":"train","step":3}\n')
    (folder / "state.json").write_text('{"stage": "finished"}')
    write_status(folder, "finished")
    printed = words(home.ask("passive")[1])
    assert "phase: finished; restarts: " in printed
    assert "step" not in printed


@pytest.mark.parametrize(
    ("file", "text", "unknown"),
    [
        ("transcript/index.jsonl", '{"phase":"train"}\n', "step"),
        ("transcript/index.jsonl", '{"phase":"train","step":[3]}\n', "step"),
        ("transcript/left_out.json", '{"x":[]}', "step"),
        ("transcript/left_out.json", '{"x":3, "y":{"z":1}, "z":["3"]}', "step"),
        ("federation.json", '{"training":{"epochs":1e400,"batch_size":20},"train_rows":72}', "steps"),
        ("federation.json", '{"training":{"epochs":[3],"batch_size":20},"train_rows":72}', "steps"),
        ("federation.json", '{"training":{"epochs":3,"batch_size":0},"train_rows":72}', "steps"),
        ("federation.json", '{"training":3,"train_rows":72}', "steps"),
        ("starts.json", '{"restarts":1e400}', "restarts"),
    ],
)
def test_a_damaged_folder_reads_as_unknown(home: Home, file: str, text: str, unknown: str) -> None:
    folder = load_party(home.files["passive"]).out
    (folder / "transcript").mkdir()
    (folder / file).write_text(text)
    code, found, error = home.ask("passive")
    assert (code, found[unknown]) == (11, None), error
    assert "None" not in words(found)


def test_a_damaged_line_hides_no_earlier_step(home: Home) -> None:
    folder = load_party(home.files["passive"]).out / "transcript"
    folder.mkdir()
    (folder / "index.jsonl").write_text('{"phase":"train","step":3}\n{"phase":"train"}\n')
    (folder / "left_out.json").write_text('{"x":[], "gradient active":[2]}')
    assert home.ask("passive")[1]["step"] == 3


def test_rounds_are_counted_of_all_rounds(tmp_path: Path) -> None:
    files = horizontal.deal(tmp_path, {"a": horizontal.table(30, 1)}, horizontal={"rounds": 4})
    local = horizontal.federation(files)
    horizontal.server_of(local).prepare()
    train_until(local, 2)
    found = {party: status(files[party]) for party in files}
    assert {party: (f["step"], f["steps"]) for party, f in found.items()} == {"a": (1, 4), "server": (1, 4)}
    assert "phase: training, round 1 of 4; restarts: 0" in words(found["a"])
    close(local)
