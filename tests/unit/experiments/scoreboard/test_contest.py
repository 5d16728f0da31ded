"""The scoreboard as a contest: published figures, what changed, and every result, from made-up rows."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from commandline import Run
from scoreboard_parity import PARITY, parity_tables
from scoreboard_rows import renewed

from vflens.experiments.scoreboard.changes import changes, said
from vflens.experiments.scoreboard.explorer import explored
from vflens.experiments.scoreboard.grid import UNDEFENDED, ScoreboardGrid
from vflens.experiments.sweeps.pool import Rows, write_rows

DOCS = Path(__file__).parents[4] / "docs"
GRID = ScoreboardGrid(("bank",), ("vertical-lr",))
STRONG, HALF, BLIND = (0.2,) * 5, (0.5,) * 5, (1.0, 1.1, 0.9, 1.0, 1.0)


def made(attack: str, figures: Sequence[float], defense: str = UNDEFENDED, **more: Any) -> Rows:
    place = {"data": "bank", "federation": "vertical-lr", "defense": defense, "sample": 400}
    shared = {
        **place,
        "attack": attack,
        "target": "passive",
        "measure": "MSE",
        "rows": "predict",
        "blind": 1.0,
    }
    return [{**shared, "seed": seed, "figure": figure, **more} for seed, figure in enumerate(figures)]


# -- published figures --------------------------------------------------------------------------------------


def _records() -> dict[str, Any]:
    return {file.stem: json.loads(file.read_text()) for file in (DOCS / "reproduced").glob("*.json")}


def test_at_least_five_published_settings_stand_beside_ours() -> None:
    lines = [line for line in (published.line(_records()) for published in PARITY) if line is not None]
    beside = [line for line in lines if re.match(r"[>.\d]", line[2]) and re.match(r"[.\d]", line[3])]
    assert len(beside) >= 5
    assert len(lines) == len(PARITY)


def test_ours_is_what_the_command_recorded() -> None:
    heads = ["method", "accuracy", "BMI, paper", "BMI, ours", "blind"]
    table = {"title": "cnn on digits beside …", "heads": heads, "rows": [["SplitFed", "1", "2", "3", "4"]]}
    found = next(p for p in PARITY if p.row == "SplitFed")
    line = found.line({found.command: {"tables": [table]}})
    assert line is not None
    assert line[2:6] == ["2", "3", "4", "–"]
    assert found.line({found.command: {"tables": []}}) is None
    assert parity_tables([], {}) == []


# -- what changed -------------------------------------------------------------------------------------------


def test_what_changed_is_found_by_comparing_two_files() -> None:
    plain = made("ls", HALF) + made("rcc1", (0.6,) * 5)
    old = plain + made("ls", BLIND, "max_norm") + made("rcc1", BLIND, "max_norm")
    new = [row for row in old if row["attack"] != "rcc1" or row["defense"] != UNDEFENDED]
    new += made("rcc1", STRONG) + made("half_star", (0.3,) * 5) + made("ls", BLIND, "averaging")
    found = changes(old, new, GRID)
    assert found["new"] == {"attack": ["half_star"], "defense": ["averaging"]}
    threat = "Vertical, with what is granted"
    assert found["places"] == [[threat, "half_star", (2, 3)]]
    assert sorted(found["ranks"]) == [[threat, "ls", (1, 2), (2, 2)], [threat, "rcc1", (2, 2), (1, 2)]]
    where = "Vertical, softmax regression, bank"
    assert [v[1] for v in found["verdicts"]] == [UNDEFENDED]
    text = said(found)
    assert f"- {where}, `{UNDEFENDED}`, columns: rcc1 finds part" in text
    assert f"{threat}: `half_star` has rank 2 of 3" in text


def test_tuned_rows_change_no_rank_and_are_no_attack() -> None:
    rows = made("ls", HALF) + made("cls", (0.6,) * 5)
    assert said(changes(rows, rows + made("cls:tuned", STRONG), GRID)) == "Nothing that the page states."


def test_the_same_results_have_not_changed() -> None:
    rows = made("ls", HALF) + made("ls", BLIND, "max_norm")
    nudged = [{**row, "figure": row["figure"] + 1e-4} for row in rows]
    assert said(changes(rows, rows, GRID)) == "Nothing that the page states."
    assert said(changes(rows, nudged, GRID)) == "Nothing that the page states."


def test_a_file_that_is_no_scoreboard_is_refused_in_a_sentence(vflens: Run, tmp_path: Path) -> None:
    file = tmp_path / "other.parquet"
    write_rows(file, [{"some": 1}])
    facts = [vflens("scoreboard", "--since", of).err for of in (file, tmp_path)]
    facts.append(vflens("scoreboard").err)
    assert "not the results of a scoreboard, give its scoreboard.parquet" in facts[0]
    assert "no Parquet file that can be read, give one" in facts[1]
    assert "give one of --attack FILE, --defense FILE, --page FILE.html and --since FILE.parquet" in facts[2]


def test_new_rows_take_the_place_of_their_own_only() -> None:
    old = made("ls", HALF) + made("ls", HALF, "max_norm") + made("rcc1", HALF)
    new = made("ls", STRONG)
    rows = renewed(old, new)
    assert len(rows) == len(old)
    assert [r["figure"] for r in rows if (r["attack"], r["defense"]) == ("ls", UNDEFENDED)] == list(STRONG)
    assert [r["figure"] for r in rows if r["defense"] == "max_norm"] == list(HALF)


# -- every result -------------------------------------------------------------------------------------------


def test_every_result_is_on_the_page_with_its_relative_error() -> None:
    rows = made("ls", HALF) + made("gradient_sign", (0.9,), measure="accuracy", blind=0.6)
    rows += made("property_guess", (0.3,), measure="distance", blind=0.2)
    rows += made("ls", (0.1,), "max_norm", blind=None, figure=None)  # no result
    text = explored(rows, data="scoreboard.parquet", command="again")
    packed = re.search(r'<script type="application/json" class="rows">(.*?)</script>', text)
    assert packed is not None
    found = json.loads(packed[1])
    table = [dict(zip(found["heads"], row, strict=True)) for row in found["rows"]]
    assert len(table) == 7
    assert {(r["attack"], r["estimates"], r["relative"]) for r in table} == {
        ("ls", "columns", 0.5),
        ("gradient_sign", "labels", 0.25),
        ("property_guess", "column means", 1.5),
    }
    assert {r["federation"] for r in table} == {"Vertical, softmax regression"}
    assert [r["share"] for r in table if r["attack"] == "gradient_sign"] == [0.9]


def _plots(text: str) -> list[Any]:
    return [json.loads(spec) for spec in re.findall(r'<script type="application/json">(.*?)</script>', text)]


def test_the_page_opens_on_defences_by_leak_and_price_each_a_named_mark() -> None:
    rows = made("ls", (0.1,) * 5) + made("ls", HALF, "max_norm") + made("half", (0.3,) * 5, "label_dp")
    rows += made("ls", (0.7,) * 5, "label_dp") + made("half", HALF)
    for defense, figure in {UNDEFENDED: 0.9, "max_norm": 0.8, "label_dp": 0.6}.items():
        cost = {"attack": "cost", "defense": defense, "blind": None, "measure": "AUC", "alone": 0.5}
        rows += [{**rows[0], **cost, "figure": figure, "seed": seed} for seed in range(10)]
    text = explored(rows, data="scoreboard.parquet", command="again")
    first, *_ = _plots(text)
    (marks,) = first["data"]
    names = dict(zip(marks["text"], zip(marks["x"], marks["y"], strict=True), strict=True))
    assert marks["mode"] == "markers+text"
    assert names.keys() == {UNDEFENDED, "max_norm", "label_dp"}
    assert names["max_norm"] == (pytest.approx(0.1), pytest.approx(0.5))
    assert names["label_dp"] == (pytest.approx(0.3), pytest.approx(0.3))  # the strongest attack's
    assert names[UNDEFENDED] == (0, pytest.approx(0.1))
    assert first["layout"]["xaxis"]["title"]["text"] == "price: AUC lost"
    before, ranks, explorer, hidden = (
        text.index(part)
        for part in ("defences by leak", "Attacks by rank", 'id="explorer"', "what defences hide")
    )
    assert before < ranks < explorer < hidden


def test_reasons_stand_on_the_page() -> None:
    rows = made("ls", HALF) + made("gia", HALF, figure=None, blind=None, reason="no <b> here", refused=False)
    text = explored(rows, data="scoreboard.parquet", command="again")
    assert "Vertical, softmax regression, bank, gia: no &lt;b&gt; here" in text
