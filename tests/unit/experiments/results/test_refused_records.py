"""A record of a run is refused where a file says what no party writes; the field is named."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from runfolder import metric, theory, write_party

import vflens as vl
from vflens.errors import DataError


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"rows": -5}, r"1\.rows: .* 0 or more \(got -5\)"),
        ({"step": -1}, r"1\.step: .* 0 or more \(got -1\)"),
        (
            {"scored_set": "x-0"},
            r"1\.scored_set: expected train, predict, .*round-N, batches-N or sums-N \(got 'x-0'\)",
        ),
        ({"scored_set": "round--1"}, r"1\.scored_set: expected .* \(got 'round--1'\)"),
    ],
)
def test_metrics_that_no_party_writes_are_refused(tmp_path: Path, labels: dict[str, Any], words: str) -> None:
    kept = metric("mse", 0.1, rows=50, scored_set="round-0")
    write_party(tmp_path / "passive", "passive", metrics=[kept, metric("mse", 0.1, **labels)])
    file = tmp_path / "passive/metrics.parquet"
    with pytest.raises(DataError, match=rf"^{file} cannot be read as metrics \({words}\): copy it anew"):
        vl.read_run(tmp_path)


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (metric("mse", -1.0), "mse: give no negative number"),
        (metric("column_blind_mse", 0.1, values=[0.1, -0.1]), "column_blind_mse: give no negative number"),
        (metric("theory_rows", math.nan), r"theory_rows: give a whole number \(got nan\)"),
        (metric("theory_disorder", math.inf), r"theory_disorder: give a whole number \(got inf\)"),
    ],
)
def test_figures_that_no_party_measures_are_refused(tmp_path: Path, row: dict[str, Any], words: str) -> None:
    write_party(tmp_path / "passive", "passive", metrics=[row])
    with pytest.raises(DataError, match=rf"cannot be read as metrics \(0: {words}\): copy it anew"):
        vl.read_run(tmp_path)


B, S = metric("theory_noise_weight", 1.0), metric("score_noise", 1.0)


@pytest.mark.parametrize(
    ("weight", "noise", "words"),
    [
        ([2.0, 0.0, 2.0], [1.0] * 6, "theory_noise_weight is of 2 classes, score_noise of 3: copy metrics"),
        ([math.nan] * 3, [1.0] * 3, r"theory_noise_weight has no matrix \(a number is not finite\): copy"),
    ],
)
def test_matrices_that_do_not_fit_are_refused(
    tmp_path: Path, weight: list[float], noise: list[float], words: str
) -> None:
    rows = [{**B, "target": "passive", "rows": 360, "values": weight}, *theory("half_star", 0.1, 0.1)]
    write_party(tmp_path / "passive", "passive", metrics=rows)
    write_party(tmp_path / "active", "active")
    write_party(
        tmp_path / "coordinator",
        "coordinator",
        metrics=[{**S, "rows": 360, "values": noise}],
        config={"defenses": [{"name": "gaussian_scores"}]},
    )
    with pytest.raises(DataError, match=words):
        _ = vl.read_run(tmp_path).theory


def test_a_limit_of_another_kind_is_refused(tmp_path: Path) -> None:
    write_party(tmp_path / "passive", "passive", config={"limits": {"delta": "x"}})
    with pytest.raises(DataError, match=r"as a configuration \(limits\.delta: give a number \(got 'x'\)\)"):
        vl.read_run(tmp_path)


CHANGES: dict[str, Callable[[dict[str, Any]], Any]] = {
    r"setting: horizontal is none with the coordinator 'coordinator' \(parties\)": (
        lambda facts: facts.update(setting="horizontal")
    ),
    "role: 'passive' is active, and passive in parties": lambda facts: facts.update(role="active"),
    r"setting: vertical is none with the client 'coordinator' \(parties\)": (
        lambda facts: facts["parties"][0].update(role="client")
    ),
    "parties: coordinator and active have the labels, one party has": (
        lambda facts: facts["parties"][0].update(role="active")
    ),
    r"role: server is none of a vertical federation \(setting, parties\)": (
        lambda facts: facts.update(role="server", parties=facts["parties"][:2])
    ),
    r"train_rows: .* 0 or more \(got -3\)": lambda facts: facts.update(train_rows=-3),
    r"nonce: 64 hexadecimal digits, or none, are due \(got 'x'\)": lambda facts: facts.update(nonce="x"),
}


@pytest.mark.parametrize("words", CHANGES)
def test_a_federation_that_contradicts_itself_is_refused(tmp_path: Path, words: str) -> None:
    file = write_party(tmp_path / "passive", "passive") / "federation.json"
    facts = json.loads(file.read_text())
    vl.read_run(tmp_path)
    CHANGES[words](facts)
    file.write_text(json.dumps(facts))
    with pytest.raises(DataError, match=rf"^{file} cannot be read as JSON \({words}\): copy it anew"):
        vl.read_run(tmp_path)
