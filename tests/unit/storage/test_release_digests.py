"""The digests of what a party released: each once, whoever asks again."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vflens.storage.release_digests import RECORD_BYTES, ReleaseDigests
from vflens.types import Exchange, Phase, Point, Released


def released(round_: int, step: int, value: float) -> Released:
    exchange = Exchange("tiny/run", Phase.TRAIN, round_, step)
    return Released(
        "a", exchange, Point.EMBEDDING, np.zeros(1, np.int32), tensors={"embedding": np.full((1, 1), value)}
    )


@pytest.mark.parametrize("restarted", [False, True])
def test_a_step_that_is_repeated_leaves_one_digest(tmp_path: Path, restarted: bool) -> None:
    """A leader that outlives a data party's death releases the steps since the last checkpoint again."""
    digests = ReleaseDigests(tmp_path)
    for repetition in range(2):
        if repetition and restarted:
            digests.close()
            digests = ReleaseDigests(tmp_path)
        for step in range(6):
            digests.add(released(step // 3, step, float(step)))
    digests.add(released(1, 5, -1.0))  # other numbers are another release
    digests.close()
    assert (tmp_path / "digests.bin").stat().st_size == 7 * RECORD_BYTES
