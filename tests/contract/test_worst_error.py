"""`limits.worst_error`: a passive party counts what its scores would give away, before they leave."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import horizontal
import numpy as np
import pytest
import tomli_w
from accidents import rebuild_all
from commandline import Refused
from laboratory import SYNTHETIC, THREE, close, deal, experiment, federation, figures, let_go_later
from oneprocess import LocalFederation
from processes import dealt

from vflens.clients.vertical import passive
from vflens.clients.vertical.released_model import KNOWN_ATTACKS, known_errors, released_model
from vflens.errors import ConfigError, StateError
from vflens.protocol.checks import MODEL_VERSION
from vflens.score.theory import ReleasedModel
from vflens.types import Array, Point

GRANTED = [{"what": what, "to": "active"} for what in ("parameters", "moments")]
ATTACKED: dict[str, Any] = {
    "disclose": GRANTED,
    "attacks": [{"name": name} for name in ("half", *KNOWN_ATTACKS)],
}


def prepared(folder: Path, limit: float | None = None, **changes: Any) -> LocalFederation:
    """A trained federation whose predictions are open."""
    limits = {} if limit is None else {"worst_error": limit}
    local = federation(folder, **{**ATTACKED, "limits": limits, **changes})
    local.coordinator.prepare()
    local.coordinator.train()
    local.coordinator.disclose()
    local.coordinator.open_predictions()
    return local


def counted(local: LocalFederation, rows: Array) -> dict[str, float]:
    """What the passive party counts of ``rows``, once the model is trained."""
    run = local.passive["passive"].run
    model = released_model(run, lambda: None, granted=False)
    assert model is not None
    return dict(known_errors(model, run.truth[run.federation.train], run.truth[rows]))


def left(local: LocalFederation) -> list[int]:
    """The rows whose scores left the passive party."""
    return list(local.passive["passive"].gate.released_rows(Point.EMBEDDING, MODEL_VERSION))


def test_what_is_counted_is_what_the_attacks_of_the_run_find(tmp_path: Path) -> None:
    local = federation(tmp_path, **ATTACKED)
    local.run()
    found = figures(tmp_path / "passive")
    measured = {name: found["mse", name, ""] for name in KNOWN_ATTACKS}
    errors = counted(local, local.active.run.federation.predict)
    assert errors == pytest.approx(measured, rel=1e-6)
    assert len({round(error, 6) for error in errors.values()}) == 3


def refusal(local: LocalFederation, rows: Array) -> str:
    with pytest.raises(StateError) as refused:
        local.active.predictions.ask(rows)
    return str(refused.value)


def test_no_scores_leave_if_an_attack_on_all_of_them_errs_less(tmp_path: Path) -> None:
    local = prepared(tmp_path / "free")
    rows = local.active.run.federation.predict
    least = min(counted(local, rows).values())
    close(local)
    local = prepared(tmp_path / "above", least * 1.001)
    assert "worst_error" in refusal(local, rows)
    assert left(local) == []
    close(local)
    local = prepared(tmp_path / "below", least * 0.999)
    local.active.predictions.ask(rows)
    assert left(local) == rows.tolist()
    close(local)


def test_an_answer_is_no_oracle_for_a_row(tmp_path: Path) -> None:
    """Whatever rows are asked for: one sentence, which has no figure of them; the log alone has it."""
    local = prepared(tmp_path / "free")
    rows = local.active.run.federation.predict
    each = [min(counted(local, rows[n : n + 1]).values()) for n in range(len(rows))]
    limit = float(np.median(each))
    least = min(counted(local, rows).values())
    close(local)
    assert min(each) < limit < max(each)
    local = prepared(tmp_path / "held", max(limit, least * 1.001))
    sentences = {refusal(local, rows[n : n + 1]) for n in range(len(rows))}
    assert len(sentences) == 1
    assert not any(character.isdigit() for character in sentences.pop())
    log = (tmp_path / "held/passive/events.jsonl").read_text(encoding="utf-8")
    (noted,) = [json.loads(line) for line in log.splitlines() if '"worst_error"' in line]
    assert noted["worst_error"] == pytest.approx(least)
    close(local)


def test_its_operator_reads_whose_limit_refused_what(tmp_path: Path) -> None:
    """It was told that the active party had died, and to look at that one's log."""
    with dealt(tmp_path, **ATTACKED, data=SYNTHETIC, limits={"worst_error": 0.99}) as parties:
        parties.start("coordinator", "active", "passive")
        assert parties.codes()["passive"] == 11
        text = parties.said("passive")
        assert parties.status("passive")["reason"] in text
    facts = re.search(r"error: the run ended early: (.*)", text)
    assert facts is not None
    assert re.fullmatch(
        r"'passive', this party, released no scores: its own limits\.worst_error = 0\.99 refused 'active' "
        r"its request for \d+ prediction rows \(0 to \d+\), (half_star|mean_star|lmmse) would err by 0\.\d+ "
        r"on all its prediction rows\. Train for fewer classes or with more columns, or lower the limit",
        facts[1],
    )


def test_a_restart_changes_nothing(tmp_path: Path) -> None:
    local = prepared(tmp_path, 0.99)
    rows = local.active.run.federation.predict
    before = refusal(local, rows)
    rebuild_all(local)
    local.coordinator.prepare()
    with pytest.raises(StateError) as refused:
        local.passive["passive"]._check_worst_error(rows)
    assert str(refused.value) == before
    close(local)


@pytest.mark.parametrize("changes", [
    {"parties": THREE},
    {"model": {"family": "split_network", "architecture": "mlp", "width": 4}},
], ids=["three passive parties", "a network"])  # fmt: skip
def test_a_limit_that_cannot_be_counted_is_refused_before_a_run(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match=r"limits\.worst_error counts attacks on the scores of softmax"):
        experiment(tmp_path, **changes, disclose=[], attacks=[], limits={"worst_error": 0.01})
    without = experiment(tmp_path, **changes, disclose=[], attacks=[])
    local = let_go_later(LocalFederation(deal(without, tmp_path), lambda stage, done, total: None))
    party = next(iter(local.passive.values()))
    limits = party.config.limits.model_copy(update={"worst_error": 0.01})
    party.config = party.config.model_copy(update={"limits": limits})
    with pytest.raises(ConfigError, match=r"^limits\.worst_error counts attacks on the scores of softmax"):
        local.coordinator.prepare()


def test_it_is_refused_where_no_scores_leave(tmp_path: Path, refused: Refused) -> None:
    files = deal(experiment(tmp_path), tmp_path)
    for party in ("active", "coordinator"):
        settings = tomllib.loads(files[party].read_text(encoding="utf-8"))
        settings["limits"]["worst_error"] = 0.1
        files[party].write_text(tomli_w.dumps(settings), encoding="utf-8")
        text = refused(2, "check", files[party])
        assert (
            f"limits.worst_error is that of a passive party's scores, and this is the {party}'s file" in text
        )
    with pytest.raises(
        ValueError, match=r"limits\.worst_error is that of a passive party's scores, and here"
    ):
        horizontal.experiment(
            tmp_path, horizontal={"rounds": 1}, data={"name": "wine"}, limits={"worst_error": 0.1}
        )


def test_no_scores_leave_where_no_closed_form_covers_the_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = prepared(tmp_path, 1e-9)
    monkeypatch.setattr(passive, "released_model", lambda *run, **how: None)
    assert "cannot be counted beside a defence" in refusal(local, local.active.run.federation.predict[:1])
    assert left(local) == []
    close(local)


def test_errors_are_those_of_answers_in_the_box() -> None:
    """One equation 2 x1 + x2 = 0 of two columns: the nearest solution to (½, ½) is (−.1, .2), by hand."""
    model = ReleasedModel(np.array([[0.0, 0.0], [2.0, 1.0]]), None)
    facts = np.array([[0.5, 0.5], [0.6, 0.4], [0.4, 0.6]])
    errors = known_errors(model, facts, np.array([[0.0, 0.0]]))
    assert errors["half_star"] == pytest.approx((0.0 + 0.2**2) / 2)
    assert errors["mean_star"] == pytest.approx(errors["half_star"])  # the mean is (½, ½)
    assert errors["lmmse"] == pytest.approx(0.5)  # along (1, −1) alone: (−1, 2), clipped (0, 1)


@pytest.mark.parametrize("apart", [1.0, 1e-6, 1e-10, 1e-12])
def test_classes_that_hardly_differ_hide_nothing(apart: float) -> None:
    """An active party that cheats sends gradients that leave three classes so. From the scores as they are
    released, in float64, least squares without a cut-off finds what it would find of other classes.
    """
    rng = np.random.default_rng(0)
    a, b, c = np.array([[1.0, 0.5, -0.3, 0.8], [0.2, -1.0, 0.7, 0.4], [-0.4, 0.3, 1.0, 0.1]])
    weight = np.stack([0 * a, a, a + apart * b, a + apart * (2 * b + c)])
    rows = rng.uniform(size=(200, 4))
    logits = rows @ weight.T
    scores = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    A = weight[1:] - weight[:-1]
    found = 0.5 + (np.diff(scores, axis=1) - A @ np.full(4, 0.5)) @ np.linalg.pinv(A, rcond=1e-16).T
    error = float(np.mean((found.clip(0, 1) - rows) ** 2))
    counted = known_errors(ReleasedModel(weight, None), rng.uniform(size=(200, 4)), rows)
    assert counted["half_star"] == pytest.approx(error, rel=0.01)
    assert error == pytest.approx(0.0195, rel=0.01)
