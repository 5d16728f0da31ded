"""The guards of a training step, at every party that takes one: whatever it sends, they are the same."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import horizontal
import laboratory
import numpy as np
import pytest
from accidents import Recorder
from laboratory import NOTHING, close, fingerprint, same
from oneprocess import LocalFederation

from vflens.clients.horizontal.client import Client
from vflens.clients.vertical.active import ActiveParty
from vflens.clients.vertical.passive import PassiveParty
from vflens.errors import ProtocolError, StateError
from vflens.protocol.acts import Begin, Step
from vflens.types import Exchange, Phase, Released

TABLES = {"a": horizontal.table(30, 1), "b": horizontal.table(17, 2)}
NETWORK = {"architecture": "mlp", "width": 5, "hidden": [6], "top": [4]}
BATCHES = {"training": {"batch_size": 8, "learning_rate": 0.01}}
SPLIT = {"model": NETWORK, **BATCHES, "horizontal": {"method": "splitfed", "rounds": 2}}
#: Who takes the steps, and the settings of its horizontal federation, if that is one.
PARTIES: dict[str, tuple[str, dict[str, Any] | None]] = {
    "passive": ("passive", None),
    "active": ("active", None),
    "client": ("a", {"horizontal": {"rounds": 2}}),
    "client of a split network": ("a", SPLIT),
}


class Trained(NamedTuple):
    """A federation after its last step, one of its parties, and the steps that it answered."""

    local: LocalFederation
    party: PassiveParty | ActiveParty | Client
    answered: list[tuple[Step, Released | None]]

    @property
    def answer(self) -> tuple[Step, Released]:
        """The last step that it answered with a release."""
        return [(act, released) for act, released in self.answered if released is not None][-1]


@pytest.fixture(params=PARTIES)
def trained(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Trained]:
    name, settings = PARTIES[request.param]
    if settings is None:
        local = laboratory.federation(tmp_path, defenses=laboratory.NOISY)
        leader: Any = local.coordinator
    else:
        local = horizontal.federation(horizontal.deal(tmp_path, TABLES, **settings))
        leader = horizontal.server_of(local)
    leader.prepare()
    leader.links[name] = recorder = Recorder(leader.links[name])
    leader.train()
    party = local.parties[name]
    assert isinstance(party, PassiveParty | ActiveParty | Client)
    answered = [(act, reply.released) for act, reply in recorder.seen if isinstance(act, Step)]
    yield Trained(local, party, answered)
    close(local)


def test_a_step_that_is_repeated_has_one_answer_and_is_learned_once(trained: Trained) -> None:
    (act, released), before = trained.answer, fingerprint(trained.local)
    again = trained.party.step(act).released
    assert again is not None
    assert same(again, released)
    assert fingerprint(trained.local) == before


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"run": "other"}, "^an exchange of run 'other' reached run 'tiny/run': send it to its own run$"),
        ({"phase": Phase.PREDICT, "round": 1}, "^an exchange of phase 'predict' instead of 'train'$"),
        ({"round": 7}, r"^step \d+ claims epoch 7: it belongs to epoch \d, number it so$"),
    ],
    ids=["run", "phase", "epoch"],
)
def test_a_step_of_another_exchange_is_refused(trained: Trained, changes: dict[str, Any], words: str) -> None:
    (act, _), before = trained.answer, fingerprint(trained.local)
    with pytest.raises(ProtocolError, match=words):
        trained.party.step(replace(act, exchange=act.exchange._replace(**changes)))
    assert fingerprint(trained.local) == before


def test_a_step_before_the_last_is_refused(trained: Trained) -> None:
    """Its answer is no longer kept, and another one would have another model or other noise."""
    act, before = trained.answered[0][0], fingerprint(trained.local)
    with pytest.raises(StateError, match=rf"^(step|round) {act.exchange.step} (of run 'tiny/run' )?is over"):
        trained.party.step(act)
    assert fingerprint(trained.local) == before


def test_no_new_step_is_taken_once_predictions_are_open(trained: Trained) -> None:
    """Steps that early stopping or an absence left would change a model that already answers."""
    local, party, answered = trained
    agreed = party.run.federation
    party.begin(Begin("tiny/run", 1))
    before, last = fingerprint(local), Exchange("tiny/run", Phase.TRAIN, agreed.epochs, agreed.steps)
    rows = NOTHING if isinstance(party, Client) else agreed.rows_of(party.name, Phase.TRAIN)[:4]
    words = f"^step {agreed.steps} after the end of training: the coordinator opened predictions, go on"
    with pytest.raises(StateError, match=words):
        party.step(Step(last, np.asarray(rows), answered[-1][0].received))
    act, released = trained.answer
    again = party.step(act).released
    assert again is not None
    assert same(again, released)
    assert fingerprint(local) == before
