"""The words of the scoreboard, from made-up records: every sentence that it can say."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from vflens.experiments.scoreboard import verdicts
from vflens.experiments.scoreboard.board import Board
from vflens.experiments.scoreboard.grid import UNDEFENDED
from vflens.experiments.scoreboard.verdicts import over_seeds
from vflens.experiments.sweeps.pool import Rows

NAN = math.nan
EXACT, STRONG, HALF, WEAK, BLIND = (0.01,) * 5, (0.2,) * 5, (0.5,) * 5, (0.95,) * 5, (1.0, 1.1, 0.9, 1.0, 1.0)
WIDE = (0.3, 1.2, 0.9, 0.2, 1.3)  # .78 ± .63
NEAR = (0.2, 0.4, 0.25, 0.35, 0.3)  # .30 ± .10


def made(
    defense: str,
    figures: Sequence[float],
    *,
    attack: str = "ls",
    blind: float | Sequence[float] = 1.0,
    measure: str = "MSE",
    **more: Any,
) -> Rows:
    """The kept rows of one attack, seed by seed."""
    blinds = blind if isinstance(blind, Sequence) else [blind] * len(figures)
    shared = {
        "defense": defense,
        "attack": attack,
        "measure": measure,
        "rows": "predict",
        "target": "passive",
    }
    pairs = enumerate(zip(figures, blinds, strict=True))
    return [{**shared, "seed": seed, "figure": f, "blind": b, **more} for seed, (f, b) in pairs]


def said(after: Sequence[float], before: Sequence[float], **more: Any) -> str:
    """The words of the page on the defence "fog" with these errors of ``ls``, and on columns."""
    return beside(made("fog", after, **more), made(UNDEFENDED, before, **more))


def beside(after: Rows, before: Rows, family: str = "features") -> str:
    """The words of the page on the defence of the rows ``after``."""
    return Board("bank", "vertical-lr", after + before).words("fog", family)


def known(
    after: Sequence[float],
    before: Sequence[float],
    more: Sequence[Any] = (),
    *,
    federation: str = "vertical-split",
    **marks: Any,
) -> str:
    """The words of the page on InstaHide, for which an attack is made."""
    rows = made("instahide", after, **marks) + made(UNDEFENDED, before, **marks) + [*more]
    return Board("bank", federation, rows).words("instahide", "features")


def alone(*rows: Rows, family: str = "features") -> str:
    """The words of the page where nothing defends."""
    return Board("bank", "vertical-lr", [r for some in rows for r in some]).words(UNDEFENDED, family)


def labels(defense: str, right: Sequence[float], most_frequent: Sequence[float]) -> Rows:
    return made(defense, right, attack="label_restoration", blind=most_frequent, measure="accuracy")


AGAINST: list[tuple[str, str]] = [
    (said(BLIND, STRONG), "hides all"),
    (said(STRONG, STRONG), "hides nothing (ls, 0.20 ± 0.00)"),
    (said(NEAR, STRONG), "hides nothing or part (ls, 0.30 ± 0.10)"),
    (said(HALF, STRONG), "hides part (ls, 0.50 ± 0.00)"),
    (said(WIDE, STRONG), "not decided (ls, 0.78 ± 0.63)"),
    (said(BLIND, BLIND), "nothing to hide"),
    (said(STRONG, BLIND), "opens to ls, 0.20 ± 0.00"),
    (said((), STRONG), "nothing was scored"),
    (said(STRONG[1:], STRONG), "no verdict: 4 of at least 5 results of ls"),
    (said(STRONG, STRONG[1:]), "no verdict: 4 of at least 5 results of ls"),
    (said((*STRONG[1:], NAN), STRONG), "no verdict: 4 of at least 5 results of ls, of 5 seeds 1 undefined"),
    (
        said((*STRONG, 0.0), (*STRONG, 0.0), blind=(*(1.0,) * 5, 0.0)),
        ("hides nothing (ls, 0.20 ± 0.00, of 6 seeds 1 undefined)"),
    ),
    (said(STRONG, ()), "no verdict: 0 of at least 5 results"),
]
MADE_FOR: list[tuple[str, str]] = [
    (known(BLIND, STRONG), "not decided (hides all without wmi_signs)"),
    (known(HALF, STRONG), "not decided (hides part (ls, 0.50 ± 0.00) without wmi_signs)"),
    (known(STRONG, STRONG), "hides nothing (ls, 0.20 ± 0.00)"),
    (known(BLIND, STRONG, made("instahide", BLIND, attack="wmi_signs")), "hides all"),
    (known(BLIND, STRONG, federation="vertical-lr"), "hides all"),
    (
        known(BLIND, STRONG, on_grants_only=True, granted=True),
        "acts on what is granted only; of it: not decided (hides all without wmi_signs)",
    ),
]
ON_GRANTS: list[tuple[str, str]] = [
    (said(BLIND, STRONG, on_grants_only=True), "acts on what is granted only"),
    (
        said(HALF, STRONG, on_grants_only=True, granted=True),
        ("acts on what is granted only; of it: hides part (ls, 0.50 ± 0.00)"),
    ),
    (
        beside(
            made("fog", STRONG, attack="dlg", on_grants_only=True), made(UNDEFENDED, STRONG, granted=True)
        ),
        ("acts on what is granted only; of it: nothing was scored"),
    ),
]
UNDEFENDED_WORDS: list[tuple[str, str]] = [
    (alone(made(UNDEFENDED, EXACT)), "ls finds nearly all (0.01 ± 0.00)"),
    (alone(made(UNDEFENDED, HALF), made(UNDEFENDED, STRONG, attack="gia")), "gia finds part (0.20 ± 0.00)"),
    (alone(made(UNDEFENDED, BLIND)), "ls does not beat a blind guess"),
    (alone(made(UNDEFENDED, BLIND), made(UNDEFENDED, WIDE, attack="gia")), "no attack beats a blind guess"),
    (alone(made(UNDEFENDED, EXACT[1:])), "no verdict: 4 of at least 5 results of ls"),
    (alone(), "nothing was scored"),
]
EVERY = AGAINST + MADE_FOR + ON_GRANTS + UNDEFENDED_WORDS


@pytest.mark.parametrize(("found", "expected"), EVERY)
def test_words(found: str, expected: str) -> None:
    assert found == expected


def _phrases() -> Iterator[str]:
    """The pieces of sentences in the module, but for docstrings and what names a row's cell."""
    tree = ast.parse(inspect.getsource(verdicts))
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        for node in (n for statement in function.body[1:] for n in ast.walk(statement)):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
                yield node.value


def test_every_sentence_of_the_module_is_said_above() -> None:
    phrases = [*_phrases()]
    assert len(phrases) >= 12
    everything = "\n".join(found for found, _ in EVERY)
    assert [phrase for phrase in phrases if phrase not in everything] == []


# -- what was wrong ---------------------------------------------------------------------------------------


def test_exact_labels_beside_an_exact_blind_guess_are_undefined_and_no_failure() -> None:
    """All labels found, and the blind guess exact in two seeds: 0/0 there, and 0 in the others."""
    blind = (1.0, 0.7, 0.8, 1.0, 0.6, 0.75, 0.9)
    exact = labels(UNDEFENDED, (1.0,) * 7, blind)
    found = alone(exact, family="labels")
    assert found == "label_restoration finds nearly all (0.00 ± 0.00, of 7 seeds 2 undefined)"
    assert beside(labels("fog", (1.0,) * 7, blind), exact, "labels").startswith("hides nothing")
    short = alone(labels(UNDEFENDED, (1.0,) * 3, (1.0, 0.7, 0.8)), family="labels")
    assert short == "no verdict: 2 of at least 5 results of label_restoration, of 3 seeds 1 undefined"


def test_a_seed_without_a_finite_figure_is_no_result() -> None:
    """AUC is nan on rows of one class: such a seed made the mean nan, and nan is not below 1."""
    found = over_seeds(made(UNDEFENDED, (0.9, 0.95, NAN, 0.9, 0.92, 0.9), blind=0.5, measure="AUC"))
    assert found is not None
    assert (found.relative.seeds, found.relative.undefined) == (5, 1)
    assert found.beats_blind


def test_one_target_without_a_finite_figure_leaves_that_of_the_other() -> None:
    rows = made(UNDEFENDED, STRONG) + made(UNDEFENDED, (NAN, *STRONG[1:]))
    found = over_seeds(rows)
    assert found is not None
    assert found.figure == STRONG


def test_what_beat_a_blind_guess_and_has_too_few_results_behind_the_defence_is_not_hidden() -> None:
    """Another attack has its five results, and is no better than blind with or without the defence."""
    after = made("fog", STRONG[1:]) + made("fog", BLIND, attack="gia")
    before = made(UNDEFENDED, STRONG) + made(UNDEFENDED, BLIND, attack="gia")
    assert beside(after, before) == "no verdict: 4 of at least 5 results of ls"


def test_an_attack_that_a_defence_leaves_without_knowledge_is_hidden_from() -> None:
    before = made(UNDEFENDED, STRONG) + made(UNDEFENDED, WEAK, attack="gia")
    assert beside(made("fog", BLIND, attack="gia"), before) == "hides all"


def test_a_defence_of_grants_alone_gets_no_verdict_on_the_wire() -> None:
    """It "hid part": the strongest attack without it reads granted gradients, the next one the wire."""
    before = made(UNDEFENDED, EXACT, attack="wgi", granted=True) + made(UNDEFENDED, WEAK, attack="dlg")
    after = made("fog", HALF, attack="wgi", granted=True) + made("fog", WEAK, attack="dlg")
    assert beside(after, before) == "hides part (wgi, 0.50 ± 0.00)"
    marked = [{**row, "on_grants_only": True} for row in after]
    assert beside(marked, before) == "acts on what is granted only; of it: hides part (wgi, 0.50 ± 0.00)"
    refused = [*marked, {"defense": "fog", "attack": "bmi", "seed": 1, "reason": "no top", "refused": False}]
    assert beside(refused, before).startswith("acts on what is granted only")
    once = [{**row, "on_grants_only": row["seed"] > 0} for row in after]
    assert beside(once, before) == "hides part (wgi, 0.50 ± 0.00)"


def test_a_seed_counts_once_and_the_worse_rows_count() -> None:
    shared = {"attack": "a", "measure": "MSE", "blind": 2.0}
    rows = [
        {**shared, "rows": kind, "seed": seed, "figure": value}
        for kind, values in (("train", (0.2, 0.4)), ("predict", (0.9,)))
        for seed in range(5)
        for value in values
    ]
    averaged = over_seeds(rows)
    assert averaged is not None
    assert averaged.figure == pytest.approx((0.3,) * 5)
    assert averaged.mean == pytest.approx(0.15)
