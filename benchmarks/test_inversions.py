"""Inversion of 1,000 images of MNIST's size under LeNet's bottom model in blocks, beside one image at a time.

The loop inverts a few images, spread over the batch; the rest is extrapolated.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np
import pytest
import torch

from vflens.attacks.wmi import WhiteBoxInversion
from vflens.datasets.mnist import Mnist
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.architectures import bottom
from vflens.types import Array, ColumnInfo

IMAGES, LOOPED, STEPS = 1000, 20, 30
COLUMNS = tuple(ColumnInfo(f"p{i}", 0.0, 1.0, pixel=divmod(i, 28)) for i in range(28 * 28))


def _images() -> Array:
    """MNIST's where the folder of whole data sets is present, else noise: the time is the same."""
    if "VFLENS_DATA" in os.environ:
        return np.asarray(Mnist().load().features[:IMAGES], np.float64) / 255
    return np.random.default_rng(0).random((IMAGES, len(COLUMNS)))


def _seconds(work: Callable[[], Any]) -> float:
    began = process_time()
    work()
    return process_time() - began


@pytest.mark.benchmark(group="inversions")
def test_a_batch_of_images_beside_a_loop_over_them(benchmark: Any) -> None:
    torch.manual_seed(0)
    model = bottom(SplitNetwork(architecture="lenet", precision="float64"), COLUMNS)
    with torch.no_grad():
        h = model(torch.tensor(_images())).numpy()
    attack = WhiteBoxInversion(starts=1, steps=STEPS)
    points = np.full((1, len(COLUMNS)), 0.5)

    def inverted(rows: Array) -> Array:
        return attack.ends(h[rows], COLUMNS, model, points)[0]

    spread = np.linspace(0, IMAGES - 1, LOOPED).astype(int)
    inverted(spread[:1])  # torch's first step takes longer
    together = _seconds(lambda: inverted(np.arange(IMAGES)))
    each = benchmark.pedantic(
        lambda: _seconds(lambda: [inverted(spread[i : i + 1]) for i in range(LOOPED)]), rounds=1
    )
    alone = each / LOOPED * IMAGES
    print(f"\nInversion of {IMAGES:,} images under LeNet, {STEPS} steps of one start, one core")
    print(f"  in blocks: {together:,.1f} s")
    print(f"  one by one: {alone:,.1f} s, extrapolated from {LOOPED} images; ratio {alone / together:,.1f} ×")
    benchmark.extra_info.update({"in blocks, s": together, "one by one, s": alone, "ratio": alone / together})
    assert alone > together
