"""In whole federations, closed forms of theory and what attacks measured: equal to rounding, or loud.

The routes are independent: the attacks solve equations row by row, the closed forms know moments and matrices
only.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import SYNTHETIC, close, federation
from typer.testing import CliRunner

import vflens.attacks.half_star
from vflens.cli.main import app
from vflens.experiments.offline.attack import attack_recorded
from vflens.experiments.offline.score import score_estimate
from vflens.experiments.results import theory
from vflens.experiments.results.record import RecordedRun, read_runs
from vflens.numerics.theory.believed import closed_form
from vflens.storage import metrics
from vflens.storage.metrics import Name
from vflens.types import Estimate

ESTIMATORS = ("ls", "half_star", "clamped_ls", "rcc2")
AGNOSTIC = ({"name": "agnostic", "outside": "keep"}, {"name": "refined_agnostic", "received": 5})


def _run(
    home: Path, *, classes: int = 3, share: float = 0.5, disclosed: bool = False, **changes: Any
) -> RecordedRun:
    to = ["active", "coordinator"] if disclosed else ["active"]
    settings: dict[str, Any] = {
        "data": {**SYNTHETIC, "classes": classes, "informative": 6},
        "split": {"kind": "fraction", "fraction": share},
        "disclose": [{"what": "parameters", "to": name} for name in to],
        "attacks": [{"name": n} for n in (*ESTIMATORS, "black_box")] + list(AGNOSTIC),
    }
    local = federation(home, **settings | changes)
    local.run()
    close(local)
    (found,) = read_runs([p.folder.parent for p in local.passive.values()])
    return found


def _found(done: RecordedRun, scored_set: str = "predict") -> dict[str, theory.Comparison]:
    return {c.attack: c for c in theory.comparisons(done) if c.scored_set == scored_set}


def _at(party: str, name: str, **settings: Any) -> dict[str, Any]:
    return {"at": party, "name": name, **settings}


INPUTS, OUTPUTS, EPSILON = "transform_inputs", "transform_parameters", {"epsilon": 0.01}
CASES = (
    ({"defenses": [_at("passive", INPUTS)]}, "RVG §VII-A", "RVG §VII-A"),
    ({"defenses": [_at("passive", INPUTS, kind="random")]}, "RVG Theorem 3", "VAR (40)"),
    ({"defenses": [_at("passive", OUTPUTS)]}, "RVG Theorem 3", "VAR (40)"),
    ({"defenses": [_at("passive", OUTPUTS)], "classes": 6}, "VAR (46)", "VAR (46)"),
    ({"defenses": [_at("passive", "distorted_parameters", **EPSILON)], "classes": 2}, None, "VAR (52)"),
    (
        {"defenses": [_at("passive", "distorted_parameters", **EPSILON)], "share": 0.15},
        "VAR (48)",
        "VAR (48)",
    ),
    ({"defenses": [_at("coordinator", "gaussian_scores")]}, "RVG Theorem 4", "RVG Theorem 4"),
    ({"defenses": [_at("coordinator", "gaussian_scores")], "classes": 7}, "RVG Theorem 4", "RVG Theorem 4"),
    ({"defenses": [_at("coordinator", "scheme_1")], "disclosed": True}, "RVG Theorem 4", "RVG Theorem 4"),
)  # fmt: skip


@pytest.mark.parametrize(("settings", "ls", "half_star"), CASES)
def test_closed_forms_hold_under_the_defences_that_they_describe(
    tmp_path: Path, settings: dict[str, Any], ls: str | None, half_star: str
) -> None:
    done = _run(tmp_path, **settings)
    found = _found(done)
    assert {a: c.statement for a, c in found.items() if a in ("ls", "half_star")} == {
        a: s for a, s in (("ls", ls), ("half_star", half_star)) if s
    }
    for name in ("ls", "half_star"):
        if name in found:
            assert found[name].difference < 1e-9
            assert found[name].verdict == "agrees"
    if ls:
        assert found["clamped_ls"].upper == pytest.approx(found["ls"].measured, rel=1e-9)
        assert found["clamped_ls"].measured < found["ls"].measured
    assert theory.alarms(done) == []


def test_guessed_scores_and_the_plain_run(tmp_path: Path) -> None:
    """VAR (21) of half*, unclipped and, as a bound, clipped; training rows have no received scores to compare
    with.
    """
    found = _found(done := _run(tmp_path))
    assert found["ls"].statement == "RVG Theorem 2"
    assert found["agnostic"].statement == "VAR (21)"
    assert found["agnostic"].difference < 1e-9
    assert found["refined_agnostic"].measured <= found["refined_agnostic"].upper
    assert _found(done, "train")["agnostic"].verdict.startswith("not comparable: the scores of these rows")
    assert theory.alarms(done) == []


def test_one_column_in_the_black_box_and_with_guessed_scores(tmp_path: Path) -> None:
    found = _found(done := _run(tmp_path, share=0.15))
    assert found["agnostic"].statement == "VAR (13)"
    assert found["agnostic"].difference < 1e-9
    assert found["black_box"].statement == "RVG §VI"
    assert found["black_box"].difference < 1e-9 or "1 − x for x" in found["black_box"].verdict
    assert theory.alarms(done) == []


def test_what_no_statement_covers_is_not_compared(tmp_path: Path) -> None:
    """Noise on the scores on top of other weights; noise on the logits, of which nobody kept the moment."""
    both = [_at("coordinator", "gaussian_scores"), _at("passive", OUTPUTS)]
    for i, defenses in enumerate((both, [_at("passive", "dp_gaussian")])):
        done = _run(tmp_path / str(i), defenses=defenses)
        assert _found(done)["half_star"].verdict.startswith("not comparable: defended by ")
        assert theory.alarms(done) == []


def test_noise_on_many_classes_is_neither_kept_nor_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(metrics, "MOST_ROWS", 2)
    monkeypatch.setattr(theory, "MOST_ROWS", 2)
    plain = _run(tmp_path / "plain")
    assert not [*plain.metrics(Name.THEORY_NOISE_WEIGHT), *plain.metrics(Name.GUESSED_SCORES_ERROR)]
    text = {s: _found(plain, s)["agnostic"].verdict for s in ("predict", "train")}
    assert set(text.values()) == {"not comparable: the noise on more than 2 classes is not kept"}
    noisy = _run(tmp_path / "noisy", defenses=[_at("coordinator", "gaussian_scores")])
    assert not [*noisy.metrics(Name.SCORE_NOISE)]
    assert _found(noisy)["half_star"].verdict == "not comparable: defended by gaussian_scores at coordinator"


def test_an_estimate_from_the_record_is_not_judged_by_parameters_that_it_did_not_have(tmp_path: Path) -> None:
    done = _run(tmp_path, share=0.15, attacks=[{"name": "half"}])
    file, home = tmp_path / "estimate.npz", done.parties[0].folder.parent
    for name, given in (("black_box", {"signs": "zero_bias"}), ("agnostic", {"outside": "keep"}), ("ls", {})):
        attack_recorded(home / "active", name, None, file, parameters=given)
        score_estimate(file, home / "passive" / "config.toml")
    (again,) = read_runs([home])
    verdicts = {a: c.verdict for a, c in _found(again).items()}
    assert verdicts.pop("ls") == "agrees"
    assert all("it was made from the record" in v for v in verdicts.values())
    assert theory.alarms(again) == []


def test_a_disagreement_is_loud_in_report_terminal_and_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An adversary whose half* is something else: what it submits cannot be what theory speaks of."""
    honest = vflens.attacks.half_star.HalfStar.solve

    def moved(self: Any, A: Any, b: Any, **given: Any) -> Estimate:
        e = honest(self, A, b, **given)
        return Estimate(e.target, e.rows, e.values + 1e-3, e.status, extras=e.extras)

    monkeypatch.setattr(vflens.attacks.half_star.HalfStar, "solve", moved)
    done = _run(tmp_path, defenses=[_at("passive", INPUTS)])
    (alarm,) = theory.alarms(done)
    assert alarm.startswith("half_star on passive (18 predict rows) measured ")
    assert "RVG §VII-A says" in alarm
    folder = str(done.parties[0].folder.parent)
    page = tmp_path / "report.html"
    text = CliRunner().invoke(app, ["report", folder, "--out", str(page)]).stdout
    assert "THEORY AND MEASUREMENT DISAGREE" in text
    assert alarm in text
    data = json.loads(CliRunner().invoke(app, ["report", folder, "--out", str(page), "--json"]).stdout)
    assert data["runs"][0]["theory_disagreements"] == [alarm]
    verdicts = {t["attack"]: t["verdict"] for t in data["runs"][0]["theory"] if t["scored_set"] == "predict"}
    assert (verdicts["half_star"], verdicts["ls"]) == ("disagrees", "agrees")
    assert page.read_text(encoding="utf-8").count('class="alarm"') == 2  # a banner and a row


def test_no_statement_covers_any_other_matrix() -> None:
    rng = np.random.default_rng(0)
    A, x = rng.normal(size=(2, 4)), rng.random((20, 4))
    assert closed_form(0.5, A, rng.normal(size=(2, 4)), x) is None
    assert closed_form(0.0, A[:1], rng.normal(size=(1, 4)), x) is None
    assert closed_form(0.5, A, np.zeros((2, 4)), x) is None


def test_a_defence_of_batches_is_no_disagreement(tmp_path: Path) -> None:
    """Masked inputs are no linear map of the columns; noise on the scores does not change that."""
    masks = [_at(party, "instahide", mixed=1) for party in ("passive", "active")]
    done = _run(tmp_path, share=0.3, defenses=[*masks, _at("coordinator", "gaussian_scores")])
    found = _found(done)
    assert found["ls"].measured > found["ls"].closed + 0.1
    for name in ("ls", "half_star"):
        verdict = found[name].verdict
        assert verdict.startswith("not comparable: defended by ")
        assert all(f"{d} at {p}" in verdict for d, p in (("instahide", "passive"), ("instahide", "active")))
    assert theory.alarms(done) == []
