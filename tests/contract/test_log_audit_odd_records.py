"""An audit of logs finds records that no honest party writes; it does not fail over them."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from laboratory import federation

from vflens.experiments.log_audit.audit import audit_logs
from vflens.storage.journal import Journal
from vflens.types import Array, Exchange, Phase, Point, Released

_ONE = np.arange(1, dtype=np.int32)
#: Rows and tensors of a prediction, and what an audit says of its line; "": nothing.
RECORDS: dict[str, tuple[Array, dict[str, Array], str]] = {
    "two tensors": (_ONE, {"scores": np.zeros((1, 3)), "more": np.zeros(3)}, "holds 2 tensors"),
    "no tensor": (_ONE, {}, "holds 0 tensors"),
    "a scalar": (_ONE, {"scores": np.zeros(())}, "holds numbers of shape ()"),
    "more rows": (np.arange(5, dtype=np.int32), {"scores": np.zeros((1, 3))}, "rows (5,) holds numbers of"),
    "no rows": (_ONE[:0], {"scores": np.zeros((0, 3))}, ""),
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of a finished run of three parties."""
    home = tmp_path_factory.mktemp("finished") / "run"
    federation(home).run()
    return home


@pytest.mark.parametrize("party", ["active", "coordinator"])
@pytest.mark.parametrize("what", RECORDS)
def test_an_odd_prediction_is_found_at_its_line(
    finished: Path, tmp_path: Path, what: str, party: str
) -> None:
    home = Path(shutil.copytree(finished, tmp_path / "run"))
    log = "transcript" if party == "active" else "released"
    rows, tensors, problem = RECORDS[what]
    journal = Journal(home / party / log, chained=True)
    journal.append(
        Released("coordinator", Exchange("tiny/run", Phase.PREDICT, 1, 99), Point.SCORES, rows, tensors)
    )
    journal.link()
    journal.close()
    line = len((home / party / log / "index.jsonl").read_bytes().splitlines())
    (audited,) = audit_logs([home])
    of_the_line = [f.problem for f in audited.found.findings if (f.party, f.line) == (party, line)]
    assert any(problem in found for found in of_the_line) if problem else of_the_line == []
