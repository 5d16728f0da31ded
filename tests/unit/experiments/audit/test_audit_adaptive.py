"""An audit attacks a defence with what is made for it, and judges none without."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vflens.defenses.label_only import LabelOnly
from vflens.defenses.privee import Privee
from vflens.defenses.transform_parameters import TransformParameters
from vflens.experiments.audit import defenses as module
from vflens.experiments.audit.advice import recommendation
from vflens.experiments.audit.bench import Bench, Plan
from vflens.experiments.audit.models import simulate
from vflens.experiments.audit.run import audit
from vflens.experiments.audit.subject import AuditSubject
from vflens.types import ColumnInfo

PLAN = Plan(models=3, known=40, rows=200, seed=1, training="secure")


def _silent(stage: str, done: int, total: int) -> None: ...


def _mine() -> AuditSubject:
    x = np.random.default_rng(7).random((200, 2))
    return AuditSubject("mine.csv", tuple(ColumnInfo(f"c{j}", 0.0, 1.0) for j in range(2)), x, 2)


def test_privee_is_judged_by_the_attack_that_undoes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """By another route: the error of ``lmmse`` on the same models without a defence."""
    settings = {"variant": "privee", "epsilon": 0.01}
    monkeypatch.setattr(module, "candidates", lambda: iter([("privee", settings, Privee)]))
    subject = _mine()
    (defended,) = audit(subject, PLAN, _silent).defenses
    bench = Bench.set_up(subject, PLAN)
    errors = []
    for i in range(module.ATTACKED_MODELS):
        plain = simulate(bench.subject, "trained", PLAN.rng("trained", i))
        (answer,) = bench.estimates(plain, "trained", i, only="lmmse")
        errors.append(((answer.inside - bench.subject.x[answer.rows]) ** 2).mean())
    assert defended.attack == "lmmse_privee"
    assert defended.mse == pytest.approx(np.mean(errors), rel=0.05)
    assert np.mean(errors) < 0.8 * bench.blind[bench.blind_guess]


def test_no_defence_is_judged_without_the_attack_that_is_made_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = TransformParameters
    monkeypatch.setattr(module, "candidates", lambda: iter([("transform_parameters", {}, kind)]))
    blank, secure, clear = (
        audit(_mine(), plan, _silent)
        for plan in (replace(PLAN, known=0), PLAN, replace(PLAN, training="clear"))
    )
    (unjudged,), (judged,), (turned,) = blank.defenses, secure.defenses, clear.defenses
    assert unjudged.untested == "not tested: known_scores, lmmse_turned, made for it, could not run here"
    assert blank.fitting == ()
    assert not judged.untested
    assert "known_scores" in judged.tried
    assert "lmmse_turned" in turned.tried


def test_no_defence_is_judged_by_what_a_few_rows_teach(monkeypatch: pytest.MonkeyPatch) -> None:
    """A column that copies the label is nothing to an attack that learnt from five rows, all to others."""
    monkeypatch.setattr(module, "candidates", lambda: iter([("label_only", {}, LabelOnly)]))
    rng = np.random.default_rng(7)
    labels = rng.integers(0, 2, 600).astype(np.int32)
    x = np.column_stack([labels, rng.random((600, 2))])
    columns = tuple(ColumnInfo(name, 0.0, 1.0) for name in ("copy", "age", "income"))
    subject = AuditSubject("mine.csv", columns, x, 2, labels=labels)
    few, more = (audit(subject, replace(PLAN, known=k, rows=600), _silent) for k in (5, 10))
    (unjudged,), (judged,) = few.defenses, more.defenses
    assert unjudged.leak is not None
    assert unjudged.leak < 0.2
    assert unjudged.untested == (
        "not tested: lmmse_rescaled, made for it, learnt from 5 known rows: state known = 10 in [audit] of a "
        "description"
    )
    assert not few.fitting
    assert "Not tested, since no attack made for them had what it needs: label_only." in recommendation(few)
    assert judged.leak is not None
    assert judged.leak > 0.9
    assert not judged.untested
