"""Where the results of a run are, in words for the terminal."""

from __future__ import annotations

from pathlib import Path

from vflens.config import PartyConfig


def where(config: PartyConfig) -> str:
    """The run folder and the command that reports it, with the other parties' folders beside it."""
    beside = [f for f in config.out.parent.glob("*/config.toml") if f.parent != config.out]
    shown = config.out.parent if beside else config.out
    return (
        f"results are in {_short(config.out)}; see them with: vflens report {_short(shown)} --out report.html"
    )


def _short(folder: Path) -> Path:
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
