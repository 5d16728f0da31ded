"""Habits that a file keeps: a commit's subject, the papers that a citation names, one version."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]


def judged(subject: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What the commit-msg hook answers to a message with this subject."""
    message = folder / "message"
    message.write_text(f"{subject}\n\nThe why.\n", encoding="utf-8")
    return subprocess.run([ROOT / ".ci/subject", message], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "subject", ["gate: refuse repeated rows", "docs: " + "x" * 66, "Merge branch 'main'", "fixup! anything"]
)
def test_a_good_subject_passes(subject: str, tmp_path: Path) -> None:
    answer = judged(subject, tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        ("docs: " + "x" * 67, "The subject has 73 characters"),
        ("Format", "The subject 'Format' names no area"),
        ("gate: Refuse repeated rows", "names no area"),
    ],
)
def test_another_is_refused_with_the_reason(subject: str, reason: str, tmp_path: Path) -> None:
    answer = judged(subject, tmp_path)
    assert answer.returncode == 1
    assert reason in answer.stderr


def test_the_citation_names_the_four_papers() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    titles = [reference["title"] for reference in citation["references"]]
    assert len(set(titles)) == 4
    assert all(reference["authors"] for reference in citation["references"])
    assert citation["license"] == "Apache-2.0"


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.findall(r"^## (\S+)", changes, re.MULTILINE)[0]
    assert [citation, newest] == [project, project]


def test_each_release_lists_what_changed_by_kind() -> None:
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    releases = changes.split("\n## ")[1:]
    assert len(releases) >= 2
    for release in releases:
        kinds = [k for k in re.findall(r"^### (.+)$", release, re.MULTILINE) if k != "Known limits"]
        assert kinds == ["Added", "Changed", "Fixed", "Security"]
    assert not re.search(r"^[ \t]", changes, re.MULTILINE), "a change is one line: branches merge by lines"
