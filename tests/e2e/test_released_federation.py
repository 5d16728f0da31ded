"""A table released under noise from one real process to another: the bits are those of one process."""

from __future__ import annotations

from pathlib import Path

import pytest
from laboratory import experiment, transcripts

from vflens.experiments.run.run import run

RELEASE = [{"at": "passive", "name": "release_table", "mechanism": "gaussian"}]
GRANTS = [{"what": "moments", "to": "active"}]


@pytest.mark.timeout(240)
@pytest.mark.usefixtures("one_start")
def test_a_table_released_between_processes_is_the_one_released_in_process(tmp_path: Path) -> None:
    homes: list[Path] = []
    for name in ("processes", "one"):
        what = experiment(
            tmp_path / name,
            defenses=RELEASE,
            disclose=GRANTS,
            attacks=[{"name": "released_table"}, {"name": "shrunk_table"}],
        )
        homes += run(what, in_process=name == "one").scenarios
    assert transcripts(homes[0]) == transcripts(homes[1])
    tables = [
        r for r in (homes[0] / "active/transcript/index.jsonl").read_text().splitlines() if '"dataset"' in r
    ]
    assert len(tables) == 1
