"""Go on with launched runs that were interrupted, and write their report."""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path

from vflens.config import LeaderConfig, load_party
from vflens.errors import ConfigError
from vflens.experiments.run.afterwards import add_afterwards, is_left
from vflens.experiments.run.dealer import make_sockets, remove_sockets
from vflens.experiments.run.processes import Event, Processes, prepared
from vflens.experiments.run.run import RunOutput, Tell, reported
from vflens.services.folder import is_held, state_of


def resume(folder: Path, *, restart: int = 0, tell: Tell = lambda scenario, event: None) -> RunOutput:
    """Resume every run below ``folder`` that is not finished, and begin those that had not begun.

    Args:
        folder: of an experiment, or of one of its scenarios.
        restart: how often each party is started again after it was killed or crashed.
        tell: called with the scenario and each event.

    Raises:
        ConfigError: it holds no unfinished run, one whose parties still run, or an experiment that was not
            dealt whole.
        VflensError: the error of the party that failed.
    """
    folder = folder.resolve()  # "." has no name
    homes = _homes(folder)
    unfinished = [home for home in homes if _is_unfinished(home)]
    if not unfinished:
        raise ConfigError(f"{folder} holds no unfinished run: give the folder of a run that was interrupted")
    _check_dealt(folder, homes)
    for home in unfinished:
        _check_idle(home)
    loaded = {file: load_party(file) for home in unfinished for file in _files(home).values()}
    leaders = [config for config in loaded.values() if isinstance(config, LeaderConfig)]
    with prepared([leader.model for leader in leaders]) as forks:
        for home in unfinished:
            configs = _files(home)
            roles = {party: loaded[file].role.value for party, file in configs.items()}
            tell(home.name, {"event": "started"})
            if not _have_ended(home):
                shared = _sharing({party: loaded[file].address for party, file in configs.items()})
                begin = partial(Processes, configs, roles, forks, shared=shared, restart=restart, resume=True)
                _wait_for(home, configs, begin, partial(tell, home.name))
            add_afterwards(configs, lambda stage, done, total: None)
            tell(home.name, {"event": "finished"})
    return reported(folder, homes)


def _sharing(addresses: Mapping[str, str]) -> list[list[str]] | None:
    """The parties of each address, who share a process; None where each has one of its own."""
    groups = dict[str, list[str]]()
    for party, address in addresses.items():
        groups.setdefault(address, []).append(party)
    return [*groups.values()] if len(groups) < len(addresses) else None


def _wait_for(home: Path, configs: Mapping[str, Path], begin: Callable[[], Processes], tell: Event) -> None:
    """Start the parties of ``configs`` in ``home``, and wait until all have ended."""
    make_sockets(configs)  # the end of the interrupted command removed them
    try:
        with begin() as processes:
            processes.wait(tell)
    finally:
        if not _held(home):  # else another command's parties, started meanwhile, listen there
            remove_sockets(configs)


def _homes(folder: Path) -> list[Path]:
    """The folders of runs in ``folder``, itself or below; a party's, which can hold earlier runs, is none."""
    files = [*folder.glob("*/config.toml"), *folder.glob("*/*/config.toml")]
    homes = {file.parent.parent for file in files}
    return sorted(home for home in homes if not (home / "config.toml").exists())


def _check_dealt(folder: Path, homes: Iterable[Path]) -> None:
    """Refuse an experiment that was interrupted before its first party started."""
    empty = [f for f in folder.iterdir() if f.is_dir() and not any(f.iterdir())]
    cut = [h for h in homes if not all((f / "config.toml").exists() for f in h.iterdir() if f.is_dir())]
    if not_dealt := sorted([*empty, *cut]):
        raise ConfigError(
            f"{not_dealt[0]} was not dealt whole, and no party of {folder} began: begin anew with vflens run"
        )


def _held(home: Path) -> list[str]:
    """The parties below ``home`` that a process serves."""
    return sorted(f.parent.name for f in home.glob("*/config.toml") if is_held(f.parent))


def _check_idle(home: Path) -> None:
    """Refuse to start a party twice."""
    if held := _held(home):
        raise ConfigError(
            f"{home} is in use by processes of {', '.join(held)}: wait for their end, or stop them"
        )


def _is_unfinished(home: Path) -> bool:
    """Whether a party of the run has not finished, or lacks what a lab adds afterwards."""
    return not _have_ended(home) or is_left(_files(home))


def _have_ended(home: Path) -> bool:
    """Whether all parties have finished; one that has may be needed by another, or ends at once."""
    return all(state_of(file.parent) == "finished" for file in _files(home).values())


def _files(home: Path) -> dict[str, Path]:
    """The configurations of all parties of the run, by party."""
    return {file.parent.name: file for file in sorted(home.glob("*/config.toml"))}
