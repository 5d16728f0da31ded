"""Rows of which half were trained on, for attacks on membership."""

from typing import NamedTuple

import numpy as np

from vflens.errors import ConfigError
from vflens.randomness import stream
from vflens.types import Array


class Candidates(NamedTuple):
    """``rows`` int32 (n,), and which of them are ``members`` of the training rows, bool (n,)."""

    rows: Array
    members: Array


def drawn_candidates(
    count: int, train: Array, predict: Array, *, party: str, secret: bytes, called: str = "training"
) -> Candidates:
    """``count`` candidates, shuffled: half of them the first of ``train``, which stand in a drawn order and
    are ``called`` so, half drawn from ``predict``.

    Raises:
        ConfigError: there are too few of either.
    """
    half = count // 2
    for what, rows in ((called, train), ("prediction", predict)):
        if half > len(rows):
            raise ConfigError(
                f"disclose candidates rows = {count} at {party!r}: {half} {what} rows are needed that no "
                f"other grant shows, there are {len(rows)}, grant fewer"
            )
    drawn = stream(secret, "candidates")
    others = drawn.choice(predict, half, replace=False)
    order = drawn.permutation(count)
    rows = np.concatenate([train[:half], others])[order].astype(np.int32)
    return Candidates(rows, (np.arange(count) < half)[order])
