"""The audit's figures are fair: answers are clipped to the known box, and imputation is a blind guess."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from vflens.defenses.label_only import LabelOnly
from vflens.experiments.audit import defenses as module
from vflens.experiments.audit.bench import Bench, Plan
from vflens.experiments.audit.outcomes import column_blind
from vflens.experiments.audit.run import audit
from vflens.experiments.audit.subject import AuditSubject
from vflens.experiments.audit.words import sentences, write_audit
from vflens.plugins.defense import Context, Defense
from vflens.registry import ATTACKS
from vflens.types import Array, ColumnInfo, Estimate

QUICK = Plan(models=2, known=15, rows=70, seed=1, training="secure")


def _silent(stage: str, done: int, total: int) -> None: ...


@pytest.fixture(autouse=True)
def one_defence(monkeypatch: pytest.MonkeyPatch) -> None:
    """All of them take seconds."""
    monkeypatch.setattr(module, "candidates", lambda: iter([("label_only", {}, LabelOnly)]))


def _subject(d: int = 4, n: int = 150) -> AuditSubject:
    rng = np.random.default_rng(7)
    x = rng.random((n, d)) ** 2 @ rng.dirichlet(np.ones(d), size=d).T
    return AuditSubject("mine.csv", tuple(ColumnInfo(f"c{j}", 0.0, 1.0) for j in range(d)), x, 3)


@pytest.mark.parametrize("kind", ["random", "trained"])
def test_an_answer_outside_the_box_scores_as_its_clip(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No adversary gives up what it knows: half* + 1 is moved to 1 wherever half* is above 0."""
    honest = ATTACKS.get("half_star").solve  # type: ignore[attr-defined]

    def moved(self: Any, A: Array, b: Array, **given: Any) -> Any:
        e = honest(self, A, b, **given)
        return Estimate(e.target, e.rows, np.abs(e.values) + 1, e.status, extras=e.extras)

    monkeypatch.setattr(ATTACKS.get("half_star"), "solve", moved)
    subject = _subject()
    record = audit(subject, QUICK, _silent)
    measured: Any
    (measured,) = [a for a in record.attacks if (a.attack, a.kind) == ("half_star", kind)]
    x = Bench.set_up(subject, QUICK).truth
    np.testing.assert_allclose(measured.columns, ((1 - x) ** 2).mean(axis=0), rtol=1e-12)
    assert measured.mse == pytest.approx(((1 - x) ** 2).mean(), rel=1e-12)
    assert measured.unclipped > 1
    assert f"half_star against {kind} models measured" in " ".join(record.theory_disagreements)


class Idle(Defense):
    """It does nothing."""

    def on_scores(self, log_c: Array, ctx: Context) -> Array:
        return log_c


def test_a_defence_is_measured_by_answers_in_the_box(monkeypatch: pytest.MonkeyPatch) -> None:
    """Four classes determine two columns of zeros and ones; answers far outside are exact inside."""
    honest = ATTACKS.get("half_star").solve  # type: ignore[attr-defined]

    def far(self: Any, A: Array, b: Array, **given: Any) -> Any:
        e = honest(self, A, b, **given)
        return Estimate(e.target, e.rows, 1000 * (e.values - 0.5) + 0.5, e.status, extras=e.extras)

    monkeypatch.setattr(ATTACKS.get("half_star"), "solve", far)
    monkeypatch.setattr(Bench, "attacks", {"half_star": ATTACKS.get("half_star")()})
    monkeypatch.setattr(module, "candidates", lambda: iter([("idle", {}, Idle)]))
    x = np.random.default_rng(0).integers(0, 2, (70, 2)).astype(float)
    subject = AuditSubject("bits", (ColumnInfo("a", 0.0, 1.0), ColumnInfo("b", 0.0, 1.0)), x, 4)
    (defended,) = audit(subject, QUICK, _silent).defenses
    assert (defended.attack, defended.mse, defended.leak) == ("half_star", 0.0, 1.0)


def _imputable(n: int = 200, **changes: Any) -> AuditSubject:
    """Columns that the other party's say, but for a little; the last is a letter."""
    rng = np.random.default_rng(5)
    other = rng.random((n, 2))
    steps = np.round(other[:, 0] * 2) / 2
    x = np.column_stack([0.5 * other @ [1, 0.6] + 0.1 * rng.random(n), rng.random(n), steps])
    columns = (
        ColumnInfo("told", 0.0, 1.0),
        ColumnInfo("free", 0.0, 1.0),
        ColumnInfo("steps", 0.0, 1.0, alphabet=(0.0, 0.5, 1.0)),
    )
    return AuditSubject("mine", columns, x, 2, other=other, **changes)


def test_imputation_from_the_others_columns_joins_the_blind_guesses(tmp_path: Path) -> None:
    """The mean stays beside it; the error is that of least squares fitted to the known rows, or near it."""
    subject, plan = _imputable(), Plan(models=2, known=60, rows=200, seed=1, training="secure")
    record = audit(subject, plan, _silent)
    assert record.blind_guess == "imputation"
    assert record.blind["imputation"] < 0.8 * record.blind["column_means"]
    bench = Bench.set_up(subject, plan)
    assert subject.other is not None
    own = np.column_stack([np.ones(200), subject.other])
    line = np.linalg.lstsq(own[bench.known], subject.x[bench.known], rcond=None)[0]
    plain = ((own[bench.rows] @ line - bench.truth) ** 2).mean(axis=0)
    means = ((bench.truth - bench.truth.mean(axis=0)) ** 2).mean(axis=0)
    assert record.column_blind[0] == pytest.approx(plain[0], rel=0.1)
    assert record.column_blind[0] < 0.2 * means[0]
    assert record.column_blind[1] <= means[1]
    letters: Any = next(a for a in record.attacks if a.rows == len(bench.rows)).blind_right
    assert letters[2] > 0.85 > np.unique(bench.truth[:, 2], return_counts=True)[1].max() / len(bench.rows)
    assert "imputation from the adversary's own columns" in sentences(record)[3]
    for a in record.attacks:
        own_rows = a.column_blind[0]
        assert own_rows < 0.3 * means[0], a.attack
    write_audit(record, tmp_path / "audit.html")
    page = (tmp_path / "audit.html").read_text(encoding="utf-8")
    assert "the column means ." in page
    assert "imputation from the adversary&#39;s own columns ." in page


@pytest.mark.parametrize(
    ("changes", "known"), [({"other": None}, 60), ({}, 1)], ids=["no columns of others", "no known rows"]
)
def test_without_known_rows_or_columns_of_others_nothing_is_imputed(
    changes: dict[str, Any], known: int
) -> None:
    subject = replace(_imputable(), **changes)
    plan = Plan(models=1, known=known, rows=200, seed=1, training="secure")
    bench = Bench.set_up(subject, plan)
    assert bench.guesses(bench.rows) == {}
    assert set(bench.blind) == {"zero", "half", "random", "column_means"}


def test_what_a_defence_leaves_is_compared_with_imputation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the same attacks seem to take more of a column."""
    monkeypatch.setattr(module, "candidates", lambda: iter([("idle", {}, Idle)]))
    plan = Plan(models=2, known=60, rows=200, seed=1, training="secure")
    subject = _imputable()
    facts = replace(subject, x=subject.x[:, ::2], columns=subject.columns[::2])
    fair: Any = audit(facts, plan, _silent).defenses[0]
    monkeypatch.setattr(Bench, "guesses", lambda self, rows: {})
    unfair: Any = audit(facts, plan, _silent).defenses[0]
    assert 1 - fair.leak > 5 * (1 - unfair.leak)


def test_a_constant_column_leaves_a_guess_no_error() -> None:
    """The mean of many 0.4 is not quite 0.4: a rounding of 1e-17 is nothing to find."""
    x = np.column_stack([np.full(950, 0.4), np.linspace(0, 1, 950)])
    assert x.mean(axis=0)[0] != 0.4
    least = column_blind(x, {})
    assert least[0] == 0.0
    assert least[1] == pytest.approx(x[:, 1].var())
