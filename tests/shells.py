"""Instead of ``vflens serve``: a party's process is the shell script ``script`` beside its configuration."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from vflens.services.forking.forks import Forks


def main() -> None:
    """Be the script; its arguments are the command's."""
    script = Path(sys.argv[sys.argv.index("--config") + 1]).with_name("script")
    os.execvp("sh", ["sh", str(script), *sys.argv])


def shells() -> Forks:
    """Starts such parties."""
    return Forks(entry="shells", environment={"PYTHONPATH": str(Path(__file__).parent)})


def scripted(home: Path, **scripts: str) -> dict[str, Path]:
    """The configurations, below ``home``, of parties that are these scripts."""
    for party, script in scripts.items():
        (home / party).mkdir(parents=True)
        (home / party / "script").write_text(script, encoding="utf-8")
    return {party: home / party / "config.toml" for party in scripts}
