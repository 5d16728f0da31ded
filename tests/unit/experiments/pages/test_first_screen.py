"""The report and the audit's page answer on the first screen, of a desk and of a phone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from axe import serious
from browser import chromium, page
from playwright.sync_api import Page
from runfolder import metric, scores, write_party, write_run
from thinned import first

from vflens.experiments.audit.bench import Plan
from vflens.experiments.audit.run import audit
from vflens.experiments.audit.subject import AuditSubject
from vflens.experiments.audit.words import write_audit
from vflens.experiments.pages.report import write_report
from vflens.experiments.results.clear_training import untried
from vflens.experiments.results.record import read_runs
from vflens.storage.metrics import Name
from vflens.types import ColumnInfo

_FIXTURES = (chromium, page)  # used by name
SCREENS = [(1280, 800), (390, 844)]


def bottom(page: Page, text: str) -> float:
    """Where the paragraph of the verdict that begins with ``text`` ends, in pixels."""
    box = page.locator("#verdict > *", has_text=text).first.bounding_box()
    assert box is not None
    return box["y"] + box["height"]


def with_units(folder: Path, errors: dict[str, float], **more: object) -> Path:
    """A run whose target knows that 1 of its scaled column pixel_2_5 stands for 200."""
    run = write_run(folder, errors, **more)  # type: ignore[arg-type]
    where = {"target": "passive", "scored_set": "predict", "rows": 360}
    units = [
        metric(Name.COLUMN_UNIT, 200.0, column="pixel_2_5", **where),
        *(metric("column_mse", 0.01, column="pixel_2_5", attack=a, **where) for a in errors),
        *(metric("column_mse_stderr", 1e-4, column="pixel_2_5", attack=a, **where) for a in errors),
    ]
    write_party(run / "passive", "passive", metrics=[*scores(errors), *units])
    return run


@pytest.mark.parametrize(("width", "height"), first(SCREENS))
def test_a_report_answers_on_the_first_screen(page: Page, tmp_path: Path, width: int, height: int) -> None:
    digits = [{"name": "round_scores", "digits": 1}], [{"name": "round_scores", "digits": 2}]
    runs = [
        with_units(tmp_path / "plain", {"ls": 0.01}),
        with_units(tmp_path / "one", {"ls": 0.07}, defenses=digits[0]),
        with_units(tmp_path / "two", {"ls": 0.05}, defenses=digits[1]),
    ]
    write_report(runs, tmp_path / "report.html")
    page.set_viewport_size({"width": width, "height": height})
    page.goto((tmp_path / "report.html").as_uri())
    for answer in (
        "reconstructs",
        "finds pixel_2_5 at the passive party to within ± 20",
        "Best defence here: round_scores",
    ):
        assert bottom(page, answer) <= height, answer
    assert page.locator("#verdict .numbers-are").count() == 1
    assert serious(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.fixture
def audited(few_defences: None, tmp_path: Path) -> Path:
    """The page of an audit of random rows."""
    rng = np.random.default_rng(0)
    columns = tuple(ColumnInfo(name, 0.0, 100.0) for name in ("age", "income"))
    subject = AuditSubject("mine.csv", columns, rng.uniform(size=(120, 2)), 3)
    found = audit(subject, Plan(models=2, known=20, rows=120, seed=0), lambda *_: None)
    file = tmp_path / "audit.html"
    write_audit(found, file)
    return file


@pytest.mark.parametrize(("width", "height"), first(SCREENS))
def test_an_audit_answers_on_the_first_screen(page: Page, audited: Path, width: int, height: int) -> None:
    page.set_viewport_size({"width": width, "height": height})
    page.goto(audited.as_uri())
    for answer in ("join", " found. Read: ", "efence", "Percentages: "):
        assert bottom(page, answer) <= height, answer
    assert serious(page) == []


def test_a_page_says_that_no_defence_was_tried(tmp_path: Path) -> None:
    plain = read_runs([write_run(tmp_path / "plain")])
    rounded = read_runs([write_run(tmp_path / "one", defenses=[{"name": "round_scores", "digits": 1}])])
    assert untried(plain) == "No defence was tried."
    assert untried([*plain, *rounded]) == ""
    assert untried(read_runs([write_run(tmp_path / "nothing", {})])) == ""
