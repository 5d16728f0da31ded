"""Labels that are granted and estimates that are submitted: who gets which, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from labelthieves import LABELS, LINKS
from laboratory import THREE, close, federation

from vflens.errors import AccessError, ConfigError, KnowledgeError, ProtocolError, StateError, VflensError
from vflens.experiments.offline.attack import attack_recorded
from vflens.experiments.offline.score import score_estimate
from vflens.experiments.pages.report import render
from vflens.experiments.results.folders import read_party
from vflens.experiments.results.record import read_runs
from vflens.protocol.acts import Deliver, Disclose, Guess, Submission
from vflens.protocol.link import Link
from vflens.storage import journal
from vflens.types import Array, Phase, Point, numbered, statuses
from vflens.wire.messages import RPCS


def test_labels_go_only_to_whom_they_are_granted(tmp_path: Path) -> None:
    digests = []
    for name, joined in LINKS.items():
        home = tmp_path / name
        local = federation(home, parties=THREE, disclose=[{**LABELS, "to": "b"}], attacks=[])
        with joined(local):
            local.run()
        digests.append({p: journal.digest(home / p / "transcript") for p in "abc"})
        for party in "abc":
            received = [r for r in journal.read(home / party / "transcript") if r.point is Point.AUXILIARY]
            assert len(received) == (party == "b")
            for released in received:
                assert released.sender == "active"
                assert released.exchange.phase is Phase.DISCLOSE
                assert list(released.tensors or ()) == ["labels"]
                assert len(released.rows) == 20
        assert (home / "b" / "own.npz").exists()
        assert not (home / "a" / "own.npz").exists()
    assert digests[0] == digests[1]
    assert digests[0]["a"] == digests[0]["c"] != digests[0]["b"]


def test_outside_the_lab_a_thief_has_receipts_and_no_figures(tmp_path: Path) -> None:
    federation(tmp_path, lab=False, attacks=[{"name": "gradient_sign", "at": "passive"}]).run()
    assert not [m for m in read_party(tmp_path / "passive").metrics if m.name.startswith("label_")]
    (facts,) = (m for m in read_party(tmp_path / "active").metrics if m.name == "label_accuracy")
    assert (facts.value, facts.adversary, facts.rows) == (1.0, "passive", 72)
    page = render(read_runs([tmp_path]))
    assert '<section id="labels">' in page
    row = page[page.index("<td>gradient_sign</td>") :]
    assert row.startswith(
        "<td>gradient_sign</td><td>passive</td><td>active</td><td>training rows</td><td>72</td><td>1.000</td>"
    )
    (receipt,) = (e for e in _events(tmp_path / "passive") if e["event"] == "receipt")
    assert receipt.keys() & {"rows", "attacks", "label_accuracy", "errors"} == {"rows", "attacks"}


def _events(home: Path) -> list[dict[str, Any]]:
    lines = (home / "events.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def _answers(home: Path, labels_of: Callable[[Array], Array], *, lab: bool) -> list[bytes]:
    """All that a malicious passive party gets from an active one with these labels."""
    local = federation(home, lab=lab, attacks=[], disclose=[LABELS])
    table = local.active.table
    assert table.labels is not None
    local.active._file_labels = labels_of(table.labels)
    local.coordinator.prepare()
    train, link = local.coordinator.aligned.train, local.passive["passive"].links["active"]
    ungranted = np.setdiff1d(train, local.active.granted_rows("passive"))
    answers = []
    for scored_set in ("train", "predict", "everything"):
        for rows in (
            ungranted,
            ungranted[:50],
            ungranted[:49],
            ungranted[::-1],
            train,
            ungranted[1:2],
            train[:0],
        ):
            for values in (
                np.full((len(rows), 3), 0.3),
                np.eye(3)[np.zeros(len(rows), int)],
                np.ones((1, 2)),
            ):
                guess = Guess("x", values, numbered(statuses(len(values))))
                probe = Submission("tiny/run", "passive", scored_set, rows, guesses=(guess,))
                answers.append(_answer(link, probe))
    accepted = [a for a in answers if not a.startswith((b"ProtocolError", b"StateError"))]
    assert len(accepted) > 2 if lab else len(accepted) == 1
    return answers


def _answer(link: Link, probe: Submission) -> bytes:
    try:
        reply: bytes = RPCS[Submission].encode_reply(link.call(probe)).SerializeToString()
    except VflensError as error:
        return f"{type(error).__name__}: {error}".encode()
    return reply


@pytest.mark.parametrize("lab", [False, True])
def test_two_truths_give_a_thief_identical_bytes_but_in_the_lab(tmp_path: Path, lab: bool) -> None:
    """The labels of one world are those of the other, each class called by the name of the next."""
    worlds: list[Callable[[Array], Array]] = [lambda y: y, lambda y: (y + 1) % 3]
    answers = [_answers(tmp_path / str(i), world, lab=lab) for i, world in enumerate(worlds)]
    assert (answers[0] == answers[1]) == (not lab)


def test_a_thief_may_not_submit_for_another(tmp_path: Path) -> None:
    local = federation(tmp_path, parties=THREE, attacks=[])
    probe = Submission("tiny/run", "b", "train", np.zeros(0, np.int32), guesses=())
    with pytest.raises(AccessError, match="Submission in the name of 'b' came from 'a'"):
        local.passive["a"].links["active"].call(probe)


@pytest.mark.parametrize("scored_set", ["train", "predict"])
def test_a_submission_before_rows_are_aligned_is_refused(tmp_path: Path, scored_set: str) -> None:
    local = federation(tmp_path, attacks=[])
    probe = Submission("tiny/run", "passive", scored_set, np.zeros(0, np.int32), guesses=())
    with pytest.raises(
        StateError, match=r"^party 'active' has no aligned rows yet: the coordinator prepares"
    ):
        local.passive["passive"].links["active"].call(probe)


def test_a_submission_is_scored_once_per_thief(tmp_path: Path) -> None:
    local = federation(tmp_path, parties=THREE, attacks=[])
    local.coordinator.prepare()
    rows = np.sort(local.coordinator.aligned.train)
    guess = Guess("x", np.full((len(rows), 3), 0.3), numbered(statuses(len(rows))))
    for party in ("a", "b"):
        submit = local.passive[party].links["active"].call
        assert submit(Submission("tiny/run", party, "train", rows, guesses=(guess,))).rows == len(rows)
        other = replace(guess, attack="y")
        with pytest.raises(StateError, match="were scored before"):
            submit(Submission("tiny/run", party, "train", rows, guesses=(other,)))


#: What a client alone scores by: to any other target each is another name of the same rows.
OF_A_CLIENT: list[dict[str, Any]] = [
    *({"step": step} for step in (0, -3, 2**62)),
    *({"estimates": text} for text in ("labels", "features", "again")),
]


@pytest.mark.parametrize("more", OF_A_CLIENT, ids=str)
@pytest.mark.parametrize(("thief", "target"), [("passive", "active"), ("active", "passive")])
def test_the_same_rows_under_another_name_are_refused(
    tmp_path: Path, thief: str, target: str, more: dict[str, Any]
) -> None:
    """They would be scored without end, and under names of rows that no reader of figures takes."""
    local = federation(tmp_path, attacks=[])
    local.coordinator.prepare()
    rows, asked = np.sort(local.coordinator.aligned.train), local.data_parties[target]
    width = 3 if target == "active" else len(asked.table.columns)
    guess = Guess("x", np.full((len(rows), width), 0.3), numbered(statuses(len(rows))))
    honest = Submission("tiny/run", thief, "train", rows, guesses=(guess,))
    link = local.data_parties[thief].links[target]
    link.call(honest)
    with pytest.raises(ProtocolError, match=f"submission of '{thief}' with .*: only a client scores by them"):
        link.call(replace(honest, guesses=(replace(guess, attack="y"),), **more))
    figures = {m.scored_set for m in read_party(tmp_path / target).metrics}
    assert figures <= {"", "train"}


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    federation(tmp_path).run()
    with pytest.raises(KnowledgeError, match="'active' granted no labels to 'passive'"):
        attack_recorded(tmp_path / "passive", "direction_scoring", None, tmp_path / "e.npz")
    attack_recorded(tmp_path / "active", "half", None, tmp_path / "e.npz")
    with pytest.raises(
        ConfigError, match=r"e.npz estimates 'passive', and .* is that of 'active': only the target"
    ):
        score_estimate(tmp_path / "e.npz", tmp_path / "active" / "config.toml")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"attacks": [{"name": "gradient_sign"}]},
            "'gradient_sign' at active 'active' estimates labels, which this party holds itself: let it sit "
            "in a passive",
        ),
        (
            {"attacks": [{"name": "half_star", "at": "passive"}]},
            "'half_star' at passive 'passive' estimates columns: let it sit in the active party",
        ),
        ({"disclose": [{**LABELS, "to": "coordinator"}]}, "the active party grants labels, to one of"),
        (
            {"disclose": [{**LABELS, "rows": 100}]},
            "disclose labels rows = 100 at 'active': there are 72 training rows",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_training(tmp_path: Path, changes: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        federation(tmp_path, **changes).run()


def test_only_labels_of_training_rows_are_delivered_to_a_passive_party(tmp_path: Path) -> None:
    local = federation(tmp_path, disclose=[LABELS], attacks=[])
    local.coordinator.prepare()
    (labels,) = local.coordinator.links["active"].call(Disclose("tiny/run", 1, "passive"))
    values = labels.tensor("labels")
    cases = [
        (replace(labels, sender="passive"), "^auxiliary of 'passive' came from 'active': a party discloses"),
        (
            replace(labels, point=Point.PARAMETERS),
            "^parameters of 'active' with the tensors .*: labels are due$",
        ),
        (replace(labels, tensors={"labels": values[1:]}), "one for each of the 20 rows$"),
        *(
            (
                replace(labels, tensors={"labels": wrong}),
                "are no classes: whole numbers from 0 to 2 are due, one",
            )
            for wrong in (values + 3, values - 3, values + 0.5, values.astype(np.int32))
        ),
        (replace(labels, tensors={"labels": values, "more": values}), "labels are due$"),
        (replace(labels, tensors=None), "labels are due$"),
        (
            replace(labels, rows=local.coordinator.aligned.predict[:18], tensors={"labels": values[:18]}),
            "is no train row of run",
        ),
        (replace(labels, exchange=labels.exchange._replace(step=21)), "as disclosure number 21: 20 is its"),
    ]
    for released, sentence in cases:
        with pytest.raises(ProtocolError, match=sentence):
            local.coordinator.links["passive"].call(Deliver(released))
    local.coordinator.links["passive"].call(Deliver(labels))
    close(local)
