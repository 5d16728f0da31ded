"""A linear decoder that holds for networks which it did not learn from."""

from collections.abc import Callable, Sequence

import numpy as np

from vflens.types import Array

Decoder = Callable[[Array], Array]
_PENALTIES = np.logspace(-6, 1, 15)  # in units of the largest eigenvalue


def standardised(embedded: Array) -> Array:
    """``embedded`` (n, w) with mean 0 and deviation 1 in every channel; a constant channel is 0."""
    if not len(embedded):
        return embedded
    deviation = embedded.std(axis=0)
    unit = np.where(deviation > 1e-9 * max(float(deviation.max(initial=0.0)), 1e-300), deviation, np.inf)
    found: Array = (embedded - embedded.mean(axis=0)) / unit
    return found


def transferable(embedded: Sequence[Array], rows: Array) -> Decoder:
    """Penalised least squares of ``rows`` (m, d) in their standardised embeddings (m, w) by two or more
    networks together.

    The penalty is the one that errs least where each network in turn is left out, with half of the rows.
    """
    half = (len(rows) + 1) // 2
    errors = np.zeros(len(_PENALTIES))
    for left_out, judged in enumerate(embedded):
        others = [z[:half] for place, z in enumerate(embedded) if place != left_out]
        tried = [decode(judged[half:]) for decode in _decoders(others, rows[:half])]
        errors += [float(((x.clip(0, 1) - rows[half:]) ** 2).sum()) for x in tried]
    return _decoders(embedded, rows)[int(np.argmin(errors))]


def _decoders(embedded: Sequence[Array], rows: Array) -> list[Decoder]:
    """The decoder of each penalty."""
    z, mean = np.concatenate(embedded), rows.mean(axis=0)
    values, vectors = np.linalg.eigh(z.T @ z)
    seen = vectors.T @ (z.T @ np.tile(rows - mean, (len(embedded), 1)))
    penalties = _PENALTIES * max(float(values[-1]), 1e-300)
    maps = [vectors @ (seen / (np.maximum(values, 0) + p)[:, None]) for p in penalties]
    return [lambda h, m=m: h @ m + mean for m in maps]  # type: ignore[misc]
