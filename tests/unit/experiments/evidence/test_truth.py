"""Six tables whose leak is known by construction: no route says found of nothing, or not found of a leak.

`make truth` asks the same of forty.
"""

from __future__ import annotations

import pytest
from truth.constructions import LEAKING, NOTHING, Built
from truth.routes import few_defences, said_of

from vflens.experiments.audit import defenses

TABLES = {built.name: built for built in (*NOTHING, *LEAKING)}
_SMALL = (
    "three constants",
    "one class released, two-valued",
    "one class released, uniform",
    "flag of 1 %",
    "skewed",
    "a sum of two",
)


def test_half_of_them_leak() -> None:
    assert (len(NOTHING), len(LEAKING), len(TABLES)) == (20, 20, 40)
    assert {t.leaks for t in NOTHING} == {False}
    assert {t.leaks for t in LEAKING} == {True}


@pytest.mark.parametrize("built", [TABLES[name] for name in _SMALL], ids=_SMALL)
def test_what_is_said_is_true(built: Built, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("candidates", "COST_MODELS"):
        monkeypatch.setattr(defenses, name, getattr(defenses, name))
    few_defences()
    found = said_of(built, clear=not built.protected)
    assert len(found) > 5
    wrong = [s for s in found if s.verdict.startswith("false") or "no number" in s.verdict]
    assert wrong == []
    if built.leaks:
        assert any(s.state == "leaks" for s in found if s.route == "run")
    else:
        assert [s for s in found if s.route == "run" and s.state == "leaks"] == []
