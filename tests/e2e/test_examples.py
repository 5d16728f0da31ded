"""The example configurations are true: three terminals make a federation, experiments fit, published secrets
stay at home.
"""

from __future__ import annotations

import json
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import terminals
from processes import eventually, forked
from pyarrow import csv
from stubparty import short_folder

from vflens.config import load_party
from vflens.errors import ConfigError
from vflens.experiments.run.check import check
from vflens.services.certificates.make import init
from vflens.services.forking.forks import Fork

EXAMPLES = Path(__file__).parents[2] / "examples"
PARTIES = ("passive", "active", "coordinator")
BRANCHES = {"north": "client", "south": "client", "server": "server"}
ANSWER = re.compile(r"^ +[0-4]  c\d+ +(yes|no) +no \.?[\d.]+, yes [\d.]+$")


@pytest.fixture
def examples() -> Iterator[Path]:
    """A copy of the examples, as a checkout has them: readable by everybody; with certificates."""
    with short_folder() as folder:
        copy = folder / "examples"
        shutil.copytree(EXAMPLES, copy)
        for party in PARTIES:
            (copy / f"{party}.toml").chmod(0o644)
        init([copy / f"{party}.toml" for party in PARTIES])
        yield copy


def test_without_certificates_the_command_that_draws_them_is_named() -> None:
    with short_folder() as folder:
        shutil.copytree(EXAMPLES, folder / "examples")
        with pytest.raises(
            ConfigError, match=r"tls/certificate.pem does not exist: draw it with: vflens certs init"
        ):
            check(folder / "examples/passive.toml")


@pytest.mark.parametrize(
    "name",
    [
        *("demo", "demo_deep", "own_csv", "number", "compose", "compose_horizontal"),
        *("horizontal", "horizontal_secure", "protected", "protected_number"),
    ],
)
def test_experiments_fit(name: str) -> None:
    assert check(EXAMPLES / f"{name}.toml")


@pytest.mark.parametrize("party", PARTIES)
def test_parties_fit(examples: Path, party: str) -> None:
    assert check(examples / f"{party}.toml")["party"] == party


@pytest.mark.parametrize("party", PARTIES)
@pytest.mark.parametrize("host", ["0.0.0.0", "bank.example", "[::]"])
def test_published_secrets_stay_on_this_machine(examples: Path, party: str, host: str) -> None:
    file = examples / f"{party}.toml"
    file.write_text(
        re.sub(r'"unix:.*"', f'"{host}:50051"', file.read_text(encoding="utf-8"), count=1), encoding="utf-8"
    )
    with pytest.raises(
        ConfigError,
        match=r"begins with 'example-' and address '.*' is not on this machine.*: vflens secrets init FILE",
    ):
        load_party(file)


@pytest.mark.parametrize(
    "order",
    [
        pytest.param(PARTIES, id="passive first"),
        pytest.param(PARTIES[::-1], id="coordinator first", marks=pytest.mark.facts),
    ],
)
def test_three_terminals(examples: Path, order: tuple[str, ...]) -> None:
    folder = examples.parent
    with _serving(folder) as start:
        started = {party: start(party, party) for party in order}
        eventually(lambda: "serving predictions" in said(folder, "coordinator"))
        answers = _predict(folder)
        started["coordinator"].send_signal(signal.SIGINT)
        codes = {party: process.wait(60) for party, process in started.items()}
        words = {party: said(folder, party) for party in started}
    assert {mode(folder / "runs/example" / party) for party in PARTIES} == {0o700}
    assert len(answers) == 5
    assert all(ANSWER.match(line) for line in answers), answers
    assert codes == dict.fromkeys(PARTIES, 0), words
    folders = [f"runs/example/{party}" for party in PARTIES]
    (run,) = json.loads(forked("report", *folders, "--json", folder=folder).stdout)["runs"]
    assert {p["state"] for p in run["parties"].values()} == {"finished"}
    assert {r["attack"] for r in run["results"]} == {"half", "ls", "half_star", "mean_star", "lmmse"}
    assert all(r["rows"] == 72 for r in run["results"])


@pytest.mark.timeout(120)
def test_two_clients_with_own_files_and_a_server(examples: Path) -> None:
    """One has a CSV, the other parquet; each then predicts its own rows."""
    folder = examples.parent
    init([examples / f"{party}.toml" for party in BRANCHES])
    south = examples / "south.toml"
    pq.write_table(csv.read_csv(examples / "branch_south.csv"), examples / "branch_south.parquet")
    south.write_text(
        south.read_text(encoding="utf-8").replace("south.csv", "south.parquet"), encoding="utf-8"
    )
    with _serving(folder) as start:
        started = {party: start(party, role, "--resume") for party, role in BRANCHES.items()}
        codes = {party: process.wait(90) for party, process in started.items()}
        words = {party: said(folder, party) for party in started}
    assert codes == dict.fromkeys(BRANCHES, 0), words
    assert "training 20/20" in words["server"]
    for party, rows in (("north", 39), ("south", 27)):
        assert f"on {rows} rows of its own" in words[party]
        asked = forked("predict", "--config", f"examples/{party}.toml", "--json", folder=folder)
        answers = json.loads(asked.stdout)
        table = (examples / f"branch_{party}.csv").read_text(encoding="utf-8").splitlines()
        truth = {line.split(",")[0]: line.split(",")[-1] for line in table}
        right = sum(a["class"] == truth[a["id"]] for a in answers)
        assert f"accuracy {right / rows:.3f} " in words[party]
        assert len(answers) == rows


def said(folder: Path, party: str) -> str:
    return (folder / f"{party}.log").read_text(encoding="utf-8")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@contextmanager
def _serving(folder: Path) -> Iterator[Callable[..., Fork]]:
    """Starts a party by its name, role and flags in ``folder``; none outlives the context."""
    with ExitStack() as ends:

        def start(party: str, role: str, *flags: str) -> Fork:
            command = ["serve", role, "--config", f"examples/{party}.toml", *flags]
            process = terminals.start(command, folder / f"{party}.log", folder=folder)
            ends.callback(process.kill)
            return process

        yield start


def _predict(folder: Path) -> list[str]:
    elsewhere = folder / "examples"  # sockets are found from anywhere
    asked = forked("predict", "--config", "active.toml", "--rows", "0-4", folder=elsewhere)
    assert asked.returncode == 0, asked.stderr
    assert asked.stderr == ""
    return asked.stdout.splitlines()
