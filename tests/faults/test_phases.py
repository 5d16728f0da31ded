"""Real processes that are killed in each phase and started again while the others wait: the same bits."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cells import Undisturbed
from kills import ROLES
from phases import PHASES, SECONDS, dealt, judge, killed, reborn, undisturbed_run
from processes import eventually
from thinned import thinned
from world import quick

from vflens.errors import UnavailableError
from vflens.services.operator import ask_configured
from vflens.storage.json_file import json_object

FIRST = [(phase, *found[0]) for phase, (_, found) in PHASES.items()]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Undisturbed]]:
    """The run in one process in which no party is killed, by kind."""
    found: dict[str, Undisturbed] = {}

    def of(kind: str) -> Undisturbed:
        if kind not in found:
            found[kind] = undisturbed_run(tmp_path_factory.mktemp(kind), kind)
        return found[kind]

    with quick():
        yield of


@pytest.mark.parametrize("first", thinned([(0,), (1,)]))
def test_a_party_killed_in_each_phase(
    tmp_path: Path, undisturbed: Callable[[str], Undisturbed], first: int
) -> None:
    """Half of them at a time: most of their time they wait for each other."""
    killed(tmp_path, FIRST[first::2], undisturbed)


def test_a_party_killed_while_it_serves_an_operator(
    tmp_path: Path, undisturbed: Callable[[str], Undisturbed]
) -> None:
    """It answers the question as before it died; the run ends when the coordinator is stopped."""
    home = dealt(tmp_path / "serving", "lr", after="serve")
    config = home / "active/config.toml"
    with reborn([(home, "active", "Query.answered:2")]) as federation:
        eventually(lambda: _stage(home / "coordinator") == "finished", SECONDS)
        first = ask_configured(config, "0-2")
        with pytest.raises(UnavailableError):
            ask_configured(config, "0-2")
        eventually(lambda: not federation.look() and _answers(config, first), SECONDS)
        federation.processes[ROLES.index("coordinator")].send_signal(signal.SIGTERM)
        codes = dict(zip(ROLES, federation.codes(), strict=True))
    judge(home, codes, "active", undisturbed("lr"))


def _stage(folder: Path) -> str:
    return str(json_object((folder / "state.json").read_text(encoding="utf-8"))["stage"])


def _answers(config: Path, due: list[dict[str, Any]]) -> bool:
    """Whether the party is back; its answer is then ``due``."""
    try:
        found = ask_configured(config, "0-2")
    except UnavailableError:
        return False
    assert found == due
    return True
