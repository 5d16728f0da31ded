"""The results of a run, in words for the terminal."""

from __future__ import annotations

from pathlib import Path

from vflens.clients.active import ActiveParty
from vflens.config import PartyConfig
from vflens.coordinator.coordinator import Coordinator


def of_coordinator(coordinator: Coordinator) -> str:
    """Steps, seconds and released rows."""
    figure = coordinator.metrics.last
    return (
        f"the run is complete: {figure('steps') or 0:.0f} training steps in "
        f"{figure('train_seconds') or 0:.1f} s, scores of {figure('predict_rows') or 0:.0f} rows released; "
        "the folder of each target has what leaked "
        f"({', '.join(p.name for p in coordinator.aligned.passive)})"
    )


def of_active(party: ActiveParty) -> str:
    """Accuracy of the predictions, and the attacks."""
    figure = party.metrics.last
    return (
        f"predicted {len(party.run.federation.predict)} rows with accuracy {figure('accuracy') or 0:.3f} "
        f"({figure('accuracy_alone') or 0:.3f} alone); attacks run: "
        f"{', '.join(party.adversary.attacks) or 'none'}"
    )


def where(config: PartyConfig) -> str:
    """The run folder and the command that reports it, with the other parties' folders beside it."""
    beside = [f for f in config.out.parent.glob("*/config.toml") if f.parent != config.out]
    shown = config.out.parent if beside else config.out
    return (
        f"results are in {_short(config.out)}; see them with: vflens report {_short(shown)} --out report.html"
    )


def _short(folder: Path) -> Path:
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder
