"""The console lines that run against the wheel are those of the pages, and what is left out is named."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import wheel_check


def _runs(line: str) -> bool:
    return not wheel_check.left_out(line)


def test_the_pages_of_the_three_doors_are_run() -> None:
    doors = (wheel_check.ROOT / "docs/index.md").read_text(encoding="utf-8").partition("## References")[0]
    named = {*re.findall(r"\]\(([\w/-]+\.(?:md|ipynb))\)", doors)}
    run = {page.removeprefix("docs/") for page in (*wheel_check.PAGES, *wheel_check.HOSPITALS)}
    run |= {f"tutorials/{name}.ipynb" for name in wheel_check.TUTORIALS}
    assert len(named) >= 14
    assert named <= run


def test_a_tutorial_is_its_code() -> None:
    for name in wheel_check.TUTORIALS:
        compile(wheel_check.program(name), name, "exec")


def test_what_is_left_out_stands_on_a_page() -> None:
    lines = wheel_check.lines()
    assert all(any(line.startswith(begin) for line in lines) for begin in wheel_check.LEFT_OUT)
    assert all(wheel_check.LEFT_OUT.values())
    assert {*wheel_check.BEFORE, *wheel_check.REFUSED} <= {*filter(_runs, lines)}


def test_every_other_line_runs_vflens_or_installs_a_plugin() -> None:
    kept = [*filter(_runs, wheel_check.lines())]
    assert len(kept) > 70
    for line in kept:
        commands = wheel_check.commands(line)
        assert commands, line
        assert all(
            re.match("vflens |python examples/|pip install --editable |python -m pytest ", command)
            for command in commands
        ), line


def test_make_stands_for_its_recipe() -> None:
    assert wheel_check.commands("make demo") == ["vflens demo"]
    assert wheel_check.commands("make nothing") == []


def test_parties_that_serve_are_asked_and_then_reported() -> None:
    """In the order of the page: all parties, a question while they serve, the report of what they wrote."""
    lines = [*filter(_runs, wheel_check.lines())]
    serve = [i for i, line in enumerate(lines) if line.startswith("vflens serve ")]
    first, after = serve[0], serve[-1] + 1
    assert serve == list(range(first, after))
    assert [line.split()[1] for line in lines[after : after + 2]] == ["predict", "report"]


def test_a_wheel_adds_one_package_and_the_sdist_builds_the_same() -> None:
    right = dict.fromkeys(("vflens/__init__.py", "vflens/py.typed", "vflens-0.3.0.dist-info/METADATA"), b"1")
    assert wheel_check.problems(right, {**right}) == ""
    assert "it adds attacks, vflens: " in wheel_check.problems({**right, "attacks/zero.py": b""}, right)
    assert "another: vflens/__init__.py" in wheel_check.problems(right, {**right, "vflens/__init__.py": b"2"})
    less = {name: text for name, text in right.items() if name != "vflens/__init__.py"}
    assert "another: vflens/__init__.py" in wheel_check.problems(right, less)


def test_the_folders_of_a_user_are_called_as_ours() -> None:
    links = {path.name for path in (wheel_check.ROOT / "vflens").iterdir() if path.is_symlink()}
    assert links - {"examples"} < set(wheel_check.OWN_FOLDERS)


def test_what_ci_tells_its_pytest_reaches_no_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A plug-in's pytest knows none of our options."""
    exported = re.findall(
        r"^export (PYTEST_\w+)", (wheel_check.ROOT / ".ci/run").read_text("utf-8"), re.MULTILINE
    )
    assert exported
    for name in (*exported, "PYTHONPATH"):
        monkeypatch.setenv(name, "ours")
    assert not {*exported, "PYTHONPATH"} & {*wheel_check.environment(tmp_path)}
