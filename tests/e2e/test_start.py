"""Where a user begins: the demo, copies of the examples, a plug-in and a party of one's own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from commandline import Refused, Run
from installed import install
from nonempty import nonempty
from thinned import first

from vflens.config.loading import load_party
from vflens.experiments.starting.copies import KINDS

ROOT = Path(__file__).parents[2]
PEERS = ["--peer", "active=a.example:1", "--peer", "coordinator=a.example:2"]
PARTY = ["party", "init", "passive", "--run", "loans", "--at", "0.0.0.0:3"]
TABLE = ["--table", "table.csv", "--id-column", "id"]
#: Role → what its operator says beside name, run and address.
ROLES = {
    "passive": [*PEERS, *TABLE],
    "active": [
        *("--peer", "coordinator=a.example:2", "--peer", "passive:bureau=b.example:3"),
        *(*TABLE, "--label-column", "paid", "--classes", "no,yes"),
    ],
    "coordinator": ["--peer", "active=a.example:1", "--peer", "passive:bureau=b.example:3"],
    "client": ["--peer", "server=a.example:1", *TABLE, "--label-column", "paid", "--classes", "no,yes"],
    "server": ["--peer", "client:north=a.example:1", "--peer", "client:south=b.example:2"],
}


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def files_below(folder: Path) -> dict[str, bytes]:
    found = (f for f in folder.rglob("*") if f.is_file() and "__pycache__" not in f.parts)
    return {f.relative_to(folder).as_posix(): f.read_bytes() for f in found}


def test_the_examples_are_listed_with_what_they_are(vflens: Run) -> None:
    listed = json.loads(vflens("examples", "list", "--json").out)
    assert set(listed) == {file.name for file in (ROOT / "examples").glob("*.toml")}
    for name, text in nonempty(listed.items()):
        assert text.endswith((".", ":")), name
        assert len(text) > 20, name
    assert "demo.toml " in vflens("examples", "list").out


def test_a_copy_of_the_examples_has_the_same_bytes_and_overwrites_nothing(
    vflens: Run, refused: Refused, tmp_path: Path
) -> None:
    assert vflens("examples", "copy").code == 0
    assert files_below(tmp_path / "examples") == files_below(ROOT / "examples")
    sentence = refused(2, "examples", "copy")
    assert sentence == "examples is there already: choose another folder, or move it away"


def test_the_experiment_on_two_csv_files_fits(vflens: Run, tmp_path: Path) -> None:
    assert "vflens check own-csv/own_csv.toml" in vflens("new", "own-csv").out
    assert len(files_below(tmp_path / "own-csv")) == 3
    assert vflens("check", "own-csv/own_csv.toml").code == 0


def test_the_demo_is_the_example(vflens: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[Any] = []
    monkeypatch.setattr("vflens.cli.start.run", lambda file, **flags: ran.append((file.read_bytes(), flags)))
    assert vflens("demo").code == 0
    assert ran == [((ROOT / "examples/demo.toml").read_bytes(), {"json": False})]


@pytest.mark.parametrize(("kind", "tests"), first([("attack", 22), ("defence", 30)]))
def test_a_new_plugin_runs_and_passes_its_tests(
    vflens: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, tests: int
) -> None:
    """Installed as pip leaves it: its module and its entry point on the path."""
    name = f"my_{kind}"  # one of its own: Python keeps the modules of this process
    written = vflens("new", kind, name)
    files = {"README.md", "pyproject.toml", f"{name}.py", f"{name}.toml", f"test_{name}.py"}
    assert {*files_below(tmp_path / name)} == files
    commands = json.loads(vflens("new", kind, name, "--to", "again", "--json").out)["next"]
    assert [command.replace(sys.executable, "python") for command in commands] == [
        "python -m pip install --editable again[test]",
        f"vflens run again/{name}.toml --in-process",
        "python -m pytest again",
    ]
    assert "-m pytest" in written.out
    project = tomllib.loads((tmp_path / name / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"] == {KINDS[kind][0].group: {name: name}}
    assert project["dependencies"] == ["vflens"]
    install(project, tmp_path / name)
    tested = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", name]
    path = os.pathsep.join([str(tmp_path / name), str(ROOT)])
    apart = {**os.environ, "PYTHONPATH": path, "PYTEST_ADDOPTS": ""}
    ended = subprocess.run(tested, env=apart, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
    assert f"\n{tests} passed in" in ended.stdout
    monkeypatch.syspath_prepend(str(tmp_path / name))
    ran = vflens("run", f"{name}/{name}.toml", "--in-process", "--json")
    assert ran.code == 0, ran.err
    assert name in ran.out


def test_a_plugin_needs_a_name_of_its_own(vflens: Run, refused: Refused, tmp_path: Path) -> None:
    for kind, wrong in (
        ("attack", "a"),
        ("attack", "linear_attack"),
        ("defence", "claim"),
        ("defence", "field"),
    ):
        used = "".join(word.capitalize() for word in wrong.split("_"))
        why = f"its package uses {used!r}, choose another"
        assert refused(2, "new", kind, wrong) == f"name {wrong!r} of a new {kind}: {why}"
    for wrong in ("json", "numpy", "vflens"):
        assert refused(2, "new", "attack", wrong) == (
            f"name {wrong!r} of a new attack: a module of Python has it, choose another"
        )
    for wrong in ("Mine", "1st", "", "my-own", "class", "../up"):
        assert refused(2, "new", "attack", wrong, "--to", "x").startswith(
            f"name {wrong!r} of a new attack: give"
        )
    assert refused(2, "new", "attack", "half_star") == (
        "name 'half_star' of a new attack: an installed one has it, choose another"
    )
    assert list(tmp_path.iterdir()) == []
    assert vflens("new", "attack", "mine").code == 0
    assert refused(2, "new", "attack", "mine").startswith("mine is there already: ")


@pytest.mark.parametrize("role", ROLES)
def test_a_new_party_has_tls_and_no_grants(vflens: Run, tmp_path: Path, role: str) -> None:
    ended = vflens("party", "init", role, "--name", "me", "--run", "loans", "--at", "0.0.0.0:9", *ROLES[role])
    assert ended.code == 0, ended.err
    assert "send me/tls/certificate.pem, which is public, to every peer" in ended.out
    file = tmp_path / "me.toml"
    assert file.stat().st_mode & 0o777 == 0o600
    assert vflens("secrets", "init", file).code == 0
    party = load_party(file)
    assert (party.role, party.party, party.run, party.address) == (role, "me", "loans", "0.0.0.0:9")
    assert getattr(party, "disclose", ()) == ()
    assert party.tls is not None
    assert party.tls.key == tmp_path / "me/tls/key.pem"
    found = [f"{peer.role}:{peer.name}={peer.address}" for peer in party.peers]
    given = [words for flag, words in pairwise(ROLES[role]) if flag == "--peer"]
    assert found == [re.sub(r"^(\w+)=", r"\1:\1=", words) for words in given]


def test_names_with_quotes_stay_names(vflens: Run, tmp_path: Path) -> None:
    """What an operator types stands in the file as a text, whatever it holds."""
    odd = 'a"b\\c\x7f\n[[disclose]]'
    ended = vflens(
        *PARTY[:3], "--run", odd, "--at", "0.0.0.0:3", *PEERS, "--table", odd, "--id-column", "Größe 🙂"
    )
    assert ended.code == 0, ended.err
    written = tomllib.loads((tmp_path / "passive.toml").read_text(encoding="utf-8"))
    assert (written["run"], written["data"]) == (odd, {"file": odd, "id_column": "Größe 🙂"})
    assert "disclose" not in written


def test_a_wrong_party_is_refused_and_nothing_is_left(refused: Refused, vflens: Run, tmp_path: Path) -> None:
    roles = "passive, active, coordinator, client or server"
    for arguments, sentence in (
        (["party", "init", "boss", "--run", "r", "--at", "a:1", *PEERS], f"role 'boss': a party is {roles}"),
        (
            [*PARTY, "--peer", "actve=a:1"],
            f"--peer 'actve=a:1': give ROLE=ADDRESS or ROLE:NAME=ADDRESS, a role is {roles}",
        ),
        *(
            (
                [*PARTY[:-1], at, *PEERS, *TABLE],
                f"address {at!r} is not host:port with a port from 1 to 65535, nor unix:PATH",
            )
            for at in ("", "127.0.0.1", "127.0.0.1:99999", "127.0.0.1:0")
        ),
        ([*PARTY, *PEERS, "--table", "t\udcff.csv"], "'\\udcff' is no text: give names in UTF-8"),
        ([*PARTY, *PEERS], "--table is missing: name the CSV or parquet file of the passive party"),
    ):
        assert refused(2, *arguments) == sentence
    assert "the active party holds the labels" in refused(
        2, *PARTY[:2], "active", *PARTY[3:], *PEERS[2:], *TABLE
    )
    assert "there is no such setting" in refused(
        2, *PARTY[:2], "coordinator", *PARTY[3:], "--peer", "active=a:1", "--peer", "passive=b:1", *TABLE
    )
    assert list(tmp_path.iterdir()) == []
    assert vflens(*PARTY, *PEERS, *TABLE).code == 0
    assert refused(2, *PARTY, *PEERS, *TABLE).startswith("passive.toml is there already: ")


def test_of_two_that_write_one_party_at_once_one_is_refused(
    refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other comes after the look whether the file is there."""

    def late(settings: Any, file: Path) -> None:
        file.write_text("of the other")

    monkeypatch.setattr("vflens.experiments.starting.party.checked", late)
    words = refused(2, *PARTY, *PEERS, *TABLE)
    assert words == "passive.toml is there already: choose another file, or move it away"
    assert [(f.name, f.read_text()) for f in tmp_path.iterdir()] == [("passive.toml", "of the other")]


@pytest.mark.parametrize("late", ["a folder", "a file"])
@pytest.mark.parametrize("command", [["examples", "copy"], ["new", "own-csv"], ["new", "attack", "mine"]])
def test_of_two_that_copy_into_one_folder_at_once_one_is_refused(
    refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str], late: str
) -> None:
    """The other comes after the look whether the folder is there."""
    to, make = tmp_path / "to", tempfile.mkdtemp

    def beside(**where: Any) -> str:
        if late == "a folder":
            to.mkdir()
        (to / "its.toml" if late == "a folder" else to).write_text("of the other")
        return str(make(**where))

    monkeypatch.setattr("vflens.experiments.starting.copies.mkdtemp", beside)
    words = refused(2, *command, "--to", "to")
    assert words == "to is there already: choose another folder, or move it away"
    assert [f.name for f in tmp_path.rglob("*")] == (["to", "its.toml"] if late == "a folder" else ["to"])


def test_a_party_is_begun_by_one_command(refused: Refused) -> None:
    assert "party" in refused(2, "new", "party", *PARTY[2:], *PEERS, *TABLE)


def test_a_copy_that_fails_leaves_nothing_and_may_be_tried_again(
    vflens: Run, refused: Refused, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*paths: Any) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("shutil.copy", full)
        words = refused(12, "new", "own-csv", "--to", "deep/mine")
    assert words == "deep/mine cannot be written: free space, or choose a folder that you can write"
    assert list((tmp_path / "deep").iterdir()) == []
    assert vflens("new", "own-csv", "--to", "deep/mine").code == 0


def test_paths_of_the_next_commands_are_quoted(vflens: Run) -> None:
    found = json.loads(vflens("new", "own-csv", "--to", "my table", "--json").out)
    assert found["next"] == ["vflens check 'my table/own_csv.toml'", "vflens run 'my table/own_csv.toml'"]
