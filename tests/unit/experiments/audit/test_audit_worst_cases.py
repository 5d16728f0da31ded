"""The audit's worst cases: against loops over made-up answers, and where they are told and kept."""

from __future__ import annotations

import json
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import Refused, Run, refused, strict, vflens

from vflens.defenses.label_only import LabelOnly
from vflens.errors import ConfigError
from vflens.experiments.audit import defenses as module
from vflens.experiments.audit.bench import Answer, Bench, Plan
from vflens.experiments.audit.record import AuditRecord
from vflens.experiments.audit.run import audit, worst_case
from vflens.experiments.audit.subject import AuditSubject
from vflens.experiments.audit.words import worst_cases, write_audit
from vflens.types import ColumnInfo, Document

_FIXTURES = (refused, vflens)  # used by name
BANK = Path(__file__).parents[4] / "examples" / "bank_passive.csv"
PLAN = Plan(models=2, known=15, rows=120, seed=1, tolerance={"income": 80.0})
UNITS = np.array([1000.0, 1.0, 20.0])


def _silent(stage: str, done: int, total: int) -> None: ...


@pytest.fixture(autouse=True)
def one_defence(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them take seconds."""
    monkeypatch.setattr(module, "candidates", lambda: iter([("label_only", {}, LabelOnly)]))


def _subject(n: int = 120) -> AuditSubject:
    rng = np.random.default_rng(3)
    x = np.column_stack([rng.random(n), rng.integers(0, 3, n) / 2, rng.random(n)])
    columns = (
        ColumnInfo("income", 0.0, 1000.0),
        ColumnInfo("kind", 0.0, 1.0, alphabet=(0.0, 0.5, 1.0)),
        ColumnInfo("debt", 0.0, 20.0),
    )
    ids = np.array([f"person-{i}".encode() for i in range(n)])
    return AuditSubject("mine.csv", columns, x, 2, units=UNITS, ids=ids, tolerance={"income": 1, "debt": 3})


def test_found_rows_are_those_of_every_pair() -> None:
    """Income within 80 of 1,000 as the plan says, debt within 3 of 20 as the configuration does, kinds that
    are right; two models, of which the second errs more; and answers outside the box are their clips.
    """
    bench = Bench.set_up(_subject(), PLAN)
    rng, x = np.random.default_rng(0), bench.subject.x
    rows = [bench.rows, bench.rows[::2]]
    answers = [
        Answer("ls", r, x[r] + rng.normal(0, spread, x[r].shape))
        for r, spread in zip(rows, (0.05, 0.2), strict=True)
    ]
    found = worst_case(bench, "predict", answers)
    assert found is not None
    widths = (80 / 1000, 0.25 * (1 - 1e-9), 3 / 20)
    cells, whole, unique = [], [], []
    for r, (_, _, values) in zip(rows, answers, strict=True):
        near = np.array(
            [
                [abs(min(max(v, 0), 1) - t) <= w for v, t, w in zip(a, x[i], widths, strict=True)]
                for a, i in zip(values, r, strict=True)
            ]
        )
        alone = [
            sum(
                all(abs(min(max(v, 0), 1) - t) <= w for v, t, w in zip(a, row, widths, strict=True))
                for row in x
            )
            == 1
            for a in values
        ]
        cells.append(near.mean())
        whole.append(np.all(near, axis=1).mean())
        unique.append(np.logical_and(np.all(near, axis=1), alone).mean())
    case = found.case
    assert (case.target, case.attack, case.scored_set, case.rows) == (
        "mine.csv",
        "ls",
        "predict",
        len(rows[0]),
    )
    assert case.cells == pytest.approx(np.mean(cells))
    assert 0 < case.unique == pytest.approx(np.mean(unique))
    assert case.unique < case.rows_found == pytest.approx(np.mean(whole))
    errors = {i: [] for i in bench.rows.tolist()}  # type: dict[int, list[float]]
    for r, (_, _, values) in zip(rows, answers, strict=True):
        for i, answer in zip(r.tolist(), values, strict=True):
            errors[i].append(float(((answer.clip(0, 1) - x[i]) ** 2).mean()))
    first, *_ = sorted(errors, key=lambda i: np.mean(errors[i]))
    assert found.exposed == [f"person-{first}"]
    assert case.exposed_mse == pytest.approx(np.mean(errors[first]))


def test_the_control_is_the_best_blind_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    """Constants are fitted to rows that they are not scored on; imputation knows two columns of three."""
    bench = Bench.set_up(_subject(), PLAN)
    truth = bench.truth
    answer = Answer("ls", bench.rows, truth)
    constants = worst_case(bench, "predict", [answer])
    monkeypatch.setattr(Bench, "guesses", lambda self, rows: {"imputation": self.subject.x[rows] + [0, 0, 1]})
    imputed = worst_case(bench, "predict", [answer])
    assert constants is not None
    assert imputed is not None
    widths = np.array([0.08, 0.25 * (1 - 1e-9), 0.15])
    found = []
    for scored, others in ((truth[::2], truth[1::2]), (truth[1::2], truth[::2])):
        counts = [(np.abs(others - c) <= widths).sum(axis=0) for c in np.linspace(0, 1, 2001)]
        best = np.linspace(0, 1, 2001)[np.argmax(counts, axis=0)]
        found += (np.abs(scored - best) <= widths).tolist()
    assert constants.case.control_cells == pytest.approx(
        np.mean(found), abs=0.06
    )  # several windows hold most
    near = [(np.abs(truth - c) <= widths).mean(axis=0) for c in np.linspace(0, 1, 2001)]
    assert constants.case.control_cells < np.max(near, axis=0).mean()  # what fits itself looks better
    assert constants.case.control_unique <= 1 / len(truth) < constants.case.unique
    assert imputed.case.control_cells == pytest.approx(2 / 3, abs=0.02)
    assert imputed.case.advantage_cells.value == pytest.approx(1.0)


@pytest.fixture(scope="module")
def audited() -> tuple[AuditRecord, Document]:
    kept: Document = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "candidates", lambda: iter([("label_only", {}, LabelOnly)]))
        return audit(_subject(), PLAN, _silent, kept.update), kept


def test_worst_cases_are_of_the_strongest_attacks(audited: tuple[AuditRecord, Document]) -> None:
    record, kept = audited
    by_phase = {case.scored_set: case for case in record.worst_cases}
    assert list(by_phase) == ["predict", "train"]
    for phase, case in by_phase.items():
        of_phase = [a for a in record.attacks if a.phase == phase and a.attack != "rcc1"]
        best = min(of_phase, key=lambda a: a.mse)
        assert (case.attack, case.rows) == (best.attack, best.rows)
    assert by_phase["train"].cells == 1.0 > by_phase["predict"].cells
    assert record.tolerance == pytest.approx({"income": 80.0, "kind": 0.25, "debt": 3.0})
    assert {phase: list(of) for phase, of in kept.items()} == {p: [c.attack] for p, c in by_phase.items()}


def test_worst_cases_are_told_and_the_rows_are_not(
    audited: tuple[AuditRecord, Document], tmp_path: Path
) -> None:
    record, kept = audited
    text = worst_cases(record)
    assert text[0].startswith(f"Worst case of {record.worst_cases[0].rows} predict rows: ")
    assert text[-1] == (
        "An answer counts as found where it is off by at most: income 80, kind 0.25, debt 3.0."
    )
    write_audit(record, tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert all(sentence in page for sentence in text)
    rows = [row for of in kept.values() for ids in of.values() for row in ids]
    assert rows
    assert all(row.startswith("person-") for row in rows)
    assert "person-" not in page + json.dumps(record.json)


def test_pixels_have_no_worst_case() -> None:
    subject = _subject()
    pixels = tuple(ColumnInfo(f"p{j}", 0.0, 255.0, pixel=(0, j)) for j in range(3))
    record = audit(replace(subject, columns=pixels, tolerance={}), replace(PLAN, tolerance={}), _silent)
    assert (record.worst_cases, record.tolerance, worst_cases(record)) == ((), {}, [])


@pytest.mark.usefixtures("few_defences")
def test_the_command_tells_worst_cases_and_keeps_the_rows(tmp_path: Path, vflens: Run) -> None:
    given: list[Any] = ["--classes", 2, "--columns", "age,income", "--models", 1, "--tolerance", "income=5"]
    given += ["--known", 20, "--out", tmp_path / "a.html"]
    ended = vflens("audit", BANK, *given, "--details")
    assert "An answer counts as found where it is off by at most: age 3.4, income 5.0." in ended.out
    assert ended.out.count("Worst case of") == 2
    kept = tmp_path / "a.exposed.json"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    ids = [row for of in strict(kept.read_text()).values() for rows in of.values() for row in rows]
    known = {line.partition(",")[0] for line in BANK.read_text().splitlines()}
    assert ids
    assert set(ids) <= known
    printed = vflens("audit", BANK, *given, "--json").out
    assert strict(printed)["worst_cases"][0]["words"] in ended.out
    assert not any(row in ended.out + printed for row in ids)


@pytest.mark.parametrize(
    "flag", ["income", "=5", "income=", "income=many", "income=0", "income=inf", "income=nan"]
)
def test_a_tolerance_is_a_column_and_a_width(refused: Refused, flag: str) -> None:
    sentence = refused(2, "audit", "x.csv", "--tolerance", flag)
    assert sentence == (f"tolerance {flag!r}: give COLUMN=WIDTH with a width above 0, such as income=500")


def test_a_tolerance_of_an_unknown_column_is_refused() -> None:
    with pytest.raises(
        ConfigError, match=r"^tolerance names 'incom': it is no column of mine\.csv, did you mean income\?"
    ):
        audit(_subject(), replace(PLAN, tolerance={"incom": 5}), _silent)
    with pytest.raises(ConfigError, match=r"'q': it is no column of mine\.csv, name one of its columns"):
        audit(_subject(), replace(PLAN, tolerance={"q": 5}), _silent)
