"""FAR's figures by name: ``FIGURES["far-fig5"](simulations=100, seed=0)`` makes a :class:`Figure`.

The paper prints curves without numbers and omits several settings; ``notes`` names our choices.
"""

from __future__ import annotations

from collections.abc import Mapping

from vflens.experiments.figures.far_curves import figure5, figure6, figure7
from vflens.experiments.figures.far_theory import figure1, figure2, figure3, figure4
from vflens.experiments.figures.figure import MakeFigure

FIGURES: Mapping[str, MakeFigure] = {
    "far-fig1": figure1,
    "far-fig2": figure2,
    "far-fig3": figure3,
    "far-fig4": figure4,
    "far-fig5": figure5,
    "far-fig6": figure6,
    "far-fig7": figure7,
}
