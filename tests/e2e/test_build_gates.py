"""The pytest plugin, the composite action and the pre-commit hook, each in a repository made here."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from commandline import Run
from processes import ENVIRONMENT, experiment_file

from vflens.experiments.run.loading import load_any
from vflens.experiments.run.run import run

ROOT = Path(__file__).parents[2]
PLUGIN = "vflens.api.pytest_plugin"
SETTINGS: dict[str, Any] = {
    "data": {"name": "synthetic", "rows": 400, "features": 8, "classes": 3, "informative": 4},
    "split": {"kind": "fraction", "fraction": 0.25},
    "predict_share": 0.5,
    "attacks": [{"name": "ls"}],
    "disclose": [
        {"what": "parameters", "to": "active"},
        {"what": "auxiliary", "to": "active", "rows": 30},
    ],
    "scoring": {"tolerance": {"x6": 0.1}},
}
NOISY = [{"name": "noisy", "defenses": [{"name": "gaussian_scores", "sigma": 30.0, "at": "coordinator"}]}]
TESTS = """
RUN = {run!r}

def test_hidden(vflens):
    vflens.assert_hidden(RUN, columns=["x6"], over="imputation", within=0.1)

def test_blind(vflens):
    vflens.assert_no_better_than_blind(RUN)

def test_misspelt(vflens):
    vflens.assert_hidden(RUN, columns=["x66"])

def test_another_distance(vflens):
    vflens.assert_hidden(RUN, columns=["x6"], within={{"x6": 3}})

def test_other():
    pass
"""


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository of git with one commit and a table of two columns that training gives away."""
    home = tmp_path / "own"
    home.mkdir()
    rows = np.random.default_rng(0).random((300, 2)).tolist()
    table = "id,age,income\n" + "".join(f"{i},{a:.2f},{b:.2f}\n" for i, (a, b) in enumerate(rows))
    (home / "own.csv").write_text(table, encoding="utf-8")
    _git(home, "init", "-q")
    _git(home, "add", "own.csv")
    _git(home, "commit", "-q", "-m", "begin")
    return home


def _environment() -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{ENVIRONMENT['PATH']}"
    kept = {k: v for k, v in ENVIRONMENT.items() if not k.startswith(("PYTEST", "GIT"))}
    who = {f"GIT_{who}_{what}": "a@b" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {**kept, **who, "PATH": path, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}


def _git(home: Path, *arguments: str, check: bool = True, path: str = "") -> subprocess.CompletedProcess[str]:
    environment = _environment() | ({"PATH": path} if path else {})
    return subprocess.run(
        ["git", *arguments], cwd=home, env=environment, capture_output=True, text=True, check=check
    )


def _pytest(home: Path, *arguments: str) -> str:
    """The words of pytest in ``home``."""
    command = [sys.executable, "-m", "pytest", "-p", PLUGIN, "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(
        command, cwd=home, env=_environment(), capture_output=True, text=True, check=False, timeout=100
    )
    return done.stdout + done.stderr


def _recorded(folder: Path, **changes: Any) -> str:
    return str(run(load_any(experiment_file(folder, **SETTINGS, **changes)), in_process=True).folder)


def test_tests_fail_on_a_run_that_gives_columns_away(repository: Path, tmp_path: Path) -> None:
    (repository / "test_own.py").write_text(TESTS.format(run=_recorded(tmp_path)), encoding="utf-8")
    words = _pytest(repository, "--vflens")
    assert "4 failed, 1 passed" in words
    assert "x6 within 0.1 > imputation, with no defence: broken, ls finds 100.0 % (" in words
    assert "no attack beats a blind guess, with no defence: broken, ls errs by" in words
    assert "no column is called 'x66', did you mean x6?" in words
    assert "set scoring.tolerance.x6 = 3 and run it again" in words


def test_tests_pass_on_a_run_that_hides_them(repository: Path, tmp_path: Path) -> None:
    folder = _recorded(tmp_path, scenarios=NOISY)
    (repository / "test_own.py").write_text(TESTS.format(run=folder), encoding="utf-8")
    assert "2 passed" in _pytest(repository, "--vflens", "-k", "hidden or blind")


def test_without_the_option_they_are_skipped_and_nothing_of_weight_is_loaded(repository: Path) -> None:
    (repository / "test_own.py").write_text(TESTS.format(run="nowhere"), encoding="utf-8")
    (repository / "conftest.py").write_text(
        "import sys\ndef pytest_unconfigure():\n    print('LOADED', *sorted(sys.modules))\n", encoding="utf-8"
    )
    words = _pytest(repository, "-rs")
    assert "1 passed, 4 skipped" in words
    assert "it asks what a federation reveals: give --vflens" in words
    loaded = set(next(line for line in words.splitlines() if line.startswith("LOADED")).split())
    assert {name for name in loaded if name.startswith("vflens")} == {"vflens", "vflens.api", PLUGIN}
    assert not {"numpy", "pyarrow", "pydantic", "grpc", "torch"} & loaded


def test_the_plugin_is_loaded_in_milliseconds() -> None:
    code = f"import pytest, time; t = time.perf_counter(); import {PLUGIN}; print(time.perf_counter() - t)"
    taken = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(5)
    ]
    assert min(taken) < 0.05


def test_pytest_finds_the_plugin_where_vflens_is_installed() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"]["pytest11"] == {"vflens": PLUGIN}


# --- the composite action


def _act(home: Path, path: str = "", **inputs: str) -> subprocess.CompletedProcess[str]:
    """The last step of the action, with its inputs as a runner gives them."""
    action = yaml.safe_load((ROOT / ".github/actions/thresholds/action.yml").read_text(encoding="utf-8"))
    given = {name: str(of.get("default", "")) for name, of in action["inputs"].items()} | inputs
    assert set(given) == set(action["inputs"])
    assert action["runs"]["using"] == "composite"
    step = action["runs"]["steps"][-1]
    assert "${{" not in step["run"]  # an input in the script itself could run commands
    own = {
        k: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda m: given[m[1]], v) for k, v in step["env"].items()
    }
    return subprocess.run(
        [step["shell"], "-c", step["run"]],
        cwd=home,
        env={**_environment(), **({"PATH": path} if path else {}), **own},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )


def _asked(home: Path, *, exit_code: str = "0", **inputs: str) -> subprocess.CompletedProcess[str]:
    """What the action asks of a ``vflens`` that prints its arguments, each on a line, and ends so."""
    (home / "vflens").write_text(f'#!/bin/sh\nprintf "%s\\n" "$@"\nexit {exit_code}\n', encoding="utf-8")
    (home / "vflens").chmod(0o755)
    return _act(home, f"{home}:{_environment()['PATH']}", command="audit", **inputs)


def test_the_action_ends_as_the_command_does(vflens: Run, tmp_path: Path) -> None:
    """The command takes what it asks, and no input runs a command of its own."""
    inputs = {"arguments": "absent.csv --classes 2", "junit": "j.xml", "beats-blind": "true"}
    clear = _asked(tmp_path, exit_code="15", thresholds="age > 50 %\n", **inputs)
    assert clear.returncode == 15, clear.stderr
    asked = ["--fail-if", "age > 50 %", "--fail-if-beats-blind", "--junit", "j.xml"]
    assert clear.stdout.splitlines() == ["audit", "absent.csv", "--classes", "2", *asked]
    assert "absent.csv: there is no such file" in vflens(*clear.stdout.splitlines()).err
    threshold = "age > 90 %; rm vflens $(rm vflens) `rm vflens`"
    secure = _asked(tmp_path, thresholds=f"{threshold}\n", **inputs)
    assert secure.stdout.splitlines()[4:6] == ["--fail-if", threshold]
    assert (tmp_path / "vflens").exists()


def test_the_action_takes_names_in_quotes_lines_and_remarks(tmp_path: Path) -> None:
    arguments = "own.csv\n  --columns 'net income'\n--out a.html"
    thresholds = "\n  net income > 10 %  \n# of last year\n   \nage > 5 %\n"
    facts = _asked(tmp_path, arguments=arguments, thresholds=thresholds, **{"beats-blind": "True"})
    assert facts.stdout.splitlines() == [
        *("audit", "own.csv", "--columns", "net income", "--out", "a.html"),
        *("--fail-if", "net income > 10 %", "--fail-if", "age > 5 %", "--fail-if-beats-blind"),
    ]


def test_the_action_refuses_what_it_does_not_understand(tmp_path: Path) -> None:
    wrong = _asked(tmp_path, arguments="own.csv", **{"beats-blind": "yes"})
    assert (wrong.returncode, wrong.stdout) == (2, "")
    assert "beats-blind: write true or false (got 'yes')" in wrong.stderr
    assert _asked(tmp_path, arguments="own.csv 'a").returncode != 0


@pytest.mark.parametrize("thresholds", ["", "# income within 5 > 10 %\n\n", " \n\t\n"])
def test_the_action_refuses_to_judge_nothing(tmp_path: Path, thresholds: str) -> None:
    open_ = _asked(tmp_path, arguments="own.csv --classes 2", thresholds=thresholds)
    assert (open_.returncode, open_.stdout) == (2, "")
    assert "no threshold was given" in open_.stderr
    assert (
        _asked(tmp_path, arguments="own.csv", thresholds=thresholds, **{"beats-blind": "true"}).returncode
        == 0
    )
    assert _asked(tmp_path, arguments="own.csv --fail-if 'age > 5 %'", thresholds=thresholds).returncode == 0


# --- the hook


#: A ``vflens`` that finds columns open unless training is secure, and notes what it was asked.
_JUDGES = """#!/bin/sh
printf '%s\\n' "$@" > .git/asked
case "$*" in *secure*) exit 0 ;; esac
echo "1 threshold is broken" >&2
exit 15
"""


def test_a_commit_is_refused_by_the_hook(repository: Path, tmp_path: Path) -> None:
    """By the code alone with which the command ends."""
    (tmp_path / "vflens").write_text(_JUDGES, encoding="utf-8")
    (tmp_path / "vflens").chmod(0o755)
    path = f"{tmp_path}:{_environment()['PATH']}"
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert {"id", "name", "entry", "language"} < set(hook)
    given = ["own.csv", "--classes", "2", "--models", "1", "--out", ".git/audit.html"]
    asked = ["--fail-if", "income within 0.01 > 50 %"]
    ended = {}
    for name, arguments in {"clear": given, "secure": [*given, "--training", "secure"]}.items():
        script = repository / ".git/hooks/pre-commit"
        script.write_text(
            f"#!/bin/sh\nexec {hook['entry']} {shlex.join([*arguments, *asked])}\n", encoding="utf-8"
        )
        script.chmod(0o755)
        (repository / name).write_text(name, encoding="utf-8")
        _git(repository, "add", name)
        ended[name] = _git(repository, "commit", "-q", "-m", name, check=False, path=path)
        asked_now = (repository / ".git/asked").read_text(encoding="utf-8").splitlines()
        assert asked_now == ["audit", *arguments, *asked]
    assert ended["clear"].returncode != 0
    assert "1 threshold is broken" in ended["clear"].stderr
    assert ended["secure"].returncode == 0, ended["secure"].stderr
    assert _git(repository, "log", "--format=%s").stdout.split() == ["secure", "begin"]
