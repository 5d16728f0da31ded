"""An audit of logs finds records that no honest party writes, and an attack refuses them."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from laboratory import federation

from vflens.errors import ConfigError, StorageError
from vflens.experiments.offline.attack import attack_recorded
from vflens.experiments.verify_log.verify import verify_logs
from vflens.services.folder import write_status
from vflens.storage.chain import LINK_BYTES
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
        Released(
            "coordinator", Exchange("tiny/run", Phase.PREDICT, 1, 99), Point.SCORES, rows, tensors=tensors
        )
    )
    journal.link()
    journal.close()
    line = len((home / party / log / "index.jsonl").read_bytes().splitlines())
    (audited,) = verify_logs([home])
    of_the_line = [f.problem for f in audited.found.findings if (f.party, f.line) == (party, line)]
    assert any(problem in found for found in of_the_line) if problem else of_the_line == []


@pytest.mark.parametrize("lacking", [1, 2, 5, 10**6])
def test_links_that_lack_at_the_end_are_found(finished: Path, tmp_path: Path, lacking: int) -> None:
    home = Path(shutil.copytree(finished, tmp_path / "run"))
    for party in ("active", "passive", "coordinator"):
        write_status(home / party, "finished")
    log = home / "active" / "transcript"
    count = len((log / "index.jsonl").read_bytes().splitlines())
    (log / "chain.bin").write_bytes((log / "chain.bin").read_bytes()[: LINK_BYTES * max(0, count - lacking)])
    (audited,) = verify_logs([home])
    many = f"{min(lacking, count)} records have no link: they were added later"
    problem = "1 record has no link: it was added later" if lacking == 1 else many
    assert problem in [f.problem for f in audited.found.findings]


def test_more_links_than_any_log_has_are_found_by_their_size(finished: Path, tmp_path: Path) -> None:
    """A sparse file takes no disk, and its links gigabytes of memory."""
    home = Path(shutil.copytree(finished, tmp_path / "run"))
    os.truncate(home / "active/transcript/chain.bin", 1 << 40)
    (audited,) = verify_logs([home])
    assert any("1,099,511,627,776 bytes, more than index.jsonl" in f.problem for f in audited.found.findings)


def test_an_attack_refuses_scores_of_rows_that_the_run_does_not_predict(
    finished: Path, tmp_path: Path
) -> None:
    home = Path(shutil.copytree(finished, tmp_path / "run"))
    journal = Journal(home / "active" / "transcript", chained=True)
    exchange, rows = Exchange("tiny/run", Phase.PREDICT, 1, 99), np.array([4159], np.int32)
    journal.append(
        Released("coordinator", exchange, Point.SCORES, rows, tensors={"scores": np.zeros((1, 3))})
    )
    journal.close()
    with pytest.raises(StorageError, match="holds scores of row 4159, which the run does not predict"):
        attack_recorded(home / "active", "half_star", None, tmp_path / "estimate.npz")


@pytest.mark.parametrize(("text", "problem"), [("", "holds no certificate"), (None, "--trust .* holds no")])
def test_trust_is_looked_at_where_nothing_is_signed(
    finished: Path, tmp_path: Path, text: str | None, problem: str
) -> None:
    trust = tmp_path / "trust.pem"
    if text is not None:
        trust.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=problem):
        verify_logs([finished], trust)
