"""An experiment run: deal, start the parties, wait, report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from experiments.config import Experiment, Scenario
from experiments.dealer import deal_tables, write_parties
from experiments.launch import Processes
from experiments.local import LocalFederation
from experiments.report import write_report

Tell = Callable[[str, dict[str, Any]], None]


@dataclass(frozen=True)
class Run:
    """What an experiment left: one folder per scenario, and the report over all of them."""

    folder: Path
    scenarios: tuple[Path, ...]
    report: Path


def run(
    experiment: Experiment, *, in_process: bool = False, tell: Tell = lambda scenario, event: None
) -> Run:
    """Run every scenario of ``experiment`` and write ``report.html``.

    Args:
        experiment: what to run.
        in_process: keep all parties in this process: quick, and no isolation (the report says so).
        tell: given the scenario and each event that a party logs: progress, receipts.

    Raises:
        VflensError: what went wrong, in the party where it did. Scenarios already run stay, reported.
    """
    folder = fresh_folder(experiment.out / experiment.name)
    tables = deal_tables(experiment)
    scenarios: list[Path] = []
    try:
        for scenario in experiment.scenarios:
            home = folder / scenario.name.replace(" ", "-")
            configs = write_parties(experiment, scenario, tables, home)
            scenarios.append(home)
            _run_one(experiment, scenario, configs, in_process, tell)
    finally:
        report = write_report(scenarios, folder / "report.html") if scenarios else folder / "report.html"
    return Run(folder, tuple(scenarios), report)


def fresh_folder(folder: Path) -> Path:
    """``folder``, or ``folder-2``, ``folder-3``, … if it holds something."""
    found, number = folder, 1
    while found.exists() and any(found.iterdir()):
        number += 1
        found = folder.with_name(f"{folder.name}-{number}")
    return found


def _run_one(
    experiment: Experiment, scenario: Scenario, configs: dict[str, Path], in_process: bool, tell: Tell
) -> None:
    if not in_process:
        roles = {party: role.value for party, role in experiment.roles().items()}
        with Processes(configs, roles) as processes:
            processes.wait(lambda event: tell(scenario.name, event))
        return

    def progress(stage: str, done: int, total: int) -> None:
        tell(scenario.name, {"event": "progress", "stage": stage, "done": done, "total": total})

    with threadpool_limits(1):  # the same bits as processes with one numeric thread each
        LocalFederation(configs, progress).run()
