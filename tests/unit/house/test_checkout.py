"""What a checkout and its source distribution hold."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
LINKS = ("attacks", "clients", "coordinator", "defenses", "examples", "protos", "services")


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is no git checkout")
def test_the_source_distribution_has_all_that_git_has() -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    tops = {line.partition("/")[0] for line in listed.stdout.splitlines()}
    manifest = (ROOT / "MANIFEST.in").read_text(encoding="utf-8")
    named = {name for line in manifest.splitlines() if not line.startswith("#") for name in line.split()[1:]}
    without = {"MANIFEST.in", "README.md", "pyproject.toml", "vflens"}  # setuptools adds these itself
    assert {top for top in tops if not top.startswith(".")} - named == without


@pytest.mark.parametrize("linked", [True, False])
def test_make_refuses_a_checkout_without_links(tmp_path: Path, linked: bool) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for link in LINKS:
        (tmp_path / "vflens" / link).mkdir(parents=True)
    if not linked:
        (tmp_path / "vflens/attacks").rmdir()
        (tmp_path / "vflens/attacks").write_text("../attacks", encoding="utf-8")
    made = subprocess.run(["make", "help"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (made.returncode == 0) is linked
    assert linked or "links as plain files, or not at all: vflens/attacks. Run: git config" in made.stderr


def test_make_links_undoes_the_copies_of_a_source_distribution(tmp_path: Path) -> None:
    shutil.copy(ROOT / "Makefile", tmp_path)
    for copied in LINKS:
        for folder in (tmp_path / copied, tmp_path / "vflens" / copied):
            folder.mkdir(parents=True)
            (folder / "__init__.py").touch()
    (tmp_path / "attacks/__init__.py").write_text("1", encoding="utf-8")
    subprocess.run(["make", "links"], cwd=tmp_path, capture_output=True, check=True)
    found = {link: (tmp_path / "vflens" / link).readlink() for link in LINKS}
    assert found == {link: Path("..", link) for link in LINKS}
    assert (tmp_path / "vflens/attacks/__init__.py").read_text(encoding="utf-8") == "1"
