"""A record of a run is refused where a file says what no party writes; the field is named."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from runfolder import metric, write_party

import vflens as vl
from vflens.errors import DataError


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ({"rows": -5}, r"1\.rows: .* 0 or more \(got -5\)"),
        ({"step": -1}, r"1\.step: .* 0 or more \(got -1\)"),
        (
            {"scored_set": "x-0"},
            r"1\.scored_set: expected train, predict, .*round-N or batches-N \(got 'x-0'\)",
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
