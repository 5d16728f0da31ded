"""Thresholds from made-up records: their texts, their sentences, their JUnit XML."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from audits import read
from nonempty import nonempty
from runfolder import metric, target
from thresholdcases import a_share, an_error, evidence_of

from vflens.api.pytest_plugin import Hiding
from vflens.cli.decide.thresholds import gate
from vflens.errors import ConfigError, ThresholdError, UndecidedError
from vflens.experiments.evidence.junit import write_junit
from vflens.experiments.evidence.sources import of_audit, of_sweep
from vflens.experiments.evidence.thresholds import (
    BEATS_BLIND,
    Outcome,
    Threshold,
    check_columns,
    judge,
    read_threshold,
    refusal,
    tolerances,
)
from vflens.experiments.offline.score import of_score
from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import CASE, OVERALL, SITE, Finding, Quantity
from vflens.experiments.results.findings import of_runs
from vflens.numerics.measures.intervals import half_width


@pytest.mark.parametrize(
    ("text", "threshold"),
    [
        ("income within 5 > 10 %", ("income", 5.0, 0.1, "blind")),
        (" job=office clerk>80% ", ("job=office clerk", None, 0.8, "blind")),
        ("age within 0.5 > imputation", ("age", 0.5, None, "imputation")),
        ("age > blind", ("age", None, None, "blind")),
    ],
)
def test_a_text_is_read(text: str, threshold: tuple[str, float | None, float | None, str]) -> None:
    assert read_threshold(text) == Threshold(text.strip(), *threshold)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("income", "is no threshold: give COLUMN within NUMBER > SHARE %"),
        ("income > 10", "is no threshold"),
        ("income > 0 %", "the share '0' is no number above 0 and below 100"),
        ("income > 100 %", "the share '100' is no number above 0 and below 100"),
        ("income > nan %", "the share 'nan' is no number"),
        ("income > 1_0 %", "the share '1_0' is no number"),
        ("income > ١٠ %", "the share '١٠' is no number"),
        ("income within ٥ > 10 %", "within '٥' is no number"),
        ("income within -5 > 10 %", "within '-5' is no number above 0"),
        ("income within inf > 10 %", "within 'inf' is no number above 0"),
        ("income > imputatoin", "did you mean imputation?"),
    ],
)
def test_another_is_refused_in_one_sentence(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=r"^threshold ") as refused:
        read_threshold(text)
    assert words in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_column_has_one_distance() -> None:
    texts = ("income within 5 > 10 %", "income within 5 > imputation", "age > 10 %")
    assert tolerances(map(read_threshold, texts)) == {"income": 5.0}
    with pytest.raises(ConfigError, match="'income' is within 5 in another threshold"):
        tolerances(map(read_threshold, ("income within 5 > 10 %", "income within 6 > 10 %")))


@pytest.mark.parametrize(
    ("share", "rows", "state"),
    [(0.15, 1000, State.FOUND), (0.15, 20, State.UNDECIDED), (0.05, 1000, State.NOT_FOUND)],
)
def test_the_sentence_names_figure_interval_rows_and_guess(share: float, rows: int, state: State) -> None:
    (outcome,) = judge([read_threshold("income within 5 > 10 %")], False, [evidence_of(a_share(share, rows))])
    assert outcome.state is state
    words = {State.FOUND: "broken", State.NOT_FOUND: "held"}.get(state, state)
    assert outcome.sentence.startswith(f"income within 5 > 10 %, with no defence: {words}, lmmse finds ")
    assert f"{100 * share:.1f} % (" in outcome.sentence
    assert f"of {rows:,} rows (predict rows of passive) to within 5.0" in outcome.sentence
    needed = ", 320 attacked rows would decide" if state is State.UNDECIDED else ""
    assert outcome.sentence.endswith(f"a blind guess 5.0 %, imputation 8.0 %{needed}")
    assert judge([read_threshold("income within 5 > 10 %")], False, [evidence_of(a_share(share, 320))])[
        0
    ].state is (state if state is State.NOT_FOUND else State.FOUND)


def test_words_of_the_states_are_those_of_the_sentences() -> None:
    assert [s.value for s in State] == ["found", "not decided", "not found", "not tested"]


def test_nothing_is_held_while_an_attack_failed() -> None:
    """A broken one stays broken: the failure cannot take back what others found."""
    thresholds = [read_threshold(text) for text in ("income > 50 %", "income > 1 %")]
    whole = evidence_of(a_share(0.2), an_error(0.1, blind=0.1))
    evidence = replace(whole, failed=("mine", "own"))
    kept, broken, blind = judge(thresholds, True, [evidence])
    assert (kept.state, broken.state, blind.state) == (State.UNDECIDED, State.FOUND, State.UNDECIDED)
    assert kept.sentence.startswith(
        "income > 50 %, with no defence: not decided, mine, own failed and may find more; of the others lmmse"
    )
    assert "failed" not in broken.sentence
    assert judge(thresholds, True, [whole])[0].state is State.NOT_FOUND


def test_an_attack_that_tries_some_rows_says_how_many_decide() -> None:
    """0 of 36 rows leave at most 10 %, and 0 of 35 more: 1 − 0.025^(1/n)."""
    capped = replace(evidence_of(a_share(0, 20, attack="rcc1")), capped={"rcc1": 20}, more="{} = {}".format)
    (outcome,) = judge([read_threshold("income > 10 %")], False, [capped])
    assert outcome.state is State.UNDECIDED
    assert outcome.sentence.endswith("rcc1 tried these rows only, and 36 rows at least decide it")
    assert 1 - 0.025 ** (1 / 36) <= 0.1 < 1 - 0.025 ** (1 / 35)
    remedy = "1 threshold is not decided: state slow_rows = 20, or allow more"
    assert remedy in str(refusal([outcome]))
    (free,) = judge([read_threshold("income > 10 %")], False, [evidence_of(a_share(0, 20, attack="rcc1"))])
    assert "tried these rows only" not in free.sentence
    assert "predict and score more rows, or allow more" in str(refusal([free]))


def test_each_remedy_is_said_once() -> None:
    columns = [read_threshold(text) for text in ("income > 10 %", "age > 10 %")]
    words = str(refusal(judge(columns, True, [evidence_of()])))
    assert words.endswith("3 thresholds are not decided: run an attack on the column; run an attack")


def test_the_sentence_is_on_the_attack_that_decides() -> None:
    found = [a_share(0.02, attack="ls"), a_share(0.3, attack="mean_star"), a_share(0.2, attack="lmmse")]
    (outcome,) = judge([read_threshold("income > 10 %")], False, [evidence_of(*found)])
    assert "broken, mean_star finds 30.0 %" in outcome.sentence


def test_imputation_is_the_guess_where_it_finds_more_than_a_constant() -> None:
    texts = [read_threshold(f"income > {guess}") for guess in ("blind", "imputation")]
    judged = {
        imputed: [o.state for o in judge(texts, False, [evidence_of(a_share(0.3, imputation=imputed))])]
        for imputed in (0.31, 0.28, 0.02)
    }
    assert judged == {0.31: [State.NOT_FOUND] * 2, 0.28: [State.UNDECIDED] * 2, 0.02: [State.FOUND] * 2}
    alone = judge(texts[:1], False, [evidence_of(a_share(0.3, imputation=None))])
    assert [o.state for o in alone] == [State.FOUND]


def test_imputation_that_did_not_run_decides_nothing() -> None:
    (outcome,) = judge(
        [read_threshold("income > imputation")], False, [evidence_of(a_share(0.9, imputation=None))]
    )
    assert outcome.state is State.UNDECIDED
    assert "no attack on income was scored beside imputation" in outcome.sentence


def test_a_column_without_an_attack_is_not_decided_and_an_unknown_one_refused() -> None:
    (outcome,) = judge([read_threshold("age > 10 %")], False, [evidence_of(a_share(0.2))])
    assert (outcome.state, "no attack on age was scored" in outcome.sentence) == (State.UNDECIDED, True)
    with pytest.raises(ConfigError, match=r"no column is called 'incme', did you mean income\?"):
        judge([read_threshold("incme > 10 %")], False, [evidence_of(a_share(0.2))])
    with pytest.raises(ConfigError, match="'x': there are income, age"):
        judge([read_threshold("x > 10 %")], False, [evidence_of(a_share(0.2))])


def test_a_distance_other_than_the_recorded_one_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"within 5\.0, set scoring\.tolerance\.income = 6 and run it again"
    ):
        judge([read_threshold("income within 6 > 10 %")], False, [evidence_of(a_share(0.2))])


@pytest.mark.parametrize(("most", "state"), [("blind", State.NOT_FOUND), ("20 %", State.NOT_FOUND)])
def test_a_stated_distance_counts_and_the_error_does_not(most: str, state: State) -> None:
    """The error is far below a guess's, and hardly a row is found to within the distance."""
    error = an_error(0.01, quantity=Quantity.ERROR, subject="income")
    here = evidence_of(a_share(0.04), error)
    (outcome,) = judge([read_threshold(f"income within 5 > {most}")], False, [here])
    assert outcome.state is state
    (without,) = judge([read_threshold("income > blind")], False, [here])
    assert without.state is State.FOUND


@pytest.mark.parametrize("there", [0, 2000, 10**9])
def test_what_a_table_cannot_decide_is_said(there: int) -> None:
    (outcome,) = judge([read_threshold("income > 10 %")], False, [evidence_of(a_share(0.095, there=there))])
    assert ("more than the table's 2,000: it cannot" in outcome.sentence) == (there == 2000)
    assert outcome.remedy.startswith("allow more" if there == 2000 else "predict and score more rows")


@pytest.mark.parametrize("site", [SITE, CASE])
def test_sites_are_refused_where_no_clients_are(site: str) -> None:
    threshold = read_threshold(f"{site} > blind")
    with pytest.raises(ConfigError, match="only a run of clients has sites, name a column"):
        check_columns([threshold], ["income"])
    check_columns([threshold], ["income", SITE, CASE])
    (outcome,) = judge([threshold], False, [evidence_of(a_share(0.1))])
    assert "source_by_scores" in outcome.remedy


def test_an_undefended_federation_beside_a_defended_one_is_the_baseline() -> None:
    base = evidence_of(a_share(0.9))
    defended = evidence_of(a_share(0.01), where="with rounding", defended=True)
    threshold = [read_threshold("income > 10 %")]
    assert [(o.where, o.state) for o in judge(threshold, False, [base, defended])] == [
        ("with rounding", State.NOT_FOUND)
    ]
    assert [o.state for o in judge(threshold, False, [base])] == [State.FOUND]


@pytest.mark.parametrize(
    ("errors", "state", "words"),
    [
        ([an_error(0.03), an_error(0.06)], State.FOUND, "lmmse errs by .030 (± .001) on 1,000 rows"),
        ([an_error(0.061)], State.NOT_FOUND, "a blind guess by .060"),
        ([an_error(0.058, half_width=0.02)], State.UNDECIDED, "(± .020)"),
        ([an_error(0.058, half_width=None)], State.UNDECIDED, "(no interval)"),
        (
            [an_error(0.9, blind=0.5, quantity=Quantity.LABELS)],
            State.FOUND,
            "is right in 90.0 % (88.0 % … 91.8 %) of 1,000",
        ),
        ([], State.UNDECIDED, "no attack was scored beside a blind guess"),
    ],
)
def test_who_beats_a_blind_guess(errors: list[Finding], state: State, words: str) -> None:
    (outcome,) = judge([], True, [evidence_of(*errors)])
    assert (outcome.threshold, outcome.state) == (BEATS_BLIND, state)
    assert words in outcome.sentence


def test_a_broken_threshold_goes_before_an_open_one() -> None:
    def error(*states: State) -> object:
        return refusal([Outcome("t", "w", s, "") for s in states])

    assert isinstance(error(State.UNDECIDED, State.FOUND, State.FOUND), ThresholdError)
    assert "2 thresholds are broken: " in str(error(State.UNDECIDED, State.FOUND, State.FOUND))
    assert isinstance(error(State.UNDECIDED, State.NOT_FOUND), UndecidedError)
    assert error(State.NOT_FOUND) is None


@pytest.mark.parametrize(
    ("columns", "within"), [([], None), ("", None), (["income"], {"incom": 5.0}), ("income", {"age": 5.0})]
)
def test_an_assertion_that_asks_for_nothing_is_refused(columns: Any, within: Any) -> None:
    with pytest.raises(ConfigError, match=r"name those that are to be hidden|is no threshold"):
        Hiding().assert_hidden("nowhere", columns, within=within)


@pytest.mark.parametrize("place", ["", ".", "missing/thresholds.xml", "/dev/null"])
def test_junit_needs_a_place_before_the_work(place: str) -> None:
    end = r"give the name of a file in a folder that is there$"
    shown = "names no file" if place in ("", ".") else place
    with pytest.raises(ConfigError, match=rf"^--junit {shown}: {end}"):
        gate(["income > 10 %"], False, Path(place))


def test_junit_has_a_case_for_each_outcome(tmp_path: Path) -> None:
    states = {State.NOT_FOUND: None, State.FOUND: "failure", State.UNDECIDED: "error"}
    write_junit(tmp_path / "j.xml", [Outcome(f"a < {s}\x1b", "with <b>", s, f"said {s}") for s in states])
    root = ElementTree.parse(tmp_path / "j.xml").getroot()
    (suite,) = root
    assert {k: suite.get(k) for k in ("tests", "failures", "errors")} == {
        "tests": "3",
        "failures": "1",
        "errors": "1",
    }
    cases = {case.get("name"): [(e.tag, e.get("message")) for e in case] for case in suite}
    assert cases == {
        f"a < {s}\\x1b": ([] if tag is None else [(tag, f"said {s}")]) for s, tag in states.items()
    }


# --- where evidence comes from

PLACE = {"target": "passive", "scored_set": "predict", "rows": 400}
TABLE = [{"name": "income", "low": 0.0, "high": 100.0}]


def _metrics() -> list[dict[str, object]]:
    own = {**PLACE, "column": "income"}
    return [
        metric("blind_mse", 0.06, attack="column_means", **PLACE),
        *(metric("mse", e, attack=a, **PLACE) for a, e in {"lmmse": 0.01, "imputation": 0.05}.items()),
        metric("mse_stderr", 0.001, attack="lmmse", **PLACE),
        *(metric("column_found", s, attack=a, **own) for a, s in {"lmmse": 0.4, "imputation": 0.2}.items()),
        metric("column_blind_found", 0.1, **own),
        metric("column_tolerance", 5.0, **own),
    ]


def test_a_run_gives_what_its_target_recorded(tmp_path: Path) -> None:
    parties = [{"name": "passive", "role": "passive", "n_classes": 0, "columns": TABLE}]
    run = target(tmp_path, _metrics(), facts={"parties": parties})
    (found,) = of_runs([run])
    assert found.columns == ("income",)
    (column,), (error,) = found.only(Quantity.WITHIN), found.only(*OVERALL)
    assert column == a_share(0.4, 400, blind=0.1, imputation=0.2, adversary="the active party")
    assert (error.attack, error.value, error.blind) == ("lmmse", 0.01, 0.05)
    assert error.half_width == pytest.approx(half_width(0.001))


AUDIT = {
    "subject": "bank.csv",
    "columns": ["age", "income"],
    "tolerance": {"age": 2.0, "income": 5.0},
    **{"units": [40.0, 100.0], "worst_cases": []},
    "attacks": [
        {
            **{"attack": "lmmse", "kind": "trained", "phase": "predict", "rows": 800, "mse": 0.02},
            **{"stderr": 0.001, "column_blind": [0.04, 0.08], "found": [0.2, 0.5], "blind_found": [0.1, 0.3]},
            **{"released": "", "imputed_found": [None, 0.4]},
            **{"columns": [0.01, 0.03], "column_stderr": [0.001, 0.001]},
        }
    ],
}


def test_an_audit_gives_its_attacks_on_the_plan() -> None:
    found = of_audit(read(AUDIT))
    place: dict[str, Any] = {"target": "bank.csv, trained models"}
    place["adversary"] = "whoever knows the model and gets its predictions"
    assert found.only(Quantity.WITHIN) == (
        a_share(0.2, 800, **place, subject="age", blind=0.1, imputation=None, tolerance=2.0),
        a_share(0.5, 800, **place, blind=0.3, imputation=0.4),
    )
    (error,) = found.only(*OVERALL)
    assert (error.value, error.blind) == (0.02, 0.06)
    assert error.half_width == pytest.approx(half_width(0.001))


def test_a_sweep_gives_each_federation() -> None:
    common = {"attack": "lmmse", "strength": 1.0}
    columns = {**common, "findings": [a_share(0.2).json, an_error(0.02).json]}
    named = an_error(0.9, attack="norm_scoring", quantity=Quantity.LABELS)
    labels = {**common, "attack": "norm_scoring", "findings": [named.json]}
    rows = [
        {"defense": "undefended", "seed": 0, **columns},
        {"defense": "rounding", "seed": 0, "horizontal.rounds": 3, **columns},
        {"defense": "rounding", "seed": 1, "horizontal.rounds": 3, **columns},
        {"defense": "rounding", "seed": 1, "horizontal.rounds": 3, **labels},
    ]
    cells = of_sweep(rows, "undefended")
    where = [
        "with no defence, seed 0",
        *(f"with rounding 1, horizontal.rounds = 3, seed {s}" for s in (0, 1)),
    ]
    assert [(e.where, e.defended) for e in cells] == [*zip(where, (False, True, True), strict=True)]
    assert all(e.only(Quantity.WITHIN) == (a_share(0.2),) for e in nonempty(cells))
    assert all(e.columns == ("income",) for e in nonempty(cells))
    judged = cells[2].only(*OVERALL)
    assert [(b.attack, b.is_share, b.tries) for b in judged] == [
        ("lmmse", False, 2),
        ("norm_scoring", True, 2),
    ]


@pytest.mark.parametrize(
    ("refused", "failed"),
    [
        ({"attack": "breaks", "refused": "failed: it broke"}, ("breaks",)),
        ({"refused": "was refused: rows are too few"}, ("the federation",)),
        ({"attack": "lacks", "refused": "was skipped: it lacks rows"}, ()),
    ],
)
def test_nothing_of_a_sweep_is_held_while_something_failed(
    refused: dict[str, Any], failed: tuple[str, ...]
) -> None:
    place = {"defense": "rounding", "seed": 0, "strength": 1.0}
    row = {**place, "attack": "lmmse", "findings": [a_share(0.01).json, an_error(0.09).json]}
    (cell,) = of_sweep([row], "undefended", [{**place, **refused}])
    assert cell.failed == failed
    outcomes = judge([read_threshold("income > 50 %")], True, [cell])
    assert {o.state for o in outcomes} == ({State.UNDECIDED} if failed else {State.NOT_FOUND})


def test_a_federation_of_a_sweep_without_rows_is_not_decided() -> None:
    (cell,) = of_sweep(
        [], "undefended", [{"defense": "rounding", "seed": 3, "strength": 1.0, "refused": "was refused: no"}]
    )
    assert (cell.where, cell.defended, cell.failed) == ("with rounding 1, seed 3", True, ("the federation",))
    assert [o.state for o in judge([], True, [cell])] == [State.UNDECIDED]


def test_a_score_gives_its_columns_and_its_error() -> None:
    columns = {"income": {"found": 0.4, "blind_found": 0.1, "tolerance": 5.0}, "pixels": {"mse": 0.1}}
    facts = {"attack": "ls", "rows": 200, "mse": 0.02, "blind_mse": 0.06, "half_width": 0.01}
    found = of_score({**facts, "columns": columns})
    (column,), (error,) = found.only(Quantity.WITHIN), found.only(*OVERALL)
    assert (column.subject, column.value, column.blind, column.rows) == ("income", 0.4, 0.1, 200)
    assert [error.value, error.blind, error.half_width] == pytest.approx([0.02, 0.06, 0.01])
    labels = of_score({"attack": "a", "rows": 200, "label_accuracy": 0.9, "blind_label_accuracy": 0.5})
    assert [(e.is_share, e.value, e.blind) for e in labels.found] == [(True, 0.9, 0.5)]
    pairs = of_score({"attack": "a", "rows": 200, "membership_auc": 0.9, "blind_membership_auc": 0.5})
    assert [(e.is_share, e.rows, e.value) for e in pairs.found] == [(True, 100, 0.9)]
