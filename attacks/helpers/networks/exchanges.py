"""A target's embeddings by the key of its passport.

Each training exchange has a key of its own; all predictions share one.
"""

import numpy as np
import torch
from torch import Tensor

from vflens.plugins.arrivals import latest
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Phase, Point


def by_key(view: AdversaryView, rows: Array, phase: Phase, epochs: int = 1) -> list[tuple[Array, Array]]:
    """Rows (n,) and float64 embeddings (n, w) under one key: of each exchange of the last ``epochs`` recorded
    epochs of training, or of all predictions that arrived, ``rows`` first.

    Raises:
        KnowledgeError: none arrived of some of ``rows``.
    """
    values = view.embeddings(rows, phase)
    if phase is Phase.PREDICT:
        arrived = [(r, h, ~np.isin(r, rows)) for _, r, h in view.batches(Point.EMBEDDING, phase)]
        others = [(r[beside], h[beside]) for r, h, beside in arrived if beside.any()]
        return [
            (
                np.concatenate([rows, *(r for r, _ in others)]),
                np.concatenate([values, *(h for _, h in others)]),
            )
        ]
    rounds = sorted({e.round for e, _, _ in view.batches(Point.EMBEDDING, phase)})[-epochs:]
    found = view.batches(Point.EMBEDDING, phase)
    return [(r, h.astype(np.float64)) for e, r, h in found if e.round in rounds]


def keyless(view: AdversaryView, rows: Array, channels: int) -> tuple[Array, Array]:
    """:func:`standardised` embeddings of the rows of ``view`` in prediction (N, w), and of training ``rows``
    (m, w) among those of their last exchange.

    Raises:
        KnowledgeError: none arrived of some row.
    """
    ((_, h),) = by_key(view, view.rows, Phase.PREDICT)
    found = by_key(view, rows, Phase.TRAIN)
    taught, _ = latest(((r, standardised(v, channels, h)) for r, v in found), rows)
    return standardised(h, channels)[: len(view.rows)], taught


def standardised(h: Array, channels: int, like: Array | None = None) -> Array:
    """``h`` (n, w) without the scale and the shift of each of its ``channels``, the same in every batch of
    rows that are distributed alike.

    Behind an activation, where no number is negative, the scale alone goes. Else a channel's sign goes too:
    it is made that of ``like``, embeddings under another key, by the covariances between channels, and the
    sign common to all of them by third moments.
    """
    if len(h) == 0:
        return h
    z = h.reshape(len(h), channels, -1).astype(np.float64)
    if linear := bool((h < 0).any()):
        z = z - z.mean(axis=(0, 2), keepdims=True)
    z = z / np.maximum(np.sqrt((z**2).mean(axis=(0, 2), keepdims=True)), 1e-12)
    if linear and like is not None:
        flips = signs(torch.tensor(h, dtype=torch.float64), torch.tensor(like, dtype=torch.float64), channels)
        z = z * flips.numpy()[None, :, None]
        skews = [
            (s**3).mean(axis=0) for s in (z, standardised(like, channels).reshape(len(like), channels, -1))
        ]
        z = z if (skews[0] * skews[1]).sum() >= 0 else -z
    result: Array = z.reshape(h.shape)
    return result


def signs(g: Tensor, h: Tensor, channels: int) -> Tensor:
    """The sign of γ (channels,), up to one sign for all, from embeddings without γ ``g`` (m, w) and with it
    ``h`` (n, w); see :func:`matched_signs`.
    """
    return matched_signs(correlations(g, channels), correlations(h, channels))


def matched_signs(without: Tensor, with_them: Tensor) -> Tensor:
    """The signs (channels,), up to one for all, from correlations (places, channels, channels).

    Where nothing but γ and β stands between them, Corr(h_i, h_j) = sign(γ_i γ_j)·Corr(g_i, g_j): the product
    of both is a matrix of squares between two signs, and its leading eigenvector has them. Of an image's
    places the products are summed.
    """
    leading = torch.linalg.eigh((without * with_them).sum(dim=0)).eigenvectors[:, -1]
    return torch.where(leading < 0, -1.0, 1.0).to(without)


def correlations(h: Tensor, channels: int) -> Tensor:
    """Those between channels at each place (places, channels, channels); 0 for a number that is the same in
    all rows.
    """
    deviations = h - h.mean(dim=0)
    z = (deviations / deviations.norm(dim=0).clamp_min(1e-12)).reshape(len(h), channels, -1)
    return torch.einsum("nip,njp->pij", z, z)
