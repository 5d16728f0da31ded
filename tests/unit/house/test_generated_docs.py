"""What scripts write into the docs is in step with them: tables and pictures."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path
from types import ModuleType

import pytest
import scoreboard_page

from vflens.errors import exit_codes
from vflens.experiments.figures.fedadob import printed
from vflens.experiments.scoreboard.grid import ScoreboardGrid
from vflens.storage.arrow import parquet_rows

ROOT = Path(__file__).parents[3]


def test_drawn_pictures_are_in_step() -> None:
    """Those that take seconds; the others measure whole runs."""
    rooms = _script("architecture_picture")
    drawn = {
        **{name: rooms.picture(sheet) for name, sheet in rooms.SHEETS.items()},
        "estimators.svg": _script("estimators_picture").picture(),
        "attacks/black_box.svg": _script("plugin_pictures").black_box_errors(),
    }
    for name, svg in drawn.items():
        assert (ROOT / "docs" / name).read_text(encoding="utf-8") == svg, f"docs/{name}: draw it again"


def _script(name: str) -> ModuleType:
    """A module of docs/, which is no package."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", ROOT / "docs" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PAPERS = (printed.CAPS, printed.LARGEST_MEANS, printed.VARIANCES, printed.BLACK_BOX_ERRORS)
DECIMAL, MEASURED = re.compile(r"(?<![\w.])\d*\.\d+"), re.compile(r"\d+(?= (?:points|s|minutes|hours)\b)|±")


def _figures_of_our_own(prose: str) -> list[str]:
    """Figures outside of kept output but for the paper's, which stand in the first column of a table."""
    values = [v for table in PAPERS for numbers in table.values() for v in numbers if v is not None]
    papers = {f"{v:.{digits}f}"[v < 1 :] for v in values for digits in (3, 4)}
    found = []
    for line in prose.splitlines():
        first, _, others = line.strip("|").partition("|") if line.startswith("|") else ("", "", line)
        found += [n for n in DECIMAL.findall(first) if n not in papers]
        found += [*DECIMAL.findall(others), *MEASURED.findall(others)]
    return found


def test_figures_of_fedadob_are_the_papers_or_in_kept_output() -> None:
    page = (ROOT / "docs/reproduces.md").read_text(encoding="utf-8")
    part = page[page.index("## FedAdOb, vertical") : page.index("## Time\n")]
    prose, blocks = re.subn(r"<!-- table: fao-.*?<!-- end -->", "", part, flags=re.DOTALL)
    assert blocks == len([name for name in _script("tables").REPRODUCED if name.startswith("fao-")])
    assert _figures_of_our_own(prose.partition("### At the paper's size")[0]) == []
    assert _figures_of_our_own(prose.partition("## FedAdOb, horizontal")[2]) == []
    assert len(DECIMAL.findall(prose)) > 5


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("| FedAdOb errs .071 against BMI | more |", []),
        ("| FedAdOb errs .072 against BMI | more |", [".072"]),
        ("| it errs more | .071 |", [".071"]),
        ("| it errs more, .137 ± .002 | .5 ± .1 |", [".5", ".1", "±"]),
        ("FedAdOb errs .071.", [".071"]),
        ("It loses 19 points in 60 s.", ["19", "60"]),
    ],
)
def test_another_figure_is_found(line: str, found: list[str]) -> None:
    assert _figures_of_our_own(line) == found


def test_generated_tables_are_in_step() -> None:
    tables = _script("tables")
    named: set[str] = set()
    for page in tables.PAGES:
        text = (ROOT / "docs" / page).read_text(encoding="utf-8")
        assert "Undefined" not in text, f"docs/{page}: a default that nobody set"
        named |= set(re.findall(r"<!-- table: ([\w-]+) -->", text))
        assert tables.written(text) == text, f"{page}: run `python docs/tables.py`"
    assert named == {
        "access",
        "direct",
        "shares",
        "horizontal",
        "commands",
        "codes",
        "metrics",
        *(m.__name__ for m in tables.MODELS),
        *tables.REPRODUCED,
        *(f"knows-{defense}" for defense in tables.KNOWN),
    }
    assert tables.REPRODUCED


def test_every_exit_code_has_a_remedy_and_nothing_else_has() -> None:
    tables = _script("tables")
    assert list(tables.COMMANDS["remedies"]) == list(exit_codes().values())
    rows = [line.split(" | ") for line in tables.table("codes").splitlines()[2:]]
    assert [row[1] for row in rows if not row[3].strip()] == ["done"]


def test_every_command_of_the_help_stands_on_its_page_and_no_other() -> None:
    tables = _script("tables")
    listed = re.findall(r"^\| `vflens ([a-z -]+?)(?: [\[A-Z].*)?` \|", tables.table("commands"), re.MULTILINE)
    assert {"audit", "certs sign", "verify-log"} <= set(listed)
    assert not {"audit-log", "import-flower"} & set(listed)
    assert set(tables.COMMANDS["more"]) <= set(listed)


def test_the_scoreboards_page_is_made_of_its_results() -> None:
    rows = parquet_rows(ROOT / "docs/scoreboard.parquet")
    assert len({row["key"] for row in rows}) > 1000
    records = {file.stem: json.loads(file.read_text()) for file in (ROOT / "docs/reproduced").glob("*.json")}
    written = (
        scoreboard_page.page(ScoreboardGrid(), rows, records),
        (ROOT / "docs/scoreboard.md").read_text(),
    )
    ours, committed = (re.sub(r"(?s)when this page was written.*?not known", "", text) for text in written)
    assert ours == committed  # but for the age: the code has changed since
