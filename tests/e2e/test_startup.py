"""What commands load before they say anything; what the parties of a launcher load: together, what they
share; each, nothing of weight.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from nonempty import nonempty
from processes import dealt, experiment_file

from vflens.experiments.run.processes import LOADED
from vflens.services.forking.forks import Forks
from vflens.services.forking.lifeline import LAUNCHED

HEAVY = {"pandas", "sklearn", "scipy", "plotly", "torch"}


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What each party says of its process: see ``loads.py``."""
    disclosed = [{"what": "parameters", "to": "active"}, {"what": "auxiliary", "to": "active", "rows": 9}]
    path = {"PYTHONPATH": str(Path(__file__).parents[1])}
    with (
        dealt(
            tmp_path_factory.mktemp("startup"),
            disclose=disclosed,
            attacks=[{"name": "half"}, {"name": "lmmse"}],
        ) as federation,
        Forks(*LOADED, entry="loads", environment=path) as forks,
    ):
        started = {}
        for party, role in federation.roles.items():
            command = ["serve", role, "--config", str(federation.config(party))]
            with (federation.home / party / "output.log").open("ab") as output:
                started[party] = forks.start(command, output.fileno(), {LAUNCHED: "1"})
        assert {party: child.wait(60) for party, child in started.items()} == dict.fromkeys(started, 0)
        return {party: json.loads(federation.said(party).splitlines()[-1]) for party in started}


def test_no_party_loads_libraries_of_figures_and_tables(parties: dict[str, dict[str, Any]]) -> None:
    for party, facts in nonempty(parties.items()):
        assert {"numpy", "grpc", "pyarrow.parquet"} < set(facts["shared"])
        assert not HEAVY & {*facts["shared"], *facts["loaded"]}, party


def test_a_party_loads_its_plug_ins_alone(parties: dict[str, dict[str, Any]]) -> None:
    """All else was loaded before the fork; what a party loads itself it loads in each process again."""
    for facts in nonempty(parties.values()):
        others = [name for name in facts["loaded"] if name.partition(".")[0] != "vflens"]
        assert {name.partition(".")[0] for name in others} <= {"encodings", "typer"}, others
        own = {name for name in facts["loaded"] if name.partition(".")[0] == "vflens"}
        assert {name for name in own if not name.startswith(("vflens.attacks", "vflens.numerics"))} == set()


def test_a_party_begins_with_one_thread_and_draws_of_its_own(parties: dict[str, dict[str, Any]]) -> None:
    """A thread of the process that forks would be missing in its children, with the locks that it holds."""
    assert {facts["threads"] for facts in parties.values()} == {1}
    assert len({facts["drawn"] for facts in parties.values()}) == len(parties)


def test_ps_shows_the_command_of_a_party(parties: dict[str, dict[str, Any]]) -> None:
    for party, facts in nonempty(parties.items()):
        assert facts["shown"].startswith(f"vflens serve {party} --config /")
        assert facts["shown"].endswith(f"/{party}/config.toml")


LIBRARIES = HEAVY | {"asyncio", "cryptography", "cvxpy", "grpc", "jinja2", "structlog"}


@pytest.fixture(scope="module")
def fresh() -> Iterator[Forks]:
    """Starts processes with nothing loaded: see ``fresh.py``."""
    with Forks(entry="fresh", environment={"PYTHONPATH": str(Path(__file__).parents[1])}) as forks:
        yield forks


def loaded(forks: Forks, output: Path, *arguments: str) -> set[str]:
    """The modules that the command with ``arguments`` or the import of one module loads."""
    with output.open("wb") as words:
        assert forks.start(arguments, words.fileno()).wait(60) == 0
    return set(output.read_text(encoding="utf-8").splitlines()[-1].split())


def test_help_loads_no_library_of_numbers_tables_or_pages(fresh: Forks, tmp_path: Path) -> None:
    found = loaded(fresh, tmp_path / "said", "--help")
    assert "vflens.cli.main" in found
    assert not (LIBRARIES | {"pyarrow"}) & found


def test_results_are_read_without_the_log_s_library(fresh: Forks, tmp_path: Path) -> None:
    found = loaded(fresh, tmp_path / "said", "vflens.experiments.results.verdict")
    assert "vflens.experiments.results.fedadob" in found
    assert not (LIBRARIES | {"pyarrow", "rich"}) & found


def test_a_run_comes_to_its_parties_without_what_reports_need(fresh: Forks, tmp_path: Path) -> None:
    file = experiment_file(tmp_path, data={"name": "digits"})
    found = loaded(fresh, tmp_path / "said", "run", str(file))
    assert {"vflens.experiments.run.processes", "pyarrow.parquet"} < found
    assert (tmp_path / "runs/tiny/run/active/config.toml").exists()
    assert not LIBRARIES & found
    assert not {"vflens.experiments.results.verdict", "vflens.experiments.pages.report"} & found
