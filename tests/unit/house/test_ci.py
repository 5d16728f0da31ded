"""What `.ci/run` decides before it starts `make`: where whole data sets come from, which skips it accepts."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
STAND_IN = """#!/bin/sh
echo "$1|${VFLENS_DATA-none}|$PYTEST_ADDOPTS"
"""
ALWAYS = "--allowed-skips=tests/allowed_skips.txt"
WITHOUT_DATA = f"{ALWAYS} --allowed-skips=tests/skips_without_data.txt"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with `.ci/run`, where `make` only prints what it was asked for."""
    checkout, tools = tmp_path / "checkout", tmp_path / "tools"
    (checkout / ".ci").mkdir(parents=True)
    tools.mkdir()
    shutil.copy(ROOT / ".ci/run", checkout / ".ci/run")
    (tools / "make").write_text(STAND_IN, encoding="utf-8")
    (tools / "make").chmod(0o755)
    return checkout


def ci(checkout: Path, data: str | None) -> subprocess.CompletedProcess[str]:
    """Run it with VFLENS_DATA as given."""
    environment = {k: v for k, v in os.environ.items() if k not in ("VFLENS_DATA", "PYTEST_ADDOPTS")}
    environment["PATH"] = f"{checkout.parent / 'tools'}:{environment['PATH']}"
    if data is not None:
        environment["VFLENS_DATA"] = data
    return subprocess.run(
        [checkout / ".ci/run"], env=environment, capture_output=True, text=True, check=False
    )


def first_call(done: subprocess.CompletedProcess[str]) -> list[str]:
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[0].split("|")


def test_a_named_folder_is_used(checkout: Path, tmp_path: Path) -> None:
    done = ci(checkout, str(tmp_path))
    assert first_call(done) == ["check", str(tmp_path), ALWAYS]
    assert f"whole data sets come from {tmp_path}" in done.stderr


def test_the_folder_beside_the_checkout_is_used_if_none_is_named(checkout: Path, tmp_path: Path) -> None:
    (tmp_path / "shared/data").mkdir(parents=True)
    done = ci(checkout, None)
    assert first_call(done) == ["check", str(tmp_path / "shared/data"), ALWAYS]
    assert f"whole data sets come from {tmp_path}/shared/data" in done.stderr


def test_a_bare_checkout_goes_without(checkout: Path) -> None:
    done = ci(checkout, None)
    assert first_call(done) == ["check", "none", WITHOUT_DATA]
    assert "whole data sets are NOT tested" in done.stderr


def test_a_name_that_is_no_folder_is_refused(checkout: Path) -> None:
    done = ci(checkout, "/no/such/folder")
    assert (done.returncode, done.stdout) == (1, "")
    assert "VFLENS_DATA is '/no/such/folder', which is no folder" in done.stderr


def test_every_accepted_skip_is_of_a_file_that_exists() -> None:
    for name in ("allowed_skips.txt", "skips_without_data.txt"):
        lines = (ROOT / "tests" / name).read_text(encoding="utf-8").splitlines()
        tests = [line.split("::")[0] for line in lines if line and not line.startswith("#")]
        assert tests
        assert all((ROOT / test).is_file() for test in tests)


def test_the_versions_of_python_that_are_named_are_those_that_ci_runs() -> None:
    """`.ci/run` runs one interpreter, that of this suite: package, README and lock name it and no other."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    assert named == [f"3.{sys.version_info.minor}"]
    assert project["requires-python"] == f">={named[0]}"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"Python (3\.\d+)", readme) == named
    assert f"Python {named[0]}, on which all tests run; later versions are expected to work" in readme


def test_what_the_suite_leaves_out_is_checked_before_it(checkout: Path) -> None:
    """`make test` leaves out what `make check` runs, and `.ci/run` runs both."""
    targets = [line.split("|")[0] for line in ci(checkout, None).stdout.splitlines()]
    assert targets.index("check") < targets.index("test")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(r"^check:.* house\b", makefile, re.M)
    assert re.search(r"^house:.*\n\t.*pytest .*\$\(HOUSE\)$", makefile, re.M)
    (left_out,) = re.findall(r"^test:.*\n\t(.*)$", makefile, re.M)
    assert re.findall(r"--ignore\S*|--deselect\S*", left_out) == ["--ignore=,$(HOUSE))"]
    (house,) = re.findall(r"^HOUSE := (.*)$", makefile, re.M)
    assert all((ROOT / path).exists() for path in house.split())
