"""The console lines that run against the wheel are those of the pages, and what is left out is named."""

from __future__ import annotations

import re

import wheel_check


def test_what_is_left_out_stands_on_a_page() -> None:
    assert set(wheel_check.LEFT_OUT) <= set(wheel_check.lines())
    assert all(wheel_check.LEFT_OUT.values())


def test_every_other_line_runs_vflens_or_installs_a_plugin() -> None:
    kept = [line for line in wheel_check.lines() if line not in wheel_check.LEFT_OUT]
    assert len(kept) > 15
    for line in kept:
        commands = wheel_check.commands(line)
        assert commands, line
        assert all(re.match("vflens |pip install --editable ", command) for command in commands), line


def test_make_stands_for_its_recipe() -> None:
    assert wheel_check.commands("make demo") == ["vflens demo"]
    assert wheel_check.commands("make nothing") == []


def test_parties_that_serve_are_asked_and_then_reported() -> None:
    """In the order of the page: all parties, a question while they serve, the report of what they wrote."""
    lines = wheel_check.lines()
    serve = [i for i, line in enumerate(lines) if line.startswith("vflens serve ")]
    first, after = serve[0], serve[-1] + 1
    assert serve == list(range(first, after))
    assert [line.split()[1] for line in lines[after : after + 2]] == ["predict", "report"]


def test_a_wheel_adds_one_package_and_the_sdist_builds_the_same() -> None:
    right = dict.fromkeys(("vflens/__init__.py", "vflens/py.typed", "vflens-0.2.0.dist-info/METADATA"), b"1")
    assert wheel_check.problems(right, {**right}) == ""
    assert "it adds attacks, vflens: " in wheel_check.problems({**right, "attacks/zero.py": b""}, right)
    assert "another: vflens/__init__.py" in wheel_check.problems(right, {**right, "vflens/__init__.py": b"2"})
    less = {name: text for name, text in right.items() if name != "vflens/__init__.py"}
    assert "another: vflens/__init__.py" in wheel_check.problems(right, less)


def test_the_folders_of_a_user_are_called_as_ours() -> None:
    links = {path.name for path in (wheel_check.ROOT / "vflens").iterdir() if path.is_symlink()}
    assert links - {"examples"} < set(wheel_check.OWN_FOLDERS)
