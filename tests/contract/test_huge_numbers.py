"""Finite numbers that become infinite in somebody's unit: refused, and not recorded."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import lies
import numpy as np
import pytest
from laboratory import federation
from oneprocess import LocalFederation
from test_lying_replies import MLP, NUMBER, SHARES, VERTICAL

from vflens.errors import ConfigError, ProtocolError
from vflens.protocol.acts import Forward, Predict, Query, Step
from vflens.types import ColumnInfo, Released, sealed

TRAININGS: dict[str, dict[str, Any]] = {
    "in the clear": {"epochs": 2, "batch_size": 12, "learning_rate": 0.1},
    "on shares": SHARES,
}


def _number(home: Path, training: str) -> LocalFederation:
    local = federation(home, **NUMBER, training=TRAININGS[training], attacks=[])
    local.coordinator.prepare()
    return local


def _inflated(huge: float, reply: Any) -> Any:
    """``reply`` with ``huge`` numbers."""
    if not isinstance(reply, Released):
        return replace(reply, released=_inflated(huge, reply.released))
    tensors = {name: sealed(np.full_like(of, huge)) for name, of in (reply.tensors or {}).items()}
    return replace(reply, tensors=tensors)


@pytest.mark.parametrize("huge", [1.7e308, -1.7e308, 1e60, -(2.0**41)])
@pytest.mark.parametrize("training", TRAININGS)
def test_no_prediction_that_no_label_has_is_believed(tmp_path: Path, training: str, huge: float) -> None:
    """Nor a part of one: in the label's unit it could be infinite."""
    local = _number(tmp_path, training)
    trains: list[Any] = [("coordinator", "passive", Step)] if training == "in the clear" else []
    predicts: list[Any] = [("coordinator", "passive", Forward), ("active", "coordinator", Predict)]
    for stage, cells in {"train": trains, "predict": predicts}.items():
        for caller, callee, act in cells:
            transcript, links = local.parties[caller].transcript, local.parties[caller].links
            links[callee] = liar = lies.Liar(links[callee], act)
            liar.lie, before = partial(_inflated, huge), transcript.received
            with pytest.raises(ProtocolError, match=r"none of linear|NaN, infinite or huge numbers in step"):
                VERTICAL[stage](local)
            assert (liar.lied, transcript.received) == (1, before)
            links[callee] = liar.inner
        VERTICAL[stage](local)
    assert np.isfinite(local.active.query(Query("0-3")).scores).all()


def test_a_label_whose_predictions_would_overflow_is_refused(tmp_path: Path) -> None:
    local = federation(tmp_path, **NUMBER, attacks=[])
    local.active.table = replace(local.active.table, label=ColumnInfo("disease", -1e300, 1e300))
    with pytest.raises(ConfigError, match=r"^predictions of 'disease', from -1e\+300 to 1e\+300, would over"):
        local.coordinator.prepare()


@pytest.mark.parametrize("aggregator", ["coordinator", "active"])
def test_scores_that_overflow_in_the_own_part_of_the_model_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, aggregator: str
) -> None:
    """Large embeddings, or what was learned from some, can make infinite numbers of its layers."""
    local = federation(tmp_path, aggregator=aggregator, model=MLP, attacks=[], disclose=[])
    local.coordinator.prepare()
    local.coordinator.train()
    before = local.active.transcript.received
    with monkeypatch.context() as overflowing:
        model = local.active.run.model
        overflowing.setattr(model, "log_scores", lambda received, *_: np.full((len(received), 3), np.nan))
        with pytest.raises(
            ProtocolError, match=r"^scores from the embeddings of other parties in pred.* none of"
        ):
            VERTICAL["predict"](local)
    assert local.active.transcript.received == before
    VERTICAL["predict"](local)
