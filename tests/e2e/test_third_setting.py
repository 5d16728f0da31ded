"""A made-up third setting, of another package, in the commands: what it adds is an entry in each table."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any

import processes
import pytest
import tomli_w

TESTS = Path(__file__).parents[1]
EXPERIMENT: dict[str, Any] = {
    "name": "lonely",
    "out": "runs",
    "data": {"name": "wine"},
    "training": {"epochs": 20, "batch_size": 20, "learning_rate": 0.1},
    "alone": {"party": "hermit"},
}


def _toy(*arguments: str, cwd: Path) -> str:
    """What ``vflens`` with the third setting prints."""
    return processes.vflens(*arguments, cwd=cwd, entry="toysetting.needed").stdout


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the experiment."""
    folder = tmp_path_factory.mktemp("alone")
    (folder / "lonely.toml").write_text(tomli_w.dumps(EXPERIMENT), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def ran(home: Path) -> dict[str, Any]:
    """What its run, in a process of its own, ended with; the folder is ``runs/lonely``."""
    found: dict[str, Any] = json.loads(_toy("run", "lonely.toml", "--json", cwd=home))
    return found


def test_check_describes_it(home: Path) -> None:
    facts = json.loads(_toy("check", "lonely.toml", "--json", cwd=home))
    assert facts["rows"] == "142 to train, 36 to predict"
    assert re.match(r"solo at unix:.*, 178 rows, 13 columns$", facts["run, hermit"])


def test_it_learns_in_a_process(ran: dict[str, Any]) -> None:
    (run,) = ran["runs"]
    assert run["parties"] == {"hermit": {"state": "finished", "reason": ""}}
    assert run["label"] == "no defence"
    assert run["utility"]["accuracy"] > 0.9
    assert run["results"] == run["labels"] == run["membership"] == []


def test_in_one_process_it_has_the_same_figures(home: Path, ran: dict[str, Any]) -> None:
    found = json.loads(_toy("run", "lonely.toml", "--in-process", "--out", "here", "--json", cwd=home))
    assert found["runs"][0]["utility"] == ran["runs"][0]["utility"]


def test_status_tells_its_end(home: Path, ran: dict[str, Any]) -> None:
    config = f"{ran['folder']}/run/hermit/config.toml"
    found = json.loads(_toy("status", "--config", config, "--json", cwd=home))
    assert (found["role"], found["state"], found["phase"]) == ("solo", "finished", "finished")
    assert found["steps"] == EXPERIMENT["training"]["epochs"]


def test_report_names_no_other_setting(home: Path, ran: dict[str, Any]) -> None:
    _toy("report", ran["folder"], "--out", "page.html", cwd=home)
    page = (home / "page.html").read_text(encoding="utf-8")
    words = unescape(re.sub(r"<(script|style).*?</\1>|<[^>]+>", " ", page, flags=re.DOTALL))
    assert "hermit (solo)" in words
    assert re.search(r"received by solo", words)
    assert not re.search(r"coordinator|server|client|active party|passive", words)


def test_the_logs_of_a_hermit_have_no_message_to_check(home: Path, ran: dict[str, Any]) -> None:
    assert "nothing to check: no log has a record" in _toy("verify-log", ran["folder"], cwd=home)


def test_vflens_without_it_knows_no_such_role(home: Path, ran: dict[str, Any]) -> None:
    config = f"{ran['folder']}/run/hermit/config.toml"
    refusal = processes.vflens("check", config, code=2, cwd=home).stderr
    assert "role is 'solo': a party is passive, active, coordinator, client or server" in refusal


@pytest.fixture(scope="module")
def needed(home: Path) -> dict[str, list[str]]:
    """Table → the commands that go well without its entry; "": with all."""
    found: dict[str, list[str]] = json.loads(_toy("needed", "lonely.toml", "needed", cwd=home))
    return found


def test_no_entry_is_idle(needed: dict[str, list[str]]) -> None:
    everything = ["check", "run", "status", "report", "verify-log"]
    assert [name for name, done in needed.items() if done == everything] == [""]


def test_the_tables_are_those_of_the_documentation(needed: dict[str, list[str]]) -> None:
    text = (TESTS.parent / "docs" / "architecture.md").read_text(encoding="utf-8")
    section = text.split("\n## What a third setting adds\n", 1)[1].split("\n## ", 1)[0]
    first = section.split("\n\nA setting in which parties exchange", 1)[0]
    assert ["", *re.findall(r"^\| `([A-Z_]+)` ", first, re.MULTILINE)] == list(needed)
