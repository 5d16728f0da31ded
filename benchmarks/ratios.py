"""Alternating repetitions: what is compared runs in turn, so that a busy minute falls on all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from statistics import median
from typing import Any

REPETITIONS = 5


def alternate(
    candidates: Mapping[str, Callable[[], float]], repetitions: int = REPETITIONS
) -> dict[str, list[float]]:
    """Every candidate's figure, once in each of ``repetitions`` rounds."""
    figures: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(repetitions):
        for name, measure in candidates.items():
            figures[name].append(measure())
    return figures


def report(
    benchmark: Any, title: str, figures: Mapping[str, list[float]], reference: str, unit: str
) -> dict[str, float]:
    """Print medians and the ratio of medians to ``reference``; keep both with the benchmark's own record."""
    medians = {name: median(values) for name, values in figures.items()}
    ratios = {name: value / medians[reference] for name, value in medians.items()}
    print(f"\n{title}, medians of {len(figures[reference])} alternating repetitions")
    for name, values in figures.items():
        spread = f"{min(values):,.5g} … {max(values):,.5g}"
        print(
            f"  {name:<34} {medians[name]:>12,.5g} {unit:<10} {ratios[name]:7.3f} × {reference}   ({spread})"
        )
    benchmark.extra_info.update({"unit": unit, "medians": medians, "ratios": ratios})
    return ratios
