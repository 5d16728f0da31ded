"""A horizontal experiment from its file to its report: one process per party, mutual TLS, the same bits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from laboratory import transcripts

from vflens.experiments.results.folders import read_runs
from vflens.experiments.results.results import clients, utility
from vflens.experiments.run.horizontal import HorizontalExperiment
from vflens.experiments.run.run import run

SMALL: dict[str, Any] = {
    "name": "small",
    "data": {"name": "synthetic", "rows": 120, "features": 6, "classes": 2},
    "split": {"alpha": 3.0},
    "parties": {"clients": 2},
    "horizontal": {"rounds": 3},
    "training": {"batch_size": 16},
    "network": {"transport": "tcp"},
}


@pytest.mark.timeout(300)
def test_processes_over_mutual_tls_give_the_bits_of_one_process(tmp_path: Path) -> None:
    found = {}
    for alone in (True, False):
        out = tmp_path / str(alone)
        done = run(HorizontalExperiment.model_validate({**SMALL, "out": out}), in_process=alone)
        (home,) = done.scenarios
        found[alone] = transcripts(home)
        (result,) = read_runs([home])
        accuracies = [together for _, together, _ in clients(result)]
        assert utility(result)["accuracy"] == sum(accuracies) / 2
        page = done.report.read_text(encoding="utf-8")
        assert all(words in page for words in ("client-1", "client-2", "update of every round"))
    assert (home / "client-1" / "tls" / "certificate.pem").exists()
    assert found[True] == found[False]
    assert sorted(found[True]) == ["client-1", "client-2", "server"]
