"""What a party received is recorded on arrival, once per exchange."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from laboratory import payload

from vfl.transcript import Transcript
from vfl.types import Exchange, Phase, Point, Released

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
        "passive", Exchange("run", Phase.PREDICT, 2, 4), Point.EMBEDDING, np.zeros(0, np.int32), ONE
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
