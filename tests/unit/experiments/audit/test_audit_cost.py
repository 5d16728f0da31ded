"""What a defence costs in an audit: measured by seed on rows that did not train, and which one is chosen."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from vflens.defenses.label_only import LabelOnly
from vflens.experiments.audit import defenses as module
from vflens.experiments.audit.bench import Bench, Plan, Wanted
from vflens.experiments.audit.defenses import Defended, fitting
from vflens.experiments.audit.models import simulate
from vflens.experiments.audit.run import audit
from vflens.experiments.audit.subject import AuditSubject
from vflens.experiments.pages.cost import Cost, Use, gains
from vflens.registry import ATTACKS
from vflens.types import ColumnInfo

PLAN = Plan(models=2, known=15, rows=200, seed=1, training="secure")


def _silent(stage: str, done: int, total: int) -> None: ...


def _mine() -> AuditSubject:
    x = np.random.default_rng(7).random((200, 4))
    return AuditSubject("mine.csv", tuple(ColumnInfo(f"c{j}", 0.0, 1.0) for j in range(4)), x, 2)


def _priced(name: str, leak: float, lost: float, kl: float, **changes: Any) -> Defended:
    """Ten seeds, all of which lose ``lost``; the model gains .2 over the active party alone."""
    cost = Cost("AUC", (lost,) * 10, (0.2,) * 10, (0.2,) * 10)
    given = Defended(name, {}, "you", 0.1, "ls", leak, "c0", cost, str(cost), mean_kl=kl, argmax_kept=1.0)
    return replace(given, **changes)


WANTED = Wanted(0.2, None, 0.01)


def test_the_cheapest_that_fits_is_recommended() -> None:
    dear, cheap = _priced("dear", 0.1, 0.005, 0.01), _priced("cheap", 0.2, 0.001, 0.1)
    others = [_priced("weak", 0.25, 0.0, 0.0), _priced("lossy", 0.0, 0.1, 0.01)]
    absent = Defended("absent", {}, "you", reason="no")
    assert [d.defense for d in fitting([dear, *others, cheap, absent], WANTED)] == ["cheap", "dear"]
    withheld = replace(cheap, defense="withheld", withheld=True)
    assert fitting([cheap, withheld], WANTED)[0] is withheld
    by_error = Wanted(None, 0.1, 0.01)
    assert [d.defense for d in fitting([dear, *others, cheap], by_error)] == ["weak", "cheap", "dear"]
    assert fitting([cheap], replace(by_error, least_error=0.11)) == ()


@pytest.mark.parametrize(
    "cost",
    [
        Cost("AUC", (0.1, -0.1) * 5, (0.2,) * 10, (0.2,) * 10),  # not decided
        Cost("AUC", (0.0,) * 10, (0.0,) * 10, (0.2,) * 10),  # no use left
        Cost("AUC", (0.0,) * 10, (0.2,) * 10, (0.0,) * 10),  # the model is of no use
        Cost("AUC", (0.0,) * 4, (0.2,) * 4, (0.2,) * 4),  # not measured
    ],
)
def test_a_defence_whose_cost_is_open_or_that_leaves_no_use_is_not_recommended(cost: Cost) -> None:
    open_ = replace(_priced("open", 0.0, 0.0, 0.0), cost=cost)
    assert fitting([open_], WANTED) == ()
    assert open_.keeps_to(WANTED)


def test_what_a_defence_costs_is_measured_by_seed_on_rows_that_did_not_train(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By another route: scikit-learn's AUC of the same models' scores."""
    subject = _mine()
    monkeypatch.setattr(module, "candidates", lambda: iter([("label_only", {}, LabelOnly)]))
    defended: Any = audit(subject, PLAN, _silent).defenses[0]
    bench = Bench.set_up(subject, PLAN)
    lost = []
    for i in range(module.COST_MODELS):
        plain, labels = (
            simulate(bench.subject, "trained", bench.plan.rng("trained", i), named)
            for named in ((), [("label_only", LabelOnly())])
        )
        rows = np.setdiff1d(np.arange(200), plain.trained)
        assert len(rows) == 40
        before, after = (
            roc_auc_score(w.labels[rows], w.released[rows, 1] > np.log(0.5)) for w in (plain, labels)
        )
        assert before == pytest.approx(after)  # what label_only leaves is the arg-max
        lost.append(roc_auc_score(plain.labels[rows], plain.released[rows, 1]) - after)
    assert defended.cost.measure == "AUC"
    np.testing.assert_allclose(defended.cost.lost, lost, atol=1e-12)
    assert len(lost) >= 10


def test_a_defence_of_predictions_acts_on_the_model_that_would_be_trained_under_it() -> None:
    """No model is trained again for it: the same releases, and no finding of another defence is kept."""
    rng, named = np.random.default_rng, ("label_only", LabelOnly())
    plain = simulate(_mine(), "trained", rng(0))
    ls = ATTACKS.get("ls")()
    rows, none = np.arange(9, dtype=np.int32), np.zeros(0, np.int32)
    before = plain.attack(ls, rows, none, rng(0))
    quick, again = plain.under(named), simulate(_mine(), "trained", rng(0), [named])
    np.testing.assert_array_equal(quick.released, again.released)
    np.testing.assert_array_equal(quick.trained, again.trained)
    after = quick.attack(ls, rows, none, rng(0))
    np.testing.assert_array_equal(after.values, again.attack(ls, rows, none, rng(0)).values)
    assert (after.values != before.values).any()


def test_seeds_without_a_figure_leave_a_cost_unmeasured() -> None:
    """AUC is not known of rows of one class: with few rows that is every seed."""
    of_one_class = {seed: Use(float("nan"), 0.5) for seed in range(20)}
    cost = Cost.of("AUC", of_one_class, of_one_class)
    assert (str(cost), cost.gain) == ("not measured (0 of at least 5 results)", "–")
    assert not gains(cost.gained)
