"""The ledger of the dearest tests."""

from __future__ import annotations

from dearest import KEPT, ledger


def test_the_dearest_stand_first_and_a_grid_is_one_test() -> None:
    notes = [
        "tests/a.py::test_x\t1.00\twhat",
        "tests/a.py::test_y\t1.50\tthat",
        "tests/a.py::test_x\t1.25\twhat",
    ]
    assert ledger(notes) == ["a.py::test_x\t2.2\twhat", "a.py::test_y\t1.5\tthat"]


def test_a_hundred_are_kept() -> None:
    assert len(ledger([f"tests/a.py::test_{n}\t{n}\tit" for n in range(KEPT + 1)])) == KEPT
