"""Reports of folders that are damaged or hold no run: one sentence each, and a page is whole or none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from nonempty import nonempty
from reportpage import report
from runfolder import crossing, write_party, write_run

from vflens.errors import ConfigError, DataError, StorageError
from vflens.experiments.pages.report import write_report
from vflens.experiments.results.folders import read_party
from vflens.experiments.results.record import read_runs


@pytest.mark.parametrize(
    ("name", "damages"),
    [
        ("config.toml", [b"party = ", b"\x80", b'role = "spy"', b"defenses = 3"]),
        ("federation.json", [b"", b"{", b"[1]", b'{"parties": [{}]}']),
        ("status.json", [b"", b"null", b'{"state": "fine"}']),
        ("metrics.parquet", [b"", b"PAR1 but not for long"]),
        ("pictures.npz", [b"", b"\x80", b"PK\x03\x04torn"]),
        ("transcript/index.jsonl", [b"\x80\n", b"{}\n", b"[1]\n", b'{"sender": 1\n{"sender": 2}\n']),
    ],
)
def test_a_damaged_file_is_one_sentence(tmp_path: Path, name: str, damages: list[bytes]) -> None:
    run = write_run(tmp_path / "demo")
    for damage in nonempty(damages):
        (run / "passive" / name).write_bytes(damage)
        with pytest.raises(DataError, match=f"{name} cannot be read as .*: copy it anew") as caught:
            report(run)
        assert "\n" not in str(caught.value)


def test_metrics_with_a_missing_column_are_one_sentence(tmp_path: Path) -> None:
    folder = write_party(tmp_path / "demo" / "passive", "passive")
    pq.write_table(pa.table({"metric": ["mse"], "value": [0.1]}), folder / "metrics.parquet")
    with pytest.raises(DataError, match=r"metrics\.parquet cannot be read as metrics \(it lacks 'attack'\)"):
        read_party(folder)


def test_pictures_of_other_columns_are_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "demo")
    file = run / "passive" / "pictures.npz"
    np.savez(file, rows=np.arange(2), original=np.zeros((2, 3)))
    with pytest.raises(DataError, match="does not hold the party's columns"):
        report(run)
    arrays: dict[str, Any] = {"original": np.zeros((2, 4)), "estimate:ls": np.zeros((2, 3))}
    np.savez(file, rows=np.arange(2), **arrays)
    with pytest.raises(DataError, match="does not fit"):
        report(run)


def test_a_folder_of_a_role_that_has_none_is_refused_in_words(tmp_path: Path) -> None:
    folder = write_party(tmp_path / "demo" / "coordinator", "coordinator")
    (folder / "federation.json").write_text('{"party": "coordinator", "role": "operator"}')
    with pytest.raises(DataError, match=r"federation\.json .*role.*a party is passive, active"):
        report(tmp_path / "demo")


def test_json_that_is_nested_too_deeply_is_refused_with_its_reason(tmp_path: Path) -> None:
    folder = write_party(tmp_path / "demo" / "coordinator", "coordinator")
    (folder / "status.json").write_text("[" * 100_000)
    with pytest.raises(DataError, match=r"status\.json cannot be read as JSON \(it is nested too deeply\): "):
        read_party(folder)


def test_a_torn_transcript_counts_whole_lines(tmp_path: Path) -> None:
    lines = [crossing("active", "train", "embedding", 10), crossing("active", "train", "embedding", 7)]
    lines.append(crossing("passive", "disclose", "parameters", 0, withheld=True))
    folder = write_party(tmp_path / "demo" / "coordinator", "coordinator", crossings=lines)
    with (folder / "transcript" / "index.jsonl").open("a") as index:
        index.write('{"sender": "active", "phase": "tra')
    embedding, parameters = read_party(folder).crossings()
    assert (embedding.receiver, embedding.sender, embedding.phase) == ("coordinator", "active", "train")
    assert (embedding.count, embedding.nbytes, embedding.withheld) == (2, 17, 0)
    assert (parameters.count, parameters.withheld) == (1, 1)


def test_folders_that_hold_no_run_are_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is no folder"):
        read_runs([tmp_path / "nowhere"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="holds no run"):
        read_runs([tmp_path / "empty"])
    first = write_party(tmp_path / "one" / "demo" / "active", "active")
    second = write_party(tmp_path / "two" / "demo" / "active", "active")
    with pytest.raises(ConfigError, match="the same party of the same run"):
        read_runs([first, second])
    assert len(read_runs([first, first, first.parent])[0].parties) == 1


def test_a_report_is_written_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = write_run(tmp_path / "demo")
    out = write_report([run], tmp_path)
    assert out == tmp_path / "report.html"
    out.write_text("the old one")

    def full(self: Path, target: Path) -> Path:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(StorageError, match=r"report\.html cannot be written \(No space left on device\)"):
        write_report([run], out)
    assert out.read_text() == "the old one"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["demo", "report.html"]
