"""The page of an own audit refuses as the terminal does, each time at the field that is wrong."""

from __future__ import annotations

import shutil
import socket
from pathlib import Path
from typing import Any

import pytest
from axe import serious
from browser import chromium, page
from commandline import Refused, refused
from playwright.sync_api import Page, expect
from test_own_audit import FORM, MINUTES, finished, serving, tab_to, table

from vflens.errors import ConfigError, VflensError
from vflens.experiments.watch.own_audit import OwnAudit
from vflens.experiments.watch.own_audit_form import FieldError

_FIXTURES = (chromium, page, refused)  # used by name
ROOT = Path(__file__).parents[4]
BANK, TREES = ROOT / "examples/bank_passive.csv", ROOT / "examples/recorded/xgboost/bank.ubj"
#: What the form has, the field at which it is refused, and the same on a terminal.
TERMINAL: list[tuple[dict[str, Any], str, list[str]]] = [
    ({"thresholds": ["age > 101 %"]}, "thresholds", ["--fail-if", "age > 101 %"]),
    ({"thresholds": ["age > blnd"]}, "thresholds", ["--fail-if", "age > blnd"]),
    ({"thresholds": ["age within 5 > 1 %", "age within 6 > 1 %"]}, "thresholds",
     ["--fail-if", "age within 5 > 1 %", "--fail-if", "age within 6 > 1 %"]),
    ({"thresholds": ["agee > 1 %"]}, "thresholds", ["--fail-if", "agee > 1 %"]),
    ({"known": 59}, "known", ["--known", "59"]),
]  # fmt: skip


@pytest.fixture
def own(tmp_path: Path) -> OwnAudit:
    """An audit's page, still without a table."""
    (tmp_path / "own").mkdir()
    return OwnAudit(tmp_path / "own")


def give(own: OwnAudit, file: Path, *, model: bool = False) -> dict[str, Any]:
    """Send ``file``; what the page is told of it."""
    place = own.place(file.name, model=model)
    shutil.copy(file, place)
    return own.take_weights(place) if model else own.take(place)


def refusal(own: OwnAudit, form: dict[str, Any]) -> tuple[str, str]:
    """Field and words of a form's refusal, at once or by the audit."""
    try:
        own.start(form)
    except FieldError as error:
        assert own.state == {"state": "described"}
        return error.field, str(error)
    state = finished(own)
    assert state["state"] == "refused"
    return state["field"], state["words"]


@pytest.mark.parametrize("case", TERMINAL)
def test_a_form_is_refused_at_its_field_as_on_a_terminal(
    own: OwnAudit, tmp_path: Path, refused: Refused, case: tuple[dict[str, Any], str, list[str]]
) -> None:
    (form, field, flags), file = case, table(tmp_path)
    give(own, file)
    found = refusal(own, {**FORM, "columns": {"age": ""}, **form})
    asked = ["audit", file, "--classes", "2", "--columns", "age", "--out", tmp_path]
    words = refused(3 if field == "known" else 2, *asked, *flags)
    there, here = "known = 30 in [audit] of a description", "30 as 'Rows of yours that it has already'"
    assert found == (field, words.replace(there, here))


@pytest.mark.parametrize(
    ("form", "field", "words"),
    [
        ({"classes": 1}, "classes", "the form: classes: "),
        ({"columns": {}}, "columns", "no column is ticked: tick those that you would share, or "),
        ({"label": "gone"}, "label", "mine.csv: column 'gone' is missing"),
        ({"label": "job", "label_kind": "number"}, "label", "--label job: it holds no number"),
        ({"label": "count", "weights": True}, "label", "a trained model needs no labels: choose none"),
        ({"known": "many"}, "known", "the form: known: "),
        ({"columns": {"job": ""}}, "columns", "mine.csv: column 'job' holds no number in data row 1 and "),
        ({"inputs": "a,b"}, "inputs", "the inputs are those of a trained model: choose its file too"),
        ({"weights": True}, "weights", "there is no trained model: choose its file again"),
    ],
)
def test_a_form_that_does_not_fit_is_refused_at_its_field(
    own: OwnAudit, tmp_path: Path, form: dict[str, Any], field: str, words: str
) -> None:
    give(own, table(tmp_path))
    found = refusal(own, {**FORM, "columns": {"age": ""}, **form})
    assert (found[0], found[1][: len(words)]) == (field, words)


def test_a_model_that_does_not_fit_is_refused_at_its_field(own: OwnAudit, tmp_path: Path) -> None:
    give(own, table(tmp_path))
    facts = give(own, TREES, model=True)
    assert facts == {"words": "2 classes, 6 inputs: age, income, credit_score, balance, contacts, loan"}
    found = refusal(own, {**FORM, "columns": {"count": ""}, "weights": True})
    assert found == (
        "weights",
        "column 'count' of mine.csv is no input of the model: choose yours with --columns, or name the "
        "model's inputs with --inputs",
    )
    with pytest.raises(ConfigError, match=r"^'model.csv' is no model: choose a file \.npz"):
        own.place("model.csv", model=True)
    (tmp_path / "no.npz").write_bytes(b"x")
    with pytest.raises(VflensError, match=r"no\.npz"):
        give(own, tmp_path / "no.npz", model=True)


def test_a_model_of_a_number_is_planned_on_the_page(page: Page, tmp_path: Path) -> None:
    """Its label is no column to share; the classes of a model are asked where there is no label."""
    with serving() as address:
        page.goto(address)
        page.get_by_label("Your table").set_input_files(table(tmp_path))
        page.get_by_role("checkbox", name="share job").uncheck()
        page.get_by_role("checkbox", name="share count").check()
        label, classes = page.get_by_label("The column that it predicts"), page.get_by_label("Classes that")
        assert label.get_by_role("option").all_text_contents() == ["none", "age", "job", "count"]
        expect(page.get_by_label("That column holds")).to_be_hidden()
        label.select_option("count")
        expect(page.get_by_role("checkbox", name="share count")).to_be_hidden()
        expect(classes).to_be_hidden()
        page.get_by_label("That column holds").select_option("number")
        page.get_by_label("Rows of yours").fill("10")
        assert serious(page) == []
        page.get_by_role("button", name="Audit my columns").click()
        expect(page.get_by_role("heading", level=2)).to_contain_text("oin", timeout=MINUTES)
        expect(page.get_by_text("the planned models predict count with an R² of")).to_be_visible()
        label.select_option("")
        expect(page.get_by_role("checkbox", name="share count")).to_be_checked()
        expect(classes).to_be_enabled()


def test_a_refused_model_is_no_audit_of_the_planned_one(page: Page) -> None:
    """However early the button is pressed, and however often, until the model is left out."""
    with serving() as address:
        page.goto(address)
        page.get_by_label("Your table").set_input_files(BANK)
        page.get_by_role("checkbox", name="share job").uncheck()
        weights, text = page.get_by_label("It is trained already"), page.locator("#refusal-weights")
        without = page.get_by_role("button", name="Without the trained model")
        expect(without).to_be_hidden()
        weights.set_input_files(ROOT / "README.md")
        for _ in range(2):
            page.get_by_role("button", name="Audit my columns").click()
            expect(text).to_contain_text("'README.md' is no model: choose a file .npz")
            expect(weights).to_be_focused()
            weights.evaluate("input => input.blur()")
        expect(page.get_by_role("progressbar")).to_be_hidden()
        assert page.evaluate("fetch('state').then(a => a.json())") == {"state": "described"}
        assert serious(page) == []
        without.click()
        expect(text).to_be_hidden()
        expect(without).to_be_hidden()
        expect(page.get_by_label("Classes that it tells apart")).to_be_visible()
        page.get_by_role("button", name="Audit my columns").click()
        expect(page.get_by_role("progressbar")).to_be_visible()


@pytest.mark.facts
def test_a_trained_model_by_keyboard_on_a_port_of_ones_own(page: Page, tmp_path: Path) -> None:
    """Trees give nothing of their training: the figures are those of the terminal's audit."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with serving("--port", str(port)) as address:
        assert address.startswith(f"http://127.0.0.1:{port}/")
        page.goto(address)
        page.get_by_label("Your table").set_input_files(BANK)
        page.get_by_role("checkbox", name="share job").uncheck()
        (tmp_path / "model.csv").write_text("no")
        tab_to(page, "It is trained already")
        with page.expect_file_chooser() as chooser:
            page.keyboard.press("Enter")
        chooser.value.set_files(tmp_path / "model.csv")
        weights = page.get_by_label("It is trained already")
        expect(page.locator("#refusal-weights")).to_contain_text(
            "'model.csv' is no model: choose a file .npz"
        )
        expect(weights).to_be_focused()
        with page.expect_file_chooser() as chooser:
            page.keyboard.press("Enter")
        chooser.value.set_files(TREES)
        expect(page.get_by_text("The model has 2 classes, 6 inputs: age")).to_be_visible()
        expect(page.get_by_label("Classes that it tells apart")).to_be_hidden()
        expect(page.locator("#refusal-weights")).to_be_hidden()
        tab_to(page, "Thresholds")
        page.keyboard.type("age > 90 %")
        tab_to(page, "Audit my columns")
        page.keyboard.press("Enter")
        decision = page.get_by_role("heading", level=2)
        expect(decision).to_contain_text("oin", timeout=MINUTES)
        assert serious(page) == []
        (outcome,) = page.get_by_role("listitem").all_text_contents()
        assert outcome.startswith("age > 90 %, the audit: held, pra finds ")
        expect(page.get_by_text("boosted trees path restriction errs by").first).to_be_visible()
        with page.expect_download() as downloaded:
            page.get_by_text("The whole page, to keep").click()
        assert "boosted trees" in Path(downloaded.value.path()).read_text(encoding="utf-8")
