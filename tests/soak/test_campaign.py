"""What ``make kills`` draws, kills and calls a failure."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import campaign
import pytest
from criterion import Bits
from launched import Command, Kill, drawn
from shells import shells

from vflens.services.folder import write_status
from vflens.services.forking.forks import Forks


def test_kills_follow_from_their_seed() -> None:
    first, again, other = (list(islice(drawn(["a", "b"], seed, 8.0), 50)) for seed in (1, 1, 2))
    assert first == again != other
    assert {kill.who for kill in first} == {"a", "b"}
    assert {kill.early for kill in first} == {True, False}
    assert max(kill.seconds for kill in first) < 4.0


@pytest.fixture
def forks() -> Iterator[Forks]:
    with shells() as forks:
        yield forks


def tree(forks: Forks, home: Path) -> Command:
    """A launcher in a shell, whose child forks a process with a party's output."""
    (home / "a").mkdir()
    party = f"bash -c 'sleep 600; :' > {home}/a/output.log"
    (home / "script").write_text(f'bash -c "({party}) & wait"; exit 3')
    return Command(forks, ["run", "--config", str(home / "config.toml")], home / "said")


def test_a_party_is_found_and_killed_and_nobody_is_left(forks: Forks, tmp_path: Path) -> None:
    command = tree(forks, tmp_path)
    try:
        assert command.kill(Kill("a", True, 0.0))
        assert not command.kill(Kill("a", True, 0.0)), "its launcher ends before it is started again"
        assert command.code() == 3
    finally:
        command.end()


class Fixed(campaign.Campaign):
    """Runs end as they are told: first the undisturbed one."""

    def __init__(self, home: Path, *ends: Any) -> None:
        self._ends = iter(ends)
        super().__init__("regression", home, None)  # type: ignore[arg-type]

    def _run(self, home: Path, kills: Iterator[Kill], done: list[Kill] | None = None) -> campaign.Ended:
        (home / "tiny/run/passive").mkdir(parents=True)
        (home / "tiny/run/passive/config.toml").touch()
        if done is not None:
            done += kills
        bits = Bits({}, {"a/transcript": next(self._ends)}, {}, {})
        return campaign.Ended({"run": bits}, 1.0)


def test_other_bits_are_a_failure_that_names_the_kills(tmp_path: Path) -> None:
    made = Fixed(tmp_path, b"same", b"same", b"other")
    assert len(made.disturbed(1, 3, 1.0)) == 3
    with pytest.raises(AssertionError, match="logs differ") as failed:
        made.disturbed(2, 2, 1.0)
    assert failed.value.__notes__[0].count("passive ") == 2


def test_a_run_is_complete_when_all_parties_of_all_scenarios_finished(tmp_path: Path) -> None:
    parties = [tmp_path / scenario / party for scenario in ("run", "again") for party in "ab"]
    assert not campaign.complete(tmp_path)
    for party in parties:
        party.mkdir(parents=True)
        (party / "config.toml").touch()
    for party in parties:
        assert not campaign.complete(tmp_path)
        write_status(party, "finished")
    assert campaign.complete(tmp_path)
    (tmp_path / "not dealt").mkdir()
    assert not campaign.complete(tmp_path)
