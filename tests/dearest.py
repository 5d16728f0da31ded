"""What the dearest tests cost and prove: ``make test-dearest`` writes ``tests/dearest.txt``.

Each line holds a test, its processor seconds and what it proves. As a plug-in (``-p dearest``) this notes
each test, its fixtures included, in ``build/spent.txt``. The cells of a grid count as one test.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path

import pytest
from costs import used

HERE = Path(__file__).parent
LEDGER, SPENT = HERE / "dearest.txt", HERE.parent / "build/spent.txt"
KEPT, WORDS = 100, 10


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note what a test cost; all workers append to one file."""
    before = used()
    result = yield
    SPENT.parent.mkdir(exist_ok=True)
    with SPENT.open("a", encoding="utf-8") as file:
        file.write(f"{item.nodeid.partition('[')[0]}\t{used() - before:.2f}\t{_proves(item)}\n")
    return result


def _proves(item: pytest.Item) -> str:
    """The beginning of its docstring, else its name."""
    name = item.name.partition("[")[0].removeprefix("test_").replace("_", " ")
    words = (getattr(getattr(item, "obj", None), "__doc__", None) or name).split()
    return " ".join(words[:WORDS])


def ledger(notes: list[str]) -> list[str]:
    """A line for each of the dearest, the dearest first."""
    spent: dict[tuple[str, str], float] = {}
    for test, seconds, proves in (note.split("\t") for note in notes):
        spent[test, proves] = spent.get((test, proves), 0.0) + float(seconds)
    dearest = sorted(spent, key=lambda test: (-spent[test], test))[:KEPT]
    return [f"{test.removeprefix('tests/')}\t{spent[test, proves]:.1f}\t{proves}" for test, proves in dearest]


if __name__ == "__main__":
    lines = ledger(SPENT.read_text(encoding="utf-8").splitlines())
    LEDGER.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
