"""The scoreboard's ranks, its table on protected training, and what it lacks, from made-up records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from scoreboard_page import unfinished
from scoreboard_protected import protected_tables
from scoreboard_ranks import rank_tables

from vflens.experiments.scoreboard.board import Board, boards
from vflens.experiments.scoreboard.grid import CLEAR, MASKED, PROTECTED, UNDEFENDED, ScoreboardGrid
from vflens.experiments.scoreboard.keys import COST
from vflens.experiments.scoreboard.ranks import Threat, ranked
from vflens.experiments.sweeps.pool import Rows
from vflens.types import Setting

STRONG, HALF, BLIND = (0.2,) * 5, (0.5,) * 5, (1.0, 1.1, 0.9, 1.0, 1.0)


def made(attack: str, figures: Sequence[float], defense: str = UNDEFENDED, **more: Any) -> Rows:
    """The kept rows of one attack, seed by seed; errors beside a blind guess's of 1 unless ``more`` says."""
    shared = {"attack": attack, "defense": defense, "measure": "MSE", "rows": "predict", "blind": 1.0}
    return [{**shared, "seed": seed, "figure": figure, **more} for seed, figure in enumerate(figures)]


def lr(rows: Rows, data: str = "bank", federation: str = "vertical-lr") -> Board:
    return Board(data, federation, rows)


# -- ranks ------------------------------------------------------------------------------------------------


def test_attacks_are_ranked_within_what_they_need() -> None:
    one = lr(made("ls", HALF) + made("rcc1", STRONG) + made("clear_features", BLIND) + made("half", HALF))
    two = lr(made("ls", (0.1, 0.2, 0.3, 0.2, 0.2)), "digits")
    found = ranked([one, two])
    assert [(str(threat), [r.attack for r in rows]) for threat, rows in found.items()] == [
        ("Vertical, nothing granted", ["half", "clear_features"]),
        ("Vertical, with what is granted", ["rcc1", "ls"]),  # both solve with granted parameters
    ]
    ls = found[Threat(Setting.VERTICAL, True)][1]
    assert ls.tables == 2
    assert ls.mean == pytest.approx((0.5 + 0.2) / 2)
    assert ls.half == pytest.approx(2.7764 * 0.0707107 / 5**0.5 / 2, rel=1e-4)  # of one table of two


def test_the_best_is_counted_behind_defences_too_and_only_where_it_beats_a_blind_guess() -> None:
    rows = made("ls", HALF) + made("rcc1", STRONG) + made("ls", STRONG, "fog") + made("rcc1", BLIND, "fog")
    rows += made("ls", BLIND, "mist") + made("rcc1", BLIND, "mist") + made("ls", HALF[1:], "haze")
    found = {r.attack: (r.best, r.met) for r in ranked([lr(rows)])[Threat(Setting.VERTICAL, True)]}
    assert found == {"ls": (1, 3), "rcc1": (1, 3)}


def test_attacks_of_equal_error_share_the_rank_and_the_place_of_the_best() -> None:
    text = "".join(rank_tables([lr(made("ls", STRONG) + made("clamped_ls", STRONG) + made("rcc1", HALF))]))
    assert "| clamped_ls | columns | 1 | 0.20 ± 0.00 | 1 of 1 | 1 |" in text
    assert "| ls | columns | 1 | 0.20 ± 0.00 | 1 of 1 | 1 |" in text
    assert "| rcc1 | columns | 3 | 0.50 ± 0.00 | 0 of 1 | 1 |" in text
    assert "break the protocol" not in text


def test_attacks_that_break_the_protocol_are_named() -> None:
    clients = lr(made("dlg", HALF) + made("imprint", STRONG), federation="horizontal")
    text = "".join(rank_tables([lr(made("fsha", HALF)), clients]))
    assert "These break the protocol, and all others only read: `fsha`, `imprint`." in text


def test_a_measured_grant_counts_and_so_do_candidates() -> None:
    rows = made("wgi", STRONG, granted=True) + made("dlg", HALF)
    rows += made("lira", (0.8,) * 5, measure="AUC", blind=0.5)
    found = ranked([lr(rows, federation="horizontal")])
    assert {t.granted: [r.attack for r in rows] for t, rows in found.items()} == {
        False: ["dlg"],
        True: ["wgi", "lira"],
    }


def test_means_of_columns_are_ranked_among_themselves() -> None:
    rows = made("lmmse", STRONG) + made("property_guess", (1.2,) * 5, measure="distance")
    text = "".join(rank_tables([lr(rows + made("property_embeddings", HALF, measure="distance"))]))
    assert "| lmmse | columns | 1 | 0.20 ± 0.00 | 1 of 1 | 1 |" in text
    assert "| property_embeddings | column means | 1 | 0.50 ± 0.00 | 1 of 1 | 1 |" in text
    assert "| property_guess | column means | 2 | 1.20 ± 0.00 | 0 of 1 | 1 |" in text


def test_protected_training_masked_sums_too_few_seeds_and_nothing_have_no_rank() -> None:
    apart = [lr(made("ls", STRONG), federation=PROTECTED), lr(made("imprint", STRONG), federation=MASKED)]
    assert ranked([*apart, lr(made("ls", STRONG[1:]))]) == {}
    assert [*rank_tables([lr([])])] == []


# -- protected training -----------------------------------------------------------------------------------


def protected(clear: Rows, shares: Rows) -> str:
    return "\n".join(protected_tables([lr(clear, federation=CLEAR), lr(shares, federation=PROTECTED)]))


def test_what_shares_end_and_what_open_scores_still_give() -> None:
    text = protected(
        made("ls", HALF) + made("clear_features", STRONG),
        made("ls", HALF) + made("ls", BLIND, "label_only") + made("ls", STRONG, "scheme_1"),
    )
    assert (
        "- In the clear 2 attacks beat a blind guess. On shares these do so no longer: `clear_features`. "
        "On shares with open scores these do: `ls` (0.50 ± 0.00). "
    ) in " ".join(text.split())
    assert "- `label_only`: no attack beats a blind guess." in text
    assert "- `scheme_1`: these beat a blind guess: `ls` (0.20 ± 0.00)." in text
    assert "scheme_2" not in text
    assert "| clear, open scores | shares, open scores | shares, label_only | shares, scheme_1 |\n" in text
    assert "| clear_features | columns | **0.20 ± 0.00** | – | – | – |" in text
    assert "| ls | columns | **0.50 ± 0.00** | **0.50 ± 0.00** | 1.00 ± 0.09 | **0.20 ± 0.00** |" in text


def test_where_nothing_is_found() -> None:
    text = protected(made("ls", BLIND), made("ls", BLIND) + made("rcc1", STRONG[1:]))
    assert "- In the clear 0 attacks beat a blind guess. On shares with open scores none does." in text
    assert "- Beyond a blind guess in no column: `ls`.\n- Not decided in any: `rcc1`." in text
    assert "| attack |" not in text


def test_no_table_without_both_runs() -> None:
    assert protected(made("ls", HALF), []) == ""


# -- what is missing --------------------------------------------------------------------------------------


def cost(defense: str = UNDEFENDED, seeds: int = 10) -> Rows:
    return [{"attack": COST, "defense": defense, "seed": seed} for seed in range(seeds)]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([], "not run yet"),
        (
            made("ls", HALF) + cost(),
            "no attacks with label_only and no costs with label_only",
        ),
        (
            made("ls", HALF) + made("ls", HALF, "label_only") + cost() + cost("label_only", 9),
            "no costs with label_only",
        ),
        (made("ls", HALF) + made("ls", HALF, "label_only") + cost() + cost("label_only"), ""),
    ],
)
def test_what_was_not_run(rows: Rows, words: str) -> None:
    grid = ScoreboardGrid(("bank",), (PROTECTED,))
    (board,) = boards([{**row, "data": "bank", "federation": PROTECTED} for row in rows], grid)
    assert unfinished(board, ["fog", "label_only"]) == words  # fog is not run where training is protected
