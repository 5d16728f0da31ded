"""A party that rejoins: what it may have lost, and what not."""

from __future__ import annotations

import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from laboratory import deal, experiment

from vflens.config import MetricsPage, load_party
from vflens.errors import ConfigError, StateError, StorageError, UnavailableError
from vflens.member.patience import patiently
from vflens.member.standing import check_data_party, check_leader
from vflens.protocol.standing import Standing
from vflens.services.folder import begin

RUN = Standing("1", 0, "open", 9, released=40, federation=bytes(32))
CHANGED = [
    (
        {"version": "2"},
        r"came back with another version of vflens \(2, here 1\): resume every party with the one that began",
    ),
    ({"federation": b"\1" * 32}, "came back with another run's folder: start it with the folder as it was"),
    ({"federation": b""}, "has begun anew: start it with --resume, on the run's folder"),
    ({"learned": 8}, "came back older than it was, with 9 training steps where 10 are due: start it with"),
    ({"released": 39}, "came back older than it was, with 39 released rows where 40 are due: start it with"),
    ({"stage": "training"}, "came back older than it was, with 0 stages where 1 are due: start it with the"),
]


@pytest.mark.parametrize(("changed", "sentence"), CHANGED)
def test_a_data_party_that_lost_what_it_had_is_refused(changed: Any, sentence: str) -> None:
    check_data_party("p", RUN, RUN, 9)
    with pytest.raises(StateError, match=f"^party 'p' {sentence}"):
        check_data_party("p", RUN, replace(RUN, **changed), 9)


def test_before_anything_was_agreed_a_data_party_may_begin_anew() -> None:
    check_data_party("p", replace(RUN, federation=b""), replace(RUN, federation=b"", learned=-1), 9)


@pytest.mark.parametrize(
    "changed", [{"version": "2"}, {"federation": b"\1" * 32}, {"learned": 7}, {"stage": "training"}]
)
def test_a_coordinator_that_lost_what_it_had_is_refused(changed: Any) -> None:
    check_leader("c", RUN, replace(RUN, learned=8), learns=True)
    with pytest.raises(StateError, match=r"^party 'c' came back"):
        check_leader("c", RUN, replace(RUN, **changed), learns=True)


def test_a_coordinator_of_direct_steps_learns_none() -> None:
    check_leader("c", RUN, replace(RUN, learned=-1), learns=False)


def test_a_request_is_repeated_until_its_party_is_back() -> None:
    left = [UnavailableError("away"), UnavailableError("away")]

    def work() -> str:
        if left:
            raise left.pop()
        return "answer"

    assert patiently(work, 30, threading.Event()) == "answer"


@pytest.mark.parametrize("seconds", [0, 30])
def test_a_wait_ends_with_its_time_or_its_run(seconds: float) -> None:
    tries, ended = [], threading.Event()

    def work() -> None:
        tries.append(1)
        raise UnavailableError("away")

    if seconds:
        ended.set()
    with pytest.raises(UnavailableError, match=r"^away$"):
        patiently(work, seconds, ended)
    assert len(tries) == 1


def test_a_folder_is_resumed_with_its_own_settings_only(tmp_path: Path) -> None:
    config = load_party(deal(experiment(tmp_path), tmp_path)["passive"])
    again = config.model_copy(update={"resume": True})
    assert not begin(again), "there is no run yet"
    assert begin(again)
    limits = config.limits.model_copy(update={"rejoin_seconds": 9.0, "durable": "machine"})
    places = {"address": "127.0.0.1:7", "limits": limits, "metrics": MetricsPage(port=9464)}
    for name, value in places.items():
        assert begin(again.model_copy(update={name: value}))
    for changed in ({"seed": "another"}, {"run": "tiny/other"}, {"lab": False}):
        name = next(iter(changed))
        with pytest.raises(
            ConfigError, match=f"^{name} of party 'passive' is not that of the run in .*: bring"
        ):
            begin(again.model_copy(update=changed))
    (config.out / "settings.json").write_text("[")
    with pytest.raises(StorageError, match=r"settings\.json does not say which settings the run has"):
        begin(again)
    assert not begin(config)
    assert (config.out / "earlier-1" / "settings.json").exists()
