"""SSIM and PSNR against their definitions, window by window; and what a target keeps of images."""

from __future__ import annotations

import math
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from vflens.array import ScaledColumns
from vflens.experiments.results.folders import read_party
from vflens.protocol.acts import Guess, Submission
from vflens.score.columns import ColumnScoring
from vflens.score.images import grid_of, psnr, ssim
from vflens.storage.log import party_log
from vflens.storage.metrics import Metrics
from vflens.types import Array, ColumnInfo, Pixel, numbered, statuses

RNG = np.random.default_rng(0)


def _columns(height: int, width: int, channels: int = 0) -> tuple[ColumnInfo, ...]:
    """In a drawn order: the grid has to find them."""
    depth: list[tuple[int, ...]] = [(k,) for k in range(channels)] or [()]
    places = [cast("Pixel", (r + 2, c + 5, *k)) for r in range(height) for c in range(width) for k in depth]
    order = np.random.default_rng(height + width).permutation(len(places))
    return tuple(ColumnInfo(f"p{i}", 0.0, 255.0, pixel=places[i]) for i in order)


def _direct(x: Array, y: Array, side: int) -> float:
    """Eq. 13 of Wang et al. for images (height, width), the moments of every window by their definitions."""
    along = np.arange(side) - (side - 1) / 2
    w = np.exp(-(along[:, None] ** 2 + along**2) / (2 * 1.5**2))
    w /= w.sum()
    found = []
    for i in range(x.shape[0] - side + 1):
        for j in range(x.shape[1] - side + 1):
            a, b = x[i : i + side, j : j + side], y[i : i + side, j : j + side]
            ma, mb = (w * a).sum(), (w * b).sum()
            va, vb = (w * (a - ma) ** 2).sum(), (w * (b - mb) ** 2).sum()
            cov = (w * (a - ma) * (b - mb)).sum()
            luminance = (2 * ma * mb + 0.0001) / (ma**2 + mb**2 + 0.0001)
            found.append(luminance * (2 * cov + 0.0009) / (va + vb + 0.0009))
    return float(np.mean(found))


@pytest.mark.parametrize(
    ("height", "width", "channels", "side"),
    [(14, 13, 0, 11), (11, 12, 3, 11), (8, 8, 0, 7), (8, 4, 2, 3), (3, 5, 0, 3)],
)
def test_ssim_is_that_of_every_window(height: int, width: int, channels: int, side: int) -> None:
    columns = _columns(height, width, channels)
    x = RNG.random((3, len(columns)))
    y = np.clip(x + RNG.normal(0, 0.2, x.shape), 0, 1)
    grid = grid_of(columns)
    assert grid is not None
    expected = [np.mean([_direct(a[g], b[g], side) for g in grid]) for a, b in zip(x, y, strict=True)]
    np.testing.assert_allclose(ssim(x, y, grid), expected, rtol=1e-11)
    np.testing.assert_allclose(ssim(y, x, grid), expected, rtol=1e-11)
    np.testing.assert_allclose(ssim(x, x, grid), 1.0, rtol=1e-12)


def test_ssim_of_even_and_of_inverted_images() -> None:
    grid = grid_of(_columns(12, 12))
    assert grid is not None
    dark, bright = np.full((1, 144), 0.2), np.full((1, 144), 0.7)
    assert ssim(dark, bright, grid) == pytest.approx((2 * 0.14 + 0.0001) / (0.53 + 0.0001))
    image = RNG.random((1, 144))
    assert ssim(image, 1 - image, grid) < -0.8


def test_many_images_are_taken_in_parts() -> None:
    grid = grid_of(_columns(5, 4))
    assert grid is not None
    x, y = RNG.random((1100, 20)), RNG.random((1100, 20))
    rows = np.array([0, 511, 512, 1023, 1024, 1099])
    np.testing.assert_allclose(ssim(x, y, grid)[rows], ssim(x[rows], y[rows], grid), rtol=1e-12)


def test_only_full_rectangles_are_images() -> None:
    columns = _columns(5, 4)
    assert grid_of(columns[1:]) is None
    assert grid_of(_columns(2, 9)) is None  # no window of 3 pixels
    assert grid_of((ColumnInfo("income"),)) is None


def test_psnr_is_in_decibels() -> None:
    found = psnr(np.array([1.0, 0.1, 0.001, 0.0]))
    np.testing.assert_allclose(found, [0, 10, 30, math.inf], atol=1e-12)


def _scored(
    folder: Path, columns: tuple[ColumnInfo, ...], truth: Array, guess: Array
) -> dict[str, list[float]]:
    """Metric → the figures that the target keeps, those of all its columns as one list."""
    n = len(truth)
    folder.mkdir()
    service = ColumnScoring(
        party="target",
        truth=ScaledColumns(truth),
        columns=columns,
        training=np.arange(n, dtype=np.int32),
        predicting=n,
        lab=True,
        metrics=Metrics(folder / "metrics.parquet"),
        log=party_log(folder / "events.jsonl", "target"),
        folder=folder,
        pictures=0,
    )
    rows = np.arange(n, dtype=np.int32)
    guesses = (Guess("ls", guess, numbered(statuses(n))),)
    service.score(Submission("run", "active", "predict", rows, guesses=guesses), rows)
    found: dict[str, list[float]] = {}
    for m in read_party(folder).metrics:
        found.setdefault(f"{m.name} {m.attack}".strip(), []).extend(m.values or [m.value])
    return found


def test_a_target_keeps_one_array_for_all_pixels_and_the_means_over_images(tmp_path: Path) -> None:
    columns = _columns(6, 5, 3)
    grid = grid_of(columns)
    assert grid is not None
    kept = RNG.integers(0, 256, (8, 90), np.uint8)
    truth, guess = kept / 255, RNG.random((8, 90))
    found = _scored(tmp_path / "bytes", columns, kept, guess)
    square = (guess - truth) ** 2
    np.testing.assert_allclose(found["column_mse ls"], square.mean(axis=0), rtol=1e-12)
    assert len(found["column_blind_mse"]) == 90
    assert found["psnr ls"] == pytest.approx([-10 * np.log10(square.mean())])
    direct = [[_direct(a[g], b[g], 5) for g in grid] for a, b in zip(guess, truth, strict=True)]
    assert found["ssim ls"] == pytest.approx([np.mean(direct)])
    means = truth.mean(axis=0)
    blind = [[_direct(means[g], b[g], 5) for g in grid] for b in truth]
    assert found["blind_ssim column_means"] == pytest.approx([np.mean(blind)])
    assert found["blind_psnr half"] == pytest.approx([-10 * np.log10(((truth - 0.5) ** 2).mean())])
    exact = np.concatenate([truth[:1], guess[1:]])  # one image without an error
    assert _scored(tmp_path / "exact", columns, kept, exact)["psnr ls"] == pytest.approx(
        [-10 * np.log10(square[1:].sum() / square.size)]
    )
    table = _scored(tmp_path / "table", tuple(ColumnInfo(c.name) for c in columns), truth, guess)
    assert not {name for name in table if "ssim" in name or "psnr" in name}
    for name in ("column_mse ls", "column_blind_mse"):  # a row for each column of a table
        np.testing.assert_allclose(table[name], found[name], rtol=1e-12)
