"""A data party's run after alignment: its rows in aligned order, scaled, and its part of the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from vfl.federation import Federation
from vfl.scaling import Scaler
from vfl.types import Array


@dataclass(eq=False)
class Prepared:
    """A run after alignment: all arrays in aligned order.

    ``truth`` (N, d) are the party's own columns scaled to [0, 1], ``inputs`` the same after its defences.
    """

    federation: Federation
    truth: Array
    inputs: Array
    clipped: int
    model: Any  # LinearBlock; a Bottom or Top of vfl.networks, which import torch


def aligned_in_place(features: Array, order: Array, scaler: Scaler) -> tuple[Array, int]:
    """The rows ``order`` of ``features``, moved and scaled where they stand; and how many values were clipped.

    A second copy would double what the party holds.
    """
    truth = features[: len(order)]
    for j in range(truth.shape[1]):
        truth[:, j] = features[order, j]
    return truth, scaler.transform_in_place(truth)
