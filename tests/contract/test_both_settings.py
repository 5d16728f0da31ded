"""What holds in every setting: acts are applied once, others refused, and a truth does not leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import horizontal
import laboratory
import numpy as np
import pytest
from accidents import Around
from laboratory import NOISY, bits, close, estimates, fingerprint, transcripts
from nonempty import nonempty
from oneprocess import LocalFederation

from vflens.errors import AccessError, ProtocolError, StateError, VflensError
from vflens.protocol.access import Access
from vflens.protocol.acts import Act, Begin, Disclose, Finished, Guess, Step, Stop, Submission
from vflens.protocol.horizontal.access import HORIZONTAL_ACCESS
from vflens.protocol.link import Link
from vflens.protocol.vertical.access import ACCESS
from vflens.types import Array, Exchange, Phase, Role, numbered, statuses
from vflens.wire.messages import RPCS

TABLES = {"a": horizontal.table(30, 1), "b": horizontal.table(17, 2)}
NOISY_CLIENT = [{"name": "dp_gaussian", "clip": 0.5}]
SGD = {"batch_size": 30, "learning_rate": 0.1, "optimizer": "sgd"}
ROUNDS: dict[str, dict[str, Any]] = {
    "fedavg": {"horizontal": {"rounds": 2, "local_steps": 1}, "attacks": [{"name": "label_restoration"}]},
    "splitfed": {
        "horizontal": {"method": "splitfed", "rounds": 2},
        "model": {"architecture": "mlp", "width": 5, "hidden": [], "top": [4]},
        "attacks": [{"name": "sent_labels"}],
    },
}
TWO_TRUTHS = {"name": "synthetic", "rows": 150, "features": 7, "classes": 3, "informative": 4}


def _clients(home: Path, kind: str, tables: Any = TABLES, **changes: Any) -> LocalFederation:
    files = horizontal.deal(home, tables, training=SGD, **ROUNDS[kind], **changes)
    return laboratory.let_go_later(horizontal.federation(files))


@dataclass(frozen=True)
class Setting:
    """A federation of each setting, not prepared yet; who may ask whom in it."""

    noisy: Callable[[Path], LocalFederation]
    access: Access


SETTINGS = {
    "vertical": Setting(lambda home: laboratory.federation(home, defenses=NOISY), ACCESS),
    "fedavg": Setting(lambda home: _clients(home, "fedavg", defenses=NOISY_CLIENT), HORIZONTAL_ACCESS),
    "splitfed": Setting(lambda home: _clients(home, "splitfed", defenses=NOISY_CLIENT), HORIZONTAL_ACCESS),
}


@pytest.fixture(params=SETTINGS)
def setting(request: pytest.FixtureRequest) -> Setting:
    """Each setting in turn."""
    return SETTINGS[request.param]


# --- an act that is repeated is applied once


class Twice(Around):
    """Sends every act twice, and keeps the kinds that it sent."""

    kinds: set[type[Act[Any]]]

    def submit(self, act: Act[Any]) -> Any:
        first = super().submit(act)
        if isinstance(act, Stop):  # the end of the party
            return first
        second = super().submit(act)
        replies = [RPCS[type(act)].encode_reply(reply.result()) for reply in (first, second)]
        assert replies[0] == replies[1], act
        self.kinds.add(type(act))
        return second


def test_a_run_whose_acts_are_all_sent_twice_is_the_same_run(tmp_path: Path, setting: Setting) -> None:
    ends, kinds = [], set[type[Act[Any]]]()
    for name in ("once", "twice"):
        home = tmp_path / name
        local = setting.noisy(home)
        if name == "twice":
            for member in local.members():
                for peer, link in dict(member.links).items():
                    member.links[peer] = around = Twice(link)
                    around.kinds = kinds
        local.run()
        close(local)
        figures = {p: laboratory.figures(home / p) for p in local.led}
        own = {p: {k: v for k, v in f.items() if k[0] in SCORED} for p, f in figures.items()}
        ends.append((bits(local), transcripts(home), estimates(home), own))
    assert ends[0] == ends[1]
    assert kinds >= {Step, Disclose, Begin, Submission, Finished}


SCORED = {"mse", "label_accuracy", "matched_label_accuracy", "accuracy"}


# --- what is refused


def test_only_the_table_says_who_may_ask_whom(tmp_path: Path, setting: Setting) -> None:
    """Every act by every role at every party."""
    local = setting.noisy(tmp_path)
    leader: Any = local.leader
    leader.prepare()
    before, refused = fingerprint(local), 0
    parties = {member.role: member for member in local.members()}
    for act, pairs in setting.access.items():
        for caller in Role:
            for callee, party in parties.items():
                if (caller, callee) in pairs:
                    continue
                words = rf"^{caller} 'x' may not ask {callee} '.*' to {act.__name__}: (only|nobody)"
                with pytest.raises(AccessError, match=words):
                    party.perform(object.__new__(act), "x", caller)
                refused += 1
    granted = sum(callee in parties for pairs in setting.access.values() for _, callee in pairs)
    assert refused == len(setting.access) * len(Role) * len(parties) - granted
    assert fingerprint(local) == before
    close(local)


def test_nothing_is_answered_before_the_run_is_prepared(tmp_path: Path, setting: Setting) -> None:
    local = setting.noisy(tmp_path)
    for name in nonempty(local.led):
        acts: tuple[Act[Any], ...] = (
            Step(Exchange("tiny/run", Phase.TRAIN, 0, 0), np.zeros(0, np.int32), None),
            Begin("tiny/run", 1),
        )
        for act in acts:
            with pytest.raises(StateError, match="prepares"):
                local.leader.links[name].call(act)
    close(local)


def test_acts_of_another_run_or_model_have_no_effect(tmp_path: Path, setting: Setting) -> None:
    local = setting.noisy(tmp_path)
    leader: Any = local.leader
    leader.prepare()
    leader.train()
    before = fingerprint(local)
    for name in local.led:
        for run, version in (("another", 1), ("tiny/run", 2)):
            for act in (Begin(run, version), Disclose(run, version, leader.name)):
                with pytest.raises(ProtocolError, match=r"run 'another'|version 2 does not exist"):
                    leader.links[name].call(act)
    assert fingerprint(local) == before
    close(local)


# --- the scoring service is no oracle


@dataclass(frozen=True)
class Opened:
    """A federation outside lab mode that scores, the adversary's link to its target, and submissions."""

    local: LocalFederation
    target: Link
    probes: list[Submission]


def _probes(sender: str, sets: dict[str, list[Array]], **facts: Any) -> list[Submission]:
    width = facts.pop("width")
    found = []
    for scored_set, rows in sets.items():
        for sent in rows:
            for value in (0.2, 0.9, np.nan):  # the second is another guess of rows that were scored
                guess = Guess("x", np.full((len(sent), width), value), numbered(statuses(len(sent))))
                found.append(Submission("tiny/run", sender, scored_set, sent, guesses=(guess,), **facts))
    return found


def _vertical(home: Path, other: bool) -> Opened:
    local = laboratory.federation(home, lab=False, data=TWO_TRUTHS, predict_share=0.5)
    if other:  # another truth behind the same file layout
        passive = local.passive["passive"]
        passive.table = replace(passive.table, features=-passive.table.features)
    local.coordinator.prepare()
    local.coordinator.train()
    local.coordinator.open_predictions()
    rows, train = local.coordinator.aligned.predict, local.coordinator.aligned.train
    local.active.predictions.ask(rows)
    asked = [rows[:75], rows[:60], rows[:50], rows[:49], rows[1:60], train]
    probes = _probes("active", dict.fromkeys(("predict", "train", "everything"), asked), width=4)
    return Opened(local, local.active.links["passive"], probes)


def _horizontal(kind: str, home: Path, other: bool) -> Opened:
    tables = {"a": horizontal.table(80, 2 if other else 1), "b": horizontal.table(80, 3)}
    settings = {**ROUNDS[kind], "training": {**SGD, "batch_size": 60}, "attacks": []}
    files = horizontal.deal(home, tables, **settings)
    for file in files.values():
        file.write_text(
            file.read_text(encoding="utf-8").replace("lab = true", "lab = false"), encoding="utf-8"
        )
    local = laboratory.let_go_later(horizontal.federation(files))
    server = horizontal.server_of(local)
    for stage in (server.prepare, server.train, server.disclose, server.open_predictions):
        stage()
    rows = np.arange(74, dtype=np.int32)
    orders = [rows, rows[:60], rows[:49], rows[::-1].copy()]
    asked = dict.fromkeys(("train", "batches", "predict"), orders)
    probes = [
        probe
        for estimates, width in (("features", 4), ("labels", 3))
        for step in (None, 0, 5)
        for probe in _probes("server", asked, width=width, estimates=estimates, step=step)
    ]
    return Opened(local, server.links["a"], probes)


ORACLES: dict[str, tuple[Callable[[Path, bool], Opened], int]] = {
    "vertical": (_vertical, 3),  # predict: 75 and 50 rows; train: all of them
    "fedavg": (lambda home, other: _horizontal("fedavg", home, other), 2),  # a round's columns and labels
    "splitfed": (lambda home, other: _horizontal("splitfed", home, other), 4),  # those of its batches, too
}


@pytest.mark.parametrize("name", ORACLES)
def test_two_truths_give_the_adversary_identical_bytes(tmp_path: Path, name: str) -> None:
    """Through the link, over every answer of the target: receipts and refusals."""
    opened, scored = ORACLES[name]
    answers = []
    for other in (False, True):
        found = opened(tmp_path / str(other), other)
        answers.append([_answer(found.target, probe) for probe in found.probes])
        close(found.local)
    assert answers[0] == answers[1]
    refused = (b"ProtocolError", b"StateError")
    assert sum(not a.startswith(refused) for a in answers[0]) == scored
    assert sum(b"were scored before" in a for a in answers[0]) == scored  # other guesses of the same rows


def _answer(link: Link, act: Submission) -> bytes:
    """All that the caller gets: the reply's bytes, or the refusal's class and sentence."""
    try:
        reply: bytes = RPCS[Submission].encode_reply(link.call(act)).SerializeToString()
    except VflensError as error:
        return f"{type(error).__name__}: {error}".encode()
    return reply
