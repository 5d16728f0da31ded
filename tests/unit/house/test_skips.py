"""A skip that nobody allowed fails the session (`--allowed-skips`)."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
SUITE = """import pytest

def test_it():
    pytest.skip("no such thing here")
"""


@pytest.mark.parametrize(
    ("allowed", "workers", "code"),
    [
        ("test_a.py::test_it :: no such thing", "0", 0),
        ("test_a.py::* :: another reason", "0", 1),
        ("test_b.py::test_it :: no such thing", "0", 1),
        ("# nothing", "1", 1),
    ],
)
def test_an_unlisted_skip_fails(tmp_path: Path, allowed: str, workers: str, code: int) -> None:
    shutil.copy(ROOT / "conftest.py", tmp_path)
    (tmp_path / "test_a.py").write_text(SUITE, encoding="utf-8")
    (tmp_path / "allowed.txt").write_text(allowed + "\n", encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "xdist",
        "-n",
        workers,
        "--allowed-skips=allowed.txt",
    ]
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_ADDOPTS"}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # the others take longer to load than this to run
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert ("does not allow it" in done.stdout) == bool(code)
