"""Run an experiment: deal, start the parties, wait, report."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from vflens.config import PartyConfig, load_party
from vflens.errors import StorageError, VflensError
from vflens.experiments.run.afterwards import add_afterwards
from vflens.experiments.run.any_experiment import AnyPartiesExperiment, Scenario
from vflens.experiments.run.dealer import deal_tables, draw_root, remove_sockets, write_parties
from vflens.experiments.run.early import refuse_early
from vflens.experiments.run.processes import Processes, prepared, shares
from vflens.services.forking.forks import Forks
from vflens.storage.private import owner_only
from vflens.types import Document, Progress
from vflens.wire.process import give_back

if TYPE_CHECKING:
    from vflens.experiments.results.record import RecordedRun

Tell = Callable[[str, Document], None]


@dataclass(frozen=True)
class RunOutput:
    """The output of an experiment: one folder per scenario, the report on all of them, and their records."""

    folder: Path
    scenarios: tuple[Path, ...]
    report: Path
    runs: tuple[RecordedRun, ...]


def run(
    experiment: AnyPartiesExperiment, *, in_process: bool = False, tell: Tell = lambda scenario, event: None
) -> RunOutput:
    """Run every scenario of ``experiment`` and write ``report.html``; all are dealt before the first begins.

    Args:
        experiment: what to run.
        in_process: keep all parties in this process: quick, and no isolation (the report says so).
        tell: called with the scenario and each event: "started" with the experiment's folder, those that
            parties log, "finished".

    Raises:
        VflensError: the error of the party that failed. Earlier scenarios stay, with a report.
    """
    scenarios = list[Path]()
    try:
        scenarios.extend(begun(experiment, in_process=in_process, tell=tell))
    except BaseException:
        if scenarios:
            with suppress(VflensError):  # the run's error matters more than the report's
                reported(scenarios[0].parent, scenarios)
        raise
    return reported(scenarios[0].parent, scenarios)


def begun(
    experiment: AnyPartiesExperiment, *, in_process: bool = False, tell: Tell = lambda scenario, event: None
) -> Generator[Path, None, None]:
    """The folder of each scenario of ``experiment``, which runs once the next one is asked for; no report.

    Arguments and errors are those of :func:`run`.
    """
    forked = nullcontext() if in_process else prepared([experiment.model])
    with forked as forks:  # it loads while tables are dealt
        yield from _begun(experiment, forks, tell)


def _begun(experiment: AnyPartiesExperiment, forks: Forks | None, tell: Tell) -> Generator[Path, None, None]:
    tables, root = deal_tables(experiment), draw_root(experiment)
    shared = _shared(experiment) if forks else ()
    refuse_early(experiment, tables)
    folder = fresh_folder(experiment.out / experiment.name)
    homes = [folder / scenario.name.replace(" ", "-") for scenario in experiment.scenarios]
    dealt = list[dict[str, Path]]()
    try:
        for home in homes:
            home.mkdir(mode=0o700)  # all before one is dealt: resume sees whether all were
        for scenario, home in zip(experiment.scenarios, homes, strict=True):
            dealt.append(write_parties(experiment, scenario, tables, home, root, shared=shared))
        tables.clear()  # each party has its own file
        give_back()
        for scenario, home, configs in zip(experiment.scenarios, homes, dealt, strict=True):
            yield home
            tell(scenario.name, {"event": "started", "folder": str(folder)})
            _run_one(experiment, scenario, configs, forks, tell)
            tell(scenario.name, {"event": "finished"})
    finally:
        for configs in dealt:
            remove_sockets(configs)


def reported(folder: Path, homes: Sequence[Path]) -> RunOutput:
    """The output of the runs in ``homes``, with their report, which is written into ``folder``.

    Raises:
        VflensError: a file is damaged, or the report cannot be written.
    """
    from vflens.experiments.pages.report import write_report  # loads much, so after the run
    from vflens.experiments.results.record import read_runs

    runs = read_runs(homes)
    return RunOutput(folder, tuple(homes), write_report(homes, folder / "report.html", runs), runs)


def fresh_folder(folder: Path) -> Path:
    """Make ``folder``, or ``folder-2``, ``folder-3``, … if it exists, for its owner alone: two runs never
    share one.

    Raises:
        StorageError: it cannot be made.
    """
    found, number = folder, 1
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        while True:
            with suppress(FileExistsError):
                found.mkdir(mode=0o700)
                return found
            number += 1
            found = folder.with_name(f"{folder.name}-{number}")
    except OSError as error:
        raise StorageError(f"{found} cannot be made ({error.strerror}): choose another `out`") from error


def _run_one(
    experiment: AnyPartiesExperiment,
    scenario: Scenario,
    configs: dict[str, Path],
    forks: Forks | None,
    tell: Tell,
) -> None:
    def progress(stage: str, done: int, total: int) -> None:
        tell(scenario.name, {"event": "progress", "stage": stage, "done": done, "total": total})

    if forks:
        roles, shared = _roles(experiment), _shared(experiment)
        with Processes(configs, roles, forks, shared, restart=experiment.restart) as processes:
            processes.wait(lambda event: tell(scenario.name, event))
        if experiment.seated() or experiment.training.is_protected:
            add_afterwards(configs, progress)
    else:
        loaded = {party: load_party(file) for party, file in configs.items()}
        _run_here(loaded, progress)
        add_afterwards(configs, progress, loaded)


def _roles(experiment: AnyPartiesExperiment) -> dict[str, str]:
    return {party: role.value for party, role in experiment.roles().items()}


def _shared(experiment: AnyPartiesExperiment) -> list[list[str]]:
    """The parties of each process."""
    return shares(_roles(experiment), experiment.processes)


def _run_here(configs: dict[str, PartyConfig], progress: Progress) -> None:
    from threadpoolctl import threadpool_limits

    from vflens.experiments.run.in_process import LocalFederation  # the code of every party

    with owner_only(), threadpool_limits(1):  # one numeric thread, for the same bits as in processes
        LocalFederation(configs, progress).run()
