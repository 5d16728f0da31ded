"""What ``make kills`` draws, kills and calls a failure."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator
from contextlib import nullcontext
from itertools import islice
from pathlib import Path
from typing import Any

import campaign
import pytest
from criterion import Bits
from launched import FORKS, LAUNCHER, Command, Kill, drawn
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
        assert command.found >= {"a", LAUNCHER, FORKS}
        assert not command.kill(Kill("a", True, 0.0)), "its launcher ends before it is started again"
        assert command.code() == 3
    finally:
        command.end()


class Fixed(campaign.Campaign):
    """Runs end as they are told: first the undisturbed one. The seeds in ``quick`` end before a kill."""

    quick: Container[int] = ()
    shown = "passive"

    def __init__(self, home: Path, *ends: Any) -> None:
        self._ends = iter(ends)
        super().__init__("regression", home, None)  # type: ignore[arg-type]

    def _run(self, home: Path, kills: Iterator[Kill], done: list[Kill] | None = None) -> campaign.Ended:
        (home / "tiny/run/passive").mkdir(parents=True)
        (home / "tiny/run/passive/config.toml").touch()
        self._found.add(self.shown)
        if done is not None and int(home.name.removeprefix("seed-")) not in self.quick:
            done += kills
        bits = Bits({}, {"a/transcript": next(self._ends)}, {}, {})
        return campaign.Ended({"run": bits}, 1.0)


Told = Callable[[Fixed, int], tuple[int, str]]


@pytest.fixture
def killed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Told:
    """Kills so often, from seed 1 on: how many runs failed, and what is said."""

    def kill(made: Fixed, kills: int) -> tuple[int, str]:
        monkeypatch.setattr(campaign, "prepared", lambda kind: nullcontext(made))
        return campaign.kill("regression", kills, 1), capsys.readouterr().out

    return kill


def test_other_bits_are_a_failure_that_names_the_kills(tmp_path: Path) -> None:
    made = Fixed(tmp_path, b"same", b"same", b"other")
    assert len(made.disturbed(1, 3, 1.0)) == 3
    with pytest.raises(AssertionError, match="logs differ") as failed:
        made.disturbed(2, 2, 1.0)
    assert failed.value.__notes__[0].count("passive ") == 2


def test_a_run_that_ends_before_its_first_kill_is_undisturbed_and_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: Told
) -> None:
    monkeypatch.setattr(Fixed, "quick", (1, 2, 4))
    made = Fixed(tmp_path, *6 * [b"same"])
    failures, printed = killed(made, 12)
    assert made.kills == [0, 0, 6, 0, 6]
    assert "3 undisturbed runs, 0 failures" in printed
    assert failures == 0


def test_an_undisturbed_run_has_the_same_bits_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Fixed, "quick", (1,))
    made = Fixed(tmp_path, b"same", b"other")
    with pytest.raises(AssertionError, match="logs differ") as failed:
        made.disturbed(1, 3, 1.0)
    assert failed.value.__notes__ == ["killed: nobody"]


def test_runs_without_a_kill_end_the_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: Told
) -> None:
    monkeypatch.setattr(Fixed, "quick", range(100))
    made = Fixed(tmp_path, *9 * [b"same"])
    failures, printed = killed(made, 100)
    assert made.kills == 7 * [0]
    assert printed.count("FAILED 5 runs ended before a kill\nkilled: nobody\n") == 3
    assert failures == 3


def test_a_party_whose_process_nobody_finds_is_a_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: Told
) -> None:
    monkeypatch.setattr(Fixed, "shown", "another")
    failures, printed = killed(Fixed(tmp_path, *3 * [b"same"]), 12)
    assert "FAILED regression: no process of passive was ever found\n" in printed
    assert failures == 1


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
