"""Six tables whose leak is known by construction: no route says found of nothing, or not found of a leak.

`make truth` asks the same of forty.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from truth.constructions import LEAKING, NOTHING, Built
from truth.lab import Laboratory
from truth.routes import few_defences, said_of

from vflens.experiments.audit import defenses

TABLES = {built.name: built for built in (*NOTHING, *LEAKING)}
_SMALL = (
    "three constants",
    "one class released, two-valued",
    "weights of zero, two-valued",
    "flag of 0.2 %",
    "skewed",
    "30 uniform",
)


def test_half_of_them_leak() -> None:
    assert (len(NOTHING), len(LEAKING), len(TABLES)) == (20, 20, 40)
    assert {t.leaks for t in NOTHING} == {False}
    assert {t.leaks for t in LEAKING} == {True}


@pytest.mark.parametrize("built", [TABLES[name] for name in _SMALL], ids=_SMALL)
def test_what_is_said_is_true(built: Built, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("candidates", "COST_MODELS"):
        monkeypatch.setattr(defenses, name, getattr(defenses, name))
    few_defences()
    lab = Laboratory(built, tmp_path)
    assert lab.contradictions() == []  # the oracle finds what the table claims
    found = said_of(lab, clear=not built.protected)
    assert len(found) > 3
    wrong = [s for s in found if s.verdict.startswith("false") or "no number" in s.verdict]
    assert wrong == []
    assert any(s.verdict == "right" for s in found if s.route == "run")
    assert any(s.state == "leaks" for s in found if s.route == "run") is built.leaks
