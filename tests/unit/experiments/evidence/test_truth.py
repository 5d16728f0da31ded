"""Four tables whose leak is known by construction: no route says found of nothing, or not found of a leak.

`make truth` asks the same of forty.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest
from thinned import first
from truth import oracle
from truth.constructions import LEAKING, NOTHING, Built, Claims
from truth.lab import Laboratory
from truth.routes import few_defences, said_of

from vflens.experiments.audit import defenses

TABLES = {built.name: built for built in (*NOTHING, *LEAKING)}
#: Tables → seeds. Of "30 uniform" with this seed a model gives away .18 of its worst column on average, and
#: one in twenty .26 or more: a mean would say join, at .2 allowed.
_SMALL = {"one constant": 0, "one class released, two-valued": 0, "flag of 0.2 %": 0, "30 uniform": 1}
_ROWS = 6000  # of the oracle: a quarter, which its margins bear


def test_half_of_them_leak() -> None:
    assert (len(NOTHING), len(LEAKING), len(TABLES)) == (20, 20, 40)
    assert {t.leaks for t in NOTHING} == {False}
    assert {t.leaks for t in LEAKING} == {True}


@pytest.mark.parametrize("built", first((TABLES[name] for name in _SMALL), 2), ids=_SMALL)
def test_what_is_said_is_true(built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("candidates", "COST_MODELS"):
        monkeypatch.setattr(defenses, name, getattr(defenses, name))
    monkeypatch.setattr(oracle, "ROWS", _ROWS)
    few_defences()
    lab = Laboratory(built, tmp_path, seed=_SMALL[built.name])
    assert lab.contradictions() == []  # the oracle finds what the table claims
    found = said_of(lab, clear=False)
    assert len(found) > 3
    wrong = [s for s in found if s.verdict.startswith("false") or "no number" in s.verdict]
    assert wrong == []
    assert any(s.verdict == "right" for s in found if s.route == "run")
    assert any(s.state == "leaks" for s in found if s.route == "run") is built.leaks
    if built.claims.audit == "all":  # enough rows of a rare value are drawn to decide on it
        assert {s.state for s in found if s.route != "run"} == {"leaks"}


def test_a_table_of_weights_of_zero_is_null_in_its_run(tmp_path: Path) -> None:
    lab = Laboratory(TABLES["weights of zero, skewed"], tmp_path)
    assert lab.contradictions() == []
    assert not lab._released().any()


@pytest.mark.facts
def test_a_claim_that_the_oracle_contradicts_is_named(tmp_path: Path) -> None:
    built = dataclasses.replace(TABLES["skewed"], claims=Claims("none", "none", "none"))
    assert len(Laboratory(built, tmp_path).contradictions()) == 3
    fixed = dataclasses.replace(TABLES["one constant"], claims=Claims())
    (tmp_path / "fixed").mkdir()
    assert len(Laboratory(fixed, tmp_path / "fixed").contradictions()) == 3
