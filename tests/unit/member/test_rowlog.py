"""The log of released rows against a dictionary."""

from __future__ import annotations

import numpy as np
from gates import positions, predict_step
from hypothesis import given, settings
from hypothesis import strategies as st

from vflens.member.released_rows import RowLog


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 300), min_size=1, max_size=40, unique=True), max_size=12), st.data())
def test_a_row_log_is_a_dictionary(batches: list[list[int]], data: st.DataObject) -> None:
    log = RowLog()
    twin: dict[int, float] = {}
    for step, batch in enumerate(batches):
        fresh = [r for r in batch if r not in twin]
        assert log.has(positions(*batch)).tolist() == [r in twin for r in batch]
        if fresh:
            values = np.array([[r + step / 100, -r] for r in fresh])
            log.add(positions(*fresh), values, predict_step(step))
            twin |= {r: r + step / 100 for r in fresh}
            assert predict_step(step) in log.exchanges
    assert log.order().tolist() == list(twin)
    asked = data.draw(st.lists(st.sampled_from(sorted(twin)), max_size=30)) if twin else []
    if asked:
        np.testing.assert_array_equal(log.values(positions(*asked)), [[twin[r], -r] for r in asked])


def test_reading_changes_nothing() -> None:
    """Two threads may read at a time."""
    log = RowLog()
    log.add(positions(3), np.zeros((1, 2)), predict_step(0))
    places = log._place
    assert log.has(positions(2, 3, 10_000)).tolist() == [False, True, False]
    assert log._place is places
