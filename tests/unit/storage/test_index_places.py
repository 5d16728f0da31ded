"""An index line is taken only if its arrays stand one behind the other from the last end: else links, which
name a record's arrays by their line, would leave bytes of the payload to nobody.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from laboratory import payload

from vflens.errors import StorageError
from vflens.storage.journal import Journal, Reader, read, records
from vflens.types import Point, Released

_READINGS: tuple[Callable[[Path], Iterable[object]], ...] = (
    read,
    records,
    lambda log: Reader(log).select(Point.SCORES),
    Journal,
)


def _written(folder: Path) -> list[dict[str, Any]]:
    """Three records of two tensors each, and their entries."""
    log = Journal(folder, chained=True)
    for step in range(3):
        log.append(_message(step))
    log.close()
    return [json.loads(line) for line in (folder / "index.jsonl").read_bytes().splitlines()]


def _message(step: int) -> Released:
    tensors = {"a": np.full((2, 3), 1.0 + step), "b": np.full(step, 7.0)}
    return payload(tensors, rows=np.arange(2, dtype=np.int32), step=step)


@given(data=st.data())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_other_places_or_numbers_of_bytes_are_refused(tmp_path: Path, data: st.DataObject) -> None:
    """JSON of the right form whose offsets or nbytes do not fit: no reader takes it, and no log goes on."""
    folder = tmp_path / "log"
    entries = _written(folder) if not folder.exists() else json.loads((tmp_path / "ours").read_text())
    (tmp_path / "ours").write_text(json.dumps(entries))
    changed = entries[data.draw(st.integers(0, 2))]
    places = [changed["rows"], *changed["tensors"], changed]
    at = data.draw(st.sampled_from(places))
    name = "nbytes" if at is changed else "offset"
    at[name] = data.draw(st.integers(0, 400).filter(lambda number: number != at[name]))
    (folder / "index.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    for taken in _READINGS:
        with pytest.raises(StorageError, match=r"instead of|its arrays have"):
            list(taken(folder))


def test_a_log_that_grows_is_read_on_from_its_last_end(tmp_path: Path) -> None:
    log = Journal(tmp_path)
    reader, found = Reader(tmp_path), []
    for step in range(3):
        log.append(_message(step))
        found.append(sum(1 for _ in reader.select(_message(0).point)))
    log.close()
    assert found == [1, 2, 3]


def test_several_messages_are_one_append_of_the_same_bytes(tmp_path: Path) -> None:
    one, all_ = Journal(tmp_path / "one", chained=True), Journal(tmp_path / "all", chained=True)
    for step in range(3):
        one.append(_message(step))
    all_.append(*map(_message, range(3)))
    one.close()
    all_.close()
    for name in ("index.jsonl", "payload.bin"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "all" / name).read_bytes()
