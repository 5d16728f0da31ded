"""What a document says of the risk that is left, and what it asks its controller."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from markdown_it import MarkdownIt
from runfolder import metric, write_run
from scipy.optimize import brentq
from scipy.stats import binom

from vflens.errors import DataError
from vflens.experiments.evidence.declared import Declaration, read_declared
from vflens.experiments.evidence.dpia import Dpia, assess
from vflens.experiments.evidence.measured import term
from vflens.experiments.evidence.mitigations import Mitigation
from vflens.experiments.evidence.rendering import markdown, page, write_dpia
from vflens.experiments.evidence.untested import ALWAYS
from vflens.experiments.evidence.words import combined, missing, residual, who
from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import Finding, Quantity
from vflens.experiments.outcome.words import column

RATES = {State.FOUND: 0.4, State.UNDECIDED: 0.12, State.NOT_FOUND: 0.02}  # of 200 rows, beside a tenth


def _measured(state: State, column: str = "income", quantity: Quantity = Quantity.WITHIN) -> Finding:
    place: dict[str, Any] = {"where": "with no defence", "adversary": "the active party", "target": "passive"}
    place |= {"attack": "lmmse", "scored_set": "predict", "source": "run r", "tolerance": 5.0}
    found = Finding.of_share(quantity, RATES[state], 200, 0.1, subject=column, **place)
    assert found.state is state
    return found


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (State.FOUND, "the active party can find, beyond a blind guess: income within 5.0"),
        (State.UNDECIDED, "the active party may find, but the rows are too few to say: income"),
        (
            State.NOT_FOUND,
            "the active party takes at most 5 % of what a blind guess leaves open, by the attacks that ran: ",
        ),
    ],
)
def test_the_residual_risk_follows_from_the_state(state: State, words: str) -> None:
    (sentence,) = residual([_measured(state)])
    assert sentence.startswith(f"Run r, with no defence, {words}")
    assert sentence.endswith("(columns of passive).")


@pytest.mark.parametrize(
    ("error", "blind", "quantity", "words"),
    [
        (7.2e-10, 0.3, Quantity.ERROR, "exactly"),
        (7.2e-10, 7.2e-5, Quantity.ERROR, "7.2e-10"),
        (0.0, 0.0, Quantity.ERROR, "0"),
        (1e-20, 0.09, Quantity.ALL, "exactly"),
        (1e-9, 0.09, Quantity.ALL, "1e-09"),
    ],
)
def test_an_error_of_rounding_is_said_as_on_the_terminal(
    error: float, blind: float, quantity: Quantity, words: str
) -> None:
    """The terminal takes a millionth of the root mean squared error of a blind guess for exact."""
    figures: Any = {"value": error, "low": error, "high": error, "blind": blind}
    of_age = replace(_measured(State.FOUND, "age"), quantity=quantity, **figures)
    if quantity is Quantity.ERROR:
        assert column(of_age).startswith("age exactly") == (words == "exactly")
    (table,) = (s.tables[0] for s in Dpia(Declaration(), [of_age]).sections() if s.title == "Measured")
    ((*_, found, _ends, _blind, _unit, _attack, _rows),) = table.rows
    assert found == words


def test_the_residual_risk_begins_with_what_can_be_reconstructed() -> None:
    found = [
        _measured(State.NOT_FOUND, "age"),
        _measured(State.FOUND, "income"),
        _measured(State.FOUND, "job"),
    ]
    first, second = residual(found)
    columns = "income within 5.0 (worst case), job within 5.0 (worst case)"
    assert first.endswith(f"beyond a blind guess: {columns} (columns of passive).")
    assert "at most 5 % of what a blind guess leaves open" in second
    assert residual([]) == ["Nothing was measured: nothing can be said of a residual risk."]


def test_whole_rows_of_training_and_of_predictions_are_told_apart() -> None:
    leaks, holds = (_measured(state, "rows", Quantity.WHOLE) for state in (State.FOUND, State.NOT_FOUND))
    leaks_so, holds_so = residual([leaks, replace(holds, scored_set="train")])
    assert "beyond a blind guess: whole rows (worst case, predict rows) (columns of passive)." in leaks_so
    assert "by the attacks that ran: whole rows (worst case, train rows) (columns of passive)." in holds_so


def test_two_sources_are_told_apart() -> None:
    mine = _measured(State.FOUND)
    found = [mine, replace(mine, source="audit a.json"), replace(mine, source="audit b.json")]
    assert [s.split(",")[0] for s in residual(found)] == ["Audit a.json", "Audit b.json", "Run r"]
    people = combined([replace(m, quantity=Quantity.WHOLE) for m in found], Declaration(people=9))
    assert [s.split(",")[0] for s in people] == ["Run r", "Audit a.json", "Audit b.json"]


def test_an_open_question_says_why_it_is_open() -> None:
    (sentence,) = residual([replace(_measured(State.UNDECIDED), reason="rcc1 tried 20 rows only")])
    assert "may find, but rcc1 tried 20 rows only: income within 5.0" in sentence


def test_who_ran_it_is_asked_for_by_name() -> None:
    assert [*who(Declaration(ran_by="A. Nurse"))] == [
        "Measured by: A. Nurse, as declared.",
        "Assessed by: nobody who is declared (`assessor`).",
    ]


def test_people_are_counted_only_where_they_are_declared() -> None:
    people = replace(_measured(State.FOUND), low=0.3, high=0.5)
    rows = [replace(people, quantity=q) for q in (Quantity.WHOLE, Quantity.ALONE)]
    whole, singled = combined(rows, Declaration(people=1000))
    assert (
        "of 1,000 people 300 to 500 (95 % interval) are found with all their columns (expected 400; by a "
        "blind guess 100)" in whole
    )
    assert "are found with all their columns, as nobody else is" in singled
    assert combined(rows, Declaration()) == []
    (nothing,) = combined([_measured(State.FOUND)], Declaration(people=1000))
    assert nothing.endswith("people, 1,000, is combined with nothing: no whole rows were scored.")


def _ends_of_200(found: int) -> tuple[float, float]:
    """The shares of which ``found`` of 200 or more, or fewer, are found with 1.25 %: by bisection."""
    low = brentq(lambda share: binom.sf(found - 1, 200, share) - 0.0125, 1e-9, 1 - 1e-9)
    return low, brentq(lambda share: binom.cdf(found, 200, share) - 0.0125, 1e-9, 1 - 1e-9)


def _posterior(named: float, alarms: float) -> float:
    """In per cent, of a prior of 2 %."""
    return 100 * 0.02 * named / (0.02 * named + 0.98 * alarms)


def test_a_prior_is_combined_by_counting_people() -> None:
    """20,000 of a million people are in the table: half of these are named, and a tenth of the others."""
    named = replace(_measured(State.FOUND, "members", Quantity.NAMED), value=0.5)
    (sentence,) = combined([_measured(State.FOUND), named], Declaration(prior=0.02))
    right, wrong = 20_000 * 0.5, 980_000 * 0.1
    assert "with the declared prior, 2 %, for a person to be a training row, one whom lmmse names" in sentence
    assert f"is one with {100 * right / (right + wrong):.2g} % (" in sentence
    at, low, high = map(float, re.findall(r"([\d.]+) %", sentence)[-3:])
    assert low < at < high
    named_ends, alarm_ends = _ends_of_200(100), _ends_of_200(20)
    assert low == pytest.approx(_posterior(named_ends[0], alarm_ends[1]), rel=0.02)
    assert high == pytest.approx(_posterior(named_ends[1], alarm_ends[0]), rel=0.02)


def test_of_membership_the_share_of_training_rows_that_are_named_is_told(tmp_path: Path) -> None:
    """The one of two attacks that names more; a guess names as many as it raises false alarms."""
    where = {"adversary": "active", "target": "passive", "rows": 200}
    facts = [("blind_membership_auc", 0.5, {}), *(("membership_auc", 0.8, {"attack": a}) for a in "lm")]
    rates = [("l", "0.1", 0.3), ("l", "0.01", 0.1), ("m", "0.1", 0.5), ("m", "0.01", 0.0)]
    facts += [("membership_tpr", share, {"attack": a, "detail": rate}) for a, rate, share in rates]
    run = write_run(
        tmp_path / "r", extra=[metric(name, value, **where, **more) for name, value, more in facts]
    )
    made = assess([run], Declaration(prior=0.02))
    (found,) = (m for m in made.measured if m.quantity is Quantity.NAMED)
    assert (found.attack, found.rows, found.adversary, term(found)) == (
        *("m", 100, "the active party", "linkability"),
    )
    assert (found.value, found.blind) == (0.5, 0.1)
    (sentence,) = made.json["combined"]
    assert "one whom m names at 10 % false alarms is one with 9.3 % (" in sentence


def test_a_prior_without_an_attack_on_membership_is_said_to_be_combined_with_nothing() -> None:
    (sentence,) = combined([_measured(State.FOUND)], Declaration(prior=0.02))
    assert sentence.startswith("The declared prior, 2 %, is combined with nothing: no attack on membership")
    assert "was not tested" in sentence


def test_what_is_not_declared_is_asked_for_by_name(tmp_path: Path) -> None:
    file = tmp_path / "declared.toml"
    file.write_text('purpose = "credit scoring"\npeople = 3\nsafeguards = ["a contract"]\n', encoding="utf-8")
    asked = missing(read_declared(file))
    assert [re.findall(r"`(\w+)`", s) for s in asked] == [["controller"], ["prior"], ["ran_by"], ["assessor"]]
    assert len(missing(read_declared(None))) == 7
    assert (
        missing(
            Declaration(
                **dict.fromkeys(("controller", "purpose", "ran_by", "assessor"), "x"),
                people=1,
                prior=0.5,
                safeguards=("y",),
            )
        )
        == []
    )


@pytest.mark.parametrize("text", ["{}", "no JSON", '{"columns": [1]}', "[1]"])
def test_another_file_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "audit.json").write_text(text, encoding="utf-8")
    with pytest.raises(DataError, match="is no run folder, sweep or audit") as error:
        assess([tmp_path / "audit.json"], Declaration())
    assert "vflens audit … --json" in str(error.value)
    with pytest.raises(DataError, match="is no run folder, sweep or audit"):
        assess([tmp_path / "missing.json"], Declaration())


EVIL = (
    "<script>alert(1)</script> | **x**\n# head",
    "a `code` & &lt;b&gt; ~~gone~~ $x$",
    "see https://evil.example and www.evil.example",
    "- item",
    "1. first",
    "[a](b) ![c](d)",
)


@pytest.mark.parametrize("text", EVIL)
def test_names_add_no_markup(tmp_path: Path, text: str) -> None:
    """What Markdown shows is the text; it has no code, link, list, heading or HTML of it."""
    evil = replace(_measured(State.FOUND, text), attack=text)
    made = Dpia(Declaration(purpose=text), [evil], [Mitigation("run r", text, evil, {})])
    made.untested.append(text)
    files = write_dpia(made, tmp_path / "d.html")
    assert sorted(Path(f).suffix for f in files.values()) == [".html", ".json", ".md"]
    assert "<script>" not in page(made)
    assert "<b>" not in page(made).replace("<b>VFLens</b>", "")
    written = markdown(made)
    tokens = [
        inner
        for t in MarkdownIt().enable(["table", "strikethrough"]).parse(written)
        for inner in (t, *(t.children or ()))
    ]
    assert {t.type for t in tokens if t.type.endswith("_open")} <= {
        *("heading_open", "bullet_list_open", "list_item_open", "paragraph_open", "table_open"),
        *("thead_open", "tbody_open", "tr_open", "th_open", "td_open"),
    }
    assert not {"code_inline", "html_inline", "html_block", "image", "link_open"} & {t.type for t in tokens}
    assert sum(t.type == "heading_open" for t in tokens) == written.count("\n## ") + 1
    shown = ["".join(c.content for c in t.children or ()) for t in tokens if t.type == "inline"]
    assert " ".join(text.split()) in shown
    assert not re.search(r"https?:|www\.", written)  # renderers make links of these by themselves
    assert all(sentence in markdown(made) for sentence in ALWAYS)
