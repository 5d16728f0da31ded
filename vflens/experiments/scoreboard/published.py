"""Figures that papers print for attacks and data sets of the scoreboard, with the place where they stand."""

from __future__ import annotations

from collections.abc import Iterator

from vflens.experiments.figures.fedadob.printed import BLACK_BOX_ERRORS, CAPS

FEDADOB = "FedAdOb (Gu et al.)"
VAR = "VAR (Varasteh, arXiv:2302.05545), §V, text on Figure 4"


def published(data: str) -> Iterator[tuple[str, str, str]]:
    """What was measured on ``data``, the printed figure, and its source."""
    halves = {"bank": "0.17", "adult": "0.12"}
    if data in halves:
        yield "`half`, the blind guess, MSE per column of the whole data set", halves[data], VAR
    if data == "mnist":
        for (method, name), errors in BLACK_BOX_ERRORS.items():
            if name == "MNIST":
                yield f"`bmi` on {method}, MSE", f"{errors.bmi:.3f}", f"{FEDADOB}, Table III"
                yield f"`bgi` on {method}, MSE", f"{errors.bgi:.3f}", f"{FEDADOB}, Table III"
        for (attack, model, defense), cap in CAPS.items():
            if model == "LeNet-MNIST":
                what = f"{attack} against {defense}, LeNet: accuracy × error, mean over strengths"
                yield what, str(cap), f"{FEDADOB}, Table IV"
