"""What an audit of given trees and networks says, from made-up records, and that a real one says it."""

from __future__ import annotations

import html
from pathlib import Path
from typing import Any

import pytest
from audits import audit_record, outcome
from commandline import Run, strict, vflens

from vflens.experiments.audit.advice import decision
from vflens.experiments.audit.bench import Wanted
from vflens.experiments.audit.charts import columns_table
from vflens.experiments.audit.outcomes import AttackOutcome, Paths
from vflens.experiments.audit.record import AuditRecord, TreeFile
from vflens.experiments.audit.words import explained, sentences, write_audit
from vflens.experiments.outcome.finding import Finding, Quantity

_FIXTURES = (vflens,)  # used by name
ROOT = Path(__file__).parents[4]
BANK = ROOT / "examples/bank_passive.csv"
TREES = ROOT / "examples/recorded/xgboost/bank.ubj"
MINE = ("--columns", "age,income,credit_score")
LEAK = Wanted(0.2, None, 0.01)
ERROR = Wanted(None, 0.08, 0.01)


def _attack(released: str, mse: float, *, name: str = "pra") -> AttackOutcome:
    paths = Paths(widths=(0.5, 0.25), right_branches=0.9, determined=0.5, unfinished=0.0)
    leak = max(1 - mse / 0.1, 0.0)
    facts: dict[str, Any] = {"released": released, "rows": 60, "leak": leak, "column": "income"}
    own: dict[str, Any] = {"paths": paths} if name == "pra" else {"residual": 0.0}
    return outcome(name, mse, 2, **facts, **own)


def _made_up(*attacks: AttackOutcome, wanted: Wanted = LEAK) -> AuditRecord:
    best = min(attacks, key=lambda a: a.mse)
    value = 22 * (1 - best.leak) ** 0.5
    error: dict[str, Any] = {"value": value, "low": value, "high": value, "blind": 22.0}
    place: dict[str, Any] = {
        **{"attack": best.attack, "scored_set": "predict", "target": "mine.csv", "rows": 60},
        "released": best.released,
    }
    income = Finding(quantity=Quantity.ERROR, subject="income", **place, **error)
    noise = Finding(
        quantity=Quantity.ERROR,
        subject="noise",
        **place,
        **{**error, "value": 23.0, "low": 22.5, "high": 23.5},
    )
    return audit_record(
        *attacks,
        **{"weights": "m.ubj", "model": "2 boosted trees", "rows": 60, "table_rows": 60},
        **{"columns": ("noise", "income"), "units": (4.0, 100.0), "column_blind": (0.1, 0.1)},
        **{"wanted": wanted, "blind": {"half": 0.1}, "blind_guess": "half", "by_column": (income, noise)},
        trees=TreeFile([], {}, None, 0, unused_trees=0, blind_branches=0.6),
    )


@pytest.mark.parametrize(
    ("record", "words"),
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
def test_whether_to_join_in_every_case(record: AuditRecord, words: str, tmp_path: Path) -> None:
    assert decision(record) == words
    assert sentences(record)[0] == words
    write_audit(record, tmp_path / "a.html")
    page = html.unescape((tmp_path / "a.html").read_text(encoding="utf-8"))
    assert f"<h1>{words}</h1>" in page
    may_join = words.startswith("Join")
    assert ('<section id="verdict" class="blind">' in page) == may_join
    assert ('<section id="verdict" class="leaks">' in page) != may_join


def test_columns_stand_in_their_own_unit() -> None:
    record = _made_up(_attack("score", 0.06), _attack("leaves", 0.02))
    assert columns_table(record) == [
        ("column", "found", "blind guess", "taken", "from", "width, score", "width, leaves"),
        ("income", "to within ± 9.8", "to within ± 22", "80 %", "leaves", "25", "25"),
        ("noise", "not better than a guess", "to within ± 22", "0 %", "–", "2.0", "2.0"),
    ]
    assert sentences(record)[1].startswith("1 of 2 columns found; noise not. Read: all 60 rows.")


def test_each_attack_has_a_line() -> None:
    assert explained(_made_up(_attack("score", 0.1)))["pra"].startswith("Path restriction: ")
    assert "inversion" in explained(_made_up(_attack("outputs", 0.1, name="wmi")))["wmi"].lower()


@pytest.mark.facts
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
