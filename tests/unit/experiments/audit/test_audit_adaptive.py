"""An audit attacks a defence with what is made for it, and judges none without."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from vflens.defenses.privee import Privee
from vflens.defenses.transform_parameters import TransformParameters
from vflens.experiments.audit import defenses as module
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
