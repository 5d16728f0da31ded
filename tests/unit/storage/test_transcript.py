"""What a party received is recorded on arrival, once per exchange."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from laboratory import payload, same
from nonempty import nonempty

from vflens.errors import KnowledgeError, StorageError
from vflens.plugins.views.vertical import AdversaryView
from vflens.storage import index, journal
from vflens.storage.journal import Messages
from vflens.storage.transcript import Transcript
from vflens.types import Exchange, Knowledge, PartyInfo, Phase, Point, Released, Role

ONE = {"x": np.ones(1)}


def test_payloads_come_back_in_order_of_arrival(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path)
    for step, sender in ((2, "b"), (2, "a"), (5, "a"), (3, "b")):
        assert transcript.record(payload(ONE, sender=sender, step=step))
    assert [(r.exchange.step, r.sender) for r in transcript] == [(2, "b"), (2, "a"), (5, "a"), (3, "b")]
    transcript.close()


def test_a_training_exchange_is_recorded_once_and_never_out_of_order(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path)
    outcomes = [transcript.record(payload({"x": np.full(1, s)}, step=int(s))) for s in (0, 1, 1, 0, 2, 1)]
    assert outcomes == [True, True, False, False, True, False]
    assert [r.tensor("x")[0] for r in transcript] == [0, 1, 2]
    transcript.close()


def test_senders_and_points_are_told_apart(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path)
    for sender in ("a", "b"):
        for point in (Point.EMBEDDING, Point.GRADIENT):
            assert transcript.record(payload(ONE, sender=sender, point=point))
            assert not transcript.record(payload(ONE, sender=sender, point=point))
    assert len(list(transcript)) == 4
    transcript.close()


def test_predictions_and_disclosures_are_known_one_by_one(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path)
    for phase in (Phase.PREDICT, Phase.DISCLOSE):
        steps = (4, 2, 4, 2, 3)
        assert [transcript.record(payload(ONE, phase=phase, step=s)) for s in steps] == [
            True, True, False, False, True,
        ]  # fmt: skip
    version_two = Released(
        "passive", Exchange("run", Phase.PREDICT, 2, 4), Point.EMBEDDING, np.zeros(0, np.int32), tensors=ONE
    )
    assert transcript.record(version_two)
    transcript.close()


def test_a_reopened_transcript_still_knows_and_counts_what_it_recorded(tmp_path: Path) -> None:
    entries = [payload(ONE, step=0), payload(ONE, step=1), payload(ONE, phase=Phase.PREDICT, step=0)]
    transcript = Transcript(tmp_path)
    for entry in entries:
        transcript.record(entry)
    transcript.close()
    before = (transcript.received, transcript.nbytes)
    assert before == (3, 3 * 8)
    again = Transcript(tmp_path)
    assert [again.record(entry) for entry in entries] == [False, False, False]
    assert (again.received, again.nbytes) == before
    assert again.record(payload(ONE, step=2))
    assert len(list(again)) == 4
    again.close()


# --- finding messages by kind


def _mixed(steps: int, seed: int) -> Iterator[Released]:
    """Messages of all points and phases from two senders, in no order."""
    rng = np.random.default_rng(seed)
    for step in range(steps):
        phase, point = list(Phase)[rng.integers(3)], list(Point)[rng.integers(len(Point))]
        yield payload({"x": rng.random(2)}, sender="ab"[rng.integers(2)], point=point, phase=phase, step=step)


@pytest.mark.parametrize("in_memory", [False, True])
def test_messages_are_selected_in_order_of_arrival_while_more_arrive(tmp_path: Path, in_memory: bool) -> None:
    transcript = Transcript(tmp_path)
    arrived: list[Released] = []
    for message in nonempty(_mixed(120, seed=0)):
        assert transcript.record(message)
        arrived.append(message)
        if len(arrived) % 40:
            continue
        log = Messages(arrived) if in_memory else transcript
        for points, phases, sender in (
            ([Point.SCORES], set(Phase), None),
            ([Point.SCORES, Point.EMBEDDING], {Phase.PREDICT, Phase.TRAIN}, None),
            (list(Point), {Phase.DISCLOSE}, "b"),
            ([Point.MOMENTS], set(), "a"),
        ):
            wanted = [
                r
                for r in arrived
                if r.point in points and r.exchange.phase in phases and sender in (None, r.sender)
            ]
            found = list(log.select(*points, phases=phases, sender=sender))
            assert len(found) == len(wanted)
            assert all(map(same, found, wanted))
    transcript.close()


def test_a_read_parses_nothing_twice_and_takes_up_no_other_message(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path)
    for message in _epochs(Point.GRADIENT, 200, 2, 1):
        transcript.record(message)
    for sender in ("a", "b"):
        transcript.record(payload(ONE, sender=sender, point=Point.PARAMETERS, phase=Phase.DISCLOSE))
    with (
        patch.object(index, "complete_entry", wraps=index.complete_entry) as parsed,
        patch.object(journal, "released_at", wraps=index.released_at) as taken_up,
    ):
        for _ in range(10):
            assert [r.sender for r in transcript.select(Point.PARAMETERS, sender="b")] == ["b"]
    assert (parsed.call_count, taken_up.call_count) == (202, 10)
    transcript.close()


def test_a_torn_line_is_found_once_it_is_whole(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path)
    for step in range(3):
        transcript.record(payload(ONE, step=step))
    index = tmp_path / "index.jsonl"
    whole = index.read_bytes()
    index.write_bytes(whole[:-5])
    assert [r.exchange.step for r in transcript.select(Point.EMBEDDING)] == [0, 1]
    index.write_bytes(whole)
    assert [r.exchange.step for r in transcript.select(Point.EMBEDDING)] == [0, 1, 2]
    transcript.close()


# --- long runs


def _epochs(point: Point, epochs: int, rows: int, width: int) -> Iterator[Released]:
    """A message an epoch; its numbers are the epoch's."""
    everything = np.arange(rows, dtype=np.int32)
    for epoch in range(epochs):
        tensors = {str(point): np.full((rows, width), float(epoch))}
        yield Released(
            "active", Exchange("run", Phase.TRAIN, epoch, epoch), point, everything, tensors=tensors
        )


def _view(transcript: Transcript, rows: int, every: int = 1) -> AdversaryView:
    return AdversaryView(
        party="me",
        target="active",
        rows=np.arange(rows, dtype=np.int32),
        n_classes=2,
        transcript=transcript,
        own={},
        parties=[PartyInfo("me", Role.PASSIVE), PartyInfo("active", Role.ACTIVE, n_classes=2)],
        needs=frozenset(Knowledge),
        phases=frozenset(Phase),
        every=every,
    )


def test_a_sampled_transcript_keeps_every_so_many_epochs_and_counts_what_arrived(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, every=3)
    for point in (Point.EMBEDDING, Point.GRADIENT):
        for message in _epochs(point, 9, 2, 1):
            assert transcript.record(message)
            assert not transcript.record(message)
    assert transcript.record(payload(ONE, phase=Phase.PREDICT))
    kept = [(r.point, r.exchange.round) for r in transcript]
    assert kept[:3] == [(Point.EMBEDDING, 2), (Point.EMBEDDING, 5), (Point.EMBEDDING, 8)]
    assert kept[3:] == [*((Point.GRADIENT, e) for e in (2, 5, 8)), (Point.EMBEDDING, 0)]
    assert transcript.received == 19
    transcript.close()


@pytest.mark.parametrize("epochs", [1, 2, 3, 5])  # all left out; the last kept; two left out after it
def test_a_reopened_sampled_transcript_knows_and_counts_what_it_left_out(tmp_path: Path, epochs: int) -> None:
    arrived = [m for p in (Point.EMBEDDING, Point.GRADIENT) for m in _epochs(p, epochs, 2, 1)]
    transcript = Transcript(tmp_path, every=3)
    for message in arrived:
        transcript.record(message)
    transcript.close()
    for _ in range(2):
        again = Transcript(tmp_path, every=3)
        assert not any(again.record(message) for message in arrived)
        assert (again.received, again.nbytes) == (2 * epochs, sum(m.nbytes for m in arrived))
        again.close()


@pytest.mark.parametrize(
    "content",
    [
        "{",
        '{"embedding": [1, 2, 3]}',
        '{"nothing a": [1, 2, 3]}',
        '{"embedding a": [1, 2]}',
        '{"embedding a": [1, 2, "3"]}',
        '{"embedding a": 7}',
    ],
)
def test_a_damaged_count_of_what_was_left_out_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "left_out.json").write_text(content)
    with pytest.raises(
        StorageError, match=r"left_out.json cannot be read or written .*: free space or choose"
    ):
        Transcript(tmp_path, every=3)


def test_what_stood_in_no_kept_epoch_is_said_to_be_missing(tmp_path: Path) -> None:
    transcript = Transcript(tmp_path, every=5)
    for message in _epochs(Point.GRADIENT, 4, 3, 2):
        transcript.record(message)
    with pytest.raises(KnowledgeError, match=r"epoch that its transcript leaves out .transcript.every = 5.$"):
        _view(transcript, 3, every=5).gradients()
    for message in list(_epochs(Point.GRADIENT, 6, 3, 2))[4:]:
        transcript.record(message)
    np.testing.assert_array_equal(_view(transcript, 3, every=5).gradients(), np.full((3, 2), 3 * 4.0))
    transcript.close()


def test_a_long_transcript_is_never_held_in_memory(tmp_path: Path) -> None:
    """40 MB are recorded; a view of the last value of each row holds a few messages of 0.4 MB at most."""
    transcript = Transcript(tmp_path)
    tracemalloc.start()
    for message in _epochs(Point.GRADIENT, 100, 1000, 50):
        transcript.record(message)
    gradients = _view(transcript, 1000).gradients()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert transcript.nbytes > 40e6
    assert peak < 4e6
    np.testing.assert_array_equal(gradients, np.full((1000, 50), 99e3))
    transcript.close()
