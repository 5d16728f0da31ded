"""What an audit of given trees and networks says, from made-up records, and that a real one says it."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import pytest
from commandline import Run, strict, vflens

from vflens.experiments.audit.given_run import columns_table, decision, explained, sentences, write_given
from vflens.experiments.outcome.finding import Finding, Quantity
from vflens.types import Document

_FIXTURES = (vflens,)  # used by name
ROOT = Path(__file__).parents[4]
BANK = ROOT / "examples/bank_passive.csv"
TREES = ROOT / "examples/recorded/xgboost/bank.ubj"
MINE = ("--columns", "age,income,credit_score")
LEAK = {"most_leak": 0.2, "least_error": None, "most_loss": 0.01}
ERROR = {"most_leak": None, "least_error": 0.08, "most_loss": 0.01}


def _attack(released: str, mse: float, *, name: str = "pra") -> Document:
    paths = {"right_branches": 0.9, "determined": 0.5, "unfinished": 0.0, "widths": [0.5, 0.25]}
    return {
        **{"attack": name, "released": released, "rows": 60, "mse": mse, "low": mse, "high": mse},
        **{"leak": max(1 - mse / 0.1, 0.0), "column": "income", "alike": 1.0, "models": 1},
        **(paths if name == "pra" else {"residual": 0.0}),
    }


def _made_up(*attacks: Document, wanted: Document = LEAK) -> Document:
    best = min(attacks, key=lambda a: a["mse"])
    error: dict[str, Any] = {"value": 5.0, "low": 4.0, "high": 6.0, "blind": 22.0}
    place: dict[str, Any] = {
        "attack": best["attack"],
        "scored_set": "predict",
        "target": "mine.csv",
        "rows": 60,
    }
    of_income = Finding(quantity=Quantity.ERROR, subject="income", **place, **error)
    own = {
        "finding": of_income.json,
        "found": "to within ± 5.0",
        "guessed": "to within ± 22",
        "attack": best["attack"],
    }
    own["words"] = "income to within ± 5.0 (root mean squared error), a blind guess to within ± 22"
    noise: Document = {**own, "column": "noise", "share": 0.0, "released": best["released"]}
    return {
        **{"subject": "mine.csv", "weights": "m.ubj", "model": "2 boosted trees", "clipped": 0},
        **{
            "columns": ["noise", "income"],
            "categories": {},
            "units": [4.0, 100.0],
            "column_blind": [0.1, 0.1],
        },
        **{"attacks": list(attacks), "wanted": wanted, "blind": {"half": 0.1}, "blind_guess": "half"},
        "own_units": [
            {**own, "column": "income", "share": best["leak"], "released": best["released"]},
            noise,
        ],
        **{"rows": 60, "table_rows": 60},
        **{"blind_branches": 0.6, "others_drawn": False, "worst_cases": [], "tells": [], "tolerance": {}},
    }


@pytest.mark.parametrize(
    ("found", "words"),
    [
        (
            _made_up(_attack("score", 0.095), _attack("leaves", 0.09)),
            "Join as planned, if nobody saw the messages of training: the worst column, income, gives away "
            "at most 10 % of what a guess leaves open (you allow 20 %).",
        ),
        (
            _made_up(_attack("score", 0.12), _attack("leaves", 0.02)),
            "Join with the score alone released, if nobody saw the messages of training: the worst column "
            "gives away at most 0 % of what a guess leaves open (you allow 20 %); from the leaves the worst "
            "column, income, gives away up to 80 % of what a guess leaves open (you allow 20 %).",
        ),
        (
            _made_up(_attack("score", 0.06), _attack("leaves", 0.02)),
            "Do not join as planned: from the score the worst column, income, gives away up to 40 % of what "
            "a guess leaves open (you allow 20 %), and no defence is measured on a model of another "
            "framework.",
        ),
        (
            _made_up(_attack("probabilities", 0.085, name="wmi"), wanted=ERROR),
            "Join as planned, if nobody saw the messages of training: the strongest attack that ran errs "
            "by .085 "
            "(you ask for .080).",
        ),
        (
            _made_up(_attack("outputs", 0.0, name="wmi"), wanted=ERROR),
            "Do not join as planned: from the outputs the strongest attack that ran errs by .000 (you "
            "ask for "
            ".080), and no defence is measured on a model of another framework.",
        ),
    ],
)  # fmt: skip
def test_whether_to_join_in_every_case(found: Document, words: str, tmp_path: Path) -> None:
    assert decision(found) == words
    assert sentences(found)[0] == words
    write_given(found, tmp_path / "a.html")
    page = html.unescape((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert f"<h1>{words}</h1>" in page
    may_join = words.startswith("Join")
    assert ('<section id="verdict" class="blind">' in page) == may_join
    assert ('<section id="verdict" class="leaks">' in page) != may_join


def test_columns_stand_in_their_own_unit() -> None:
    found = _made_up(_attack("score", 0.06), _attack("leaves", 0.02))
    assert columns_table(found) == [
        ("column", "found", "blind guess", "taken", "from", "width, score", "width, leaves"),
        ("income", "to within ± 5.0", "to within ± 22", "80 %", "leaves", "25", "25"),
        ("noise", "to within ± 5.0", "to within ± 22", "0 %", "–", "2.0", "2.0"),
    ]
    assert sentences(found)[1].startswith("2 of 2 columns found. Read: all 60 rows.")


def test_each_attack_has_a_line() -> None:
    assert explained(_made_up(_attack("score", 0.1)))["pra"].startswith("Path restriction: ")
    assert "inversion" in explained(_made_up(_attack("outputs", 0.1, name="wmi")))["wmi"].lower()


def test_a_real_one_says_it_everywhere(tmp_path: Path, vflens: Run) -> None:
    given: list[Any] = [
        *MINE,
        "--weights",
        TREES,
        "--rows",
        30,
        "--tolerance",
        "age=5",
        "--out",
        tmp_path / "a.html",
    ]
    found = strict(vflens("audit", BANK, *given, "--json").out)
    shown = vflens("audit", BANK, *given).out
    assert found["verdict"][0] == decision(found)
    assert found["verdict"][0].startswith("Do not join as planned: from the ")
    assert all(sentence in shown for sentence in found["verdict"])
    worst, *_ = found["own_units"]
    blind = found["column_blind"][found["columns"].index(worst["column"])]
    unit = found["units"][found["columns"].index(worst["column"])]
    assert worst["blind"] == pytest.approx(unit * blind**0.5)
    assert found["verdict"][1].startswith("0 of 3 columns found; ")  # thirty rows decide nothing
    by_score, by_leaves = found["attacks"]
    for attack in (by_score, by_leaves):
        assert attack["leak"] == pytest.approx(
            max(1 - e / b for e, b in zip(attack["columns"], attack["column_blind"], strict=True))
        )
    assert found["tolerance"]["age"] == pytest.approx(5.0)
    assert found["worst_cases"][0]["words"] not in shown
    assert found["worst_cases"][0]["words"] in vflens("audit", BANK, *given, "--details").out
    assert strict((tmp_path / "a.exposed.json").read_text())["predict"]["pra"][0].startswith("c")
    easy = vflens("audit", BANK, *given, "--most-leak", 1).out
    assert "Join as planned, if nobody saw the messages of training: the worst column, " in easy
