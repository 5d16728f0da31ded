"""The ledger: who sent what to whom, of how many rows, in words, as JSON and as a diagram."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from commandline import Refused, Run, refused, strict, vflens
from laboratory import close, federation
from reportpage import Page
from runfolder import crossing, write_party, write_run

from vflens.experiments.pages.ledger import write_ledger
from vflens.experiments.results.folders import read_party
from vflens.experiments.results.ledger import in_bytes, lines
from vflens.experiments.results.record import read_runs
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.experiments.run.run import run
from vflens.recorded.crossings import Crossing
from vflens.storage import journal
from vflens.storage.transcript import Transcript
from vflens.types import Array, Exchange, Phase, Point, Released

_FIXTURES = (refused, vflens)  # used by name
EVIL = "<script>alert(1)</script>\x1b[31m\n\u202e"


def update(rows: list[int], epoch: int, step: int) -> Released:
    """A training message of ``sender`` "passive" that names ``rows``."""
    named: Array = np.array(rows, np.int32)
    tensors = {"x": np.ones((len(rows), 2))}
    return Released(
        "passive", Exchange("run", Phase.TRAIN, epoch, step), Point.EMBEDDING, named, tensors=tensors
    )


def recorded(folder: Path, messages: list[Released], every: int = 1) -> Path:
    """A coordinator's folder whose transcript has recorded ``messages``."""
    write_party(folder, "coordinator", config={"transcript": {"every": every}})
    for file in (folder / "transcript").iterdir():
        file.unlink()
    transcript = Transcript(folder / "transcript", every)
    for message in messages:
        assert transcript.record(message)
    transcript.close()
    return folder


EPOCHS = [update([4, 2], 0, 0), update([0, 2, 9], 0, 1), update([9, 4], 1, 2), update([1], 1, 3)]


def test_rows_are_counted_once(tmp_path: Path) -> None:
    (found,) = read_party(recorded(tmp_path / "demo/coordinator", EPOCHS)).crossings()
    assert found == Crossing(
        "coordinator", "passive", "train", "embedding", count=4, nbytes=8 * 4 + 8 * 16, rows=5
    )


def test_many_rows_are_counted_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vflens.recorded.crossings._PENDING", 3)
    (found,) = read_party(recorded(tmp_path / "demo/coordinator", EPOCHS)).crossings()
    assert found.rows == 5


def test_a_sampled_transcript_counts_all_messages_and_says_what_it_lacks(tmp_path: Path, vflens: Run) -> None:
    folder = recorded(tmp_path / "demo/coordinator", EPOCHS, every=2)
    (found,) = read_party(folder).crossings()
    assert (found.count, found.nbytes, found.rows, found.unrecorded) == (4, 160, 3, 2)
    shown = vflens("ledger", folder).out
    assert "≥ 3" in shown
    assert "coordinator recorded the training messages of one epoch in 2: messages and" in shown


def test_an_epoch_of_which_nothing_was_recorded_is_counted(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "demo/coordinator", EPOCHS[:2], every=9)
    (found,) = read_party(folder).crossings()
    assert (found.sender, found.count, found.rows, found.unrecorded) == ("passive", 2, 0, 2)


def test_without_its_payload_a_log_has_no_rows(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "demo/coordinator", EPOCHS)
    payload = folder / "transcript" / "payload.bin"
    payload.write_bytes(payload.read_bytes()[:-40])
    assert [c.rows for c in read_party(folder).crossings()] == [None]
    payload.unlink()
    assert [(c.count, c.rows) for c in read_party(folder).crossings()] == [(4, None)]


@pytest.mark.parametrize(("shape", "offset"), [([10**15], 0), ([25], 4), ([1], 10**15)])
def test_rows_beyond_the_payload_are_not_read(tmp_path: Path, shape: list[int], offset: int) -> None:
    line = crossing("passive", "train", "embedding")
    line["rows"] |= {"shape": shape, "offset": offset}
    folder = write_party(tmp_path / "demo" / "coordinator", "coordinator", crossings=[line])
    (folder / "transcript" / "payload.bin").write_bytes(b"0" * 100)
    assert [c.rows for c in read_party(folder).crossings()] == [None]


def test_a_vertical_run_has_every_kind_with_its_rows_and_defences(tmp_path: Path) -> None:
    """The numbers of the experiment: 72 training rows in 3 epochs of 4 batches, 18 prediction rows."""
    noise = [{"name": "gaussian_scores", "at": "coordinator", "sigma": 0.5}]
    local = federation(tmp_path, defenses=noise)
    local.run()
    close(local)
    (done,) = read_runs([tmp_path])
    found = {
        (x.crossing.sender, x.crossing.receiver, x.crossing.point, x.crossing.phase): x for x in lines(done)
    }
    trained = found["passive", "coordinator", "embedding", "train"].crossing
    assert (trained.count, trained.rows) == (12, 72)
    scores = found["coordinator", "active", "scores", "predict"]
    assert (scores.crossing.rows, scores.defenses) == (18, ("gaussian_scores (sigma 0.5)",))
    assert found["passive", "active", "parameters", "disclose"].crossing.rows == 0
    for party in done.parties:  # the same by another reader of the logs
        log = list(journal.read(party.folder / "transcript"))
        received = [x.crossing for x in lines(done) if x.crossing.receiver == party.name]
        assert sum(c.count for c in received) == len(log)
        assert sum(c.nbytes or 0 for c in received) == sum(r.nbytes for r in log)
    assert [x.crossing.phase for x in lines(done)] == sorted(
        (x.crossing.phase for x in lines(done)), key=[*Phase].index
    )


def test_one_party_alone_shows_what_it_received_and_what_it_released(tmp_path: Path, vflens: Run) -> None:
    local = federation(tmp_path)
    local.run()
    close(local)
    alone = vflens("ledger", tmp_path / "passive", "--json")
    (found,) = strict(alone.out)["runs"]
    assert found["not_given"] == ["active", "coordinator"]
    sent = {(x["phase"], x["point"]): x for x in found["lines"] if x["sender"] == "passive"}
    assert sent["train", "embedding"] | {"defenses": None} == {
        **dict.fromkeys(("receiver", "nbytes", "rows", "defenses")),
        **{"sender": "passive", "phase": "train", "point": "embedding", "count": 12},
        **{"withheld": 0, "unrecorded": 0},
    }
    assert sent["predict", "embedding"]["rows"] == 18
    assert {x["sender"] for x in found["lines"] if x["receiver"] == "passive"} == {"active"}
    assert all(x["defenses"] is None for x in found["lines"] if x["sender"] != "passive")
    text = vflens("ledger", tmp_path / "passive").out
    assert "The folders of active, coordinator were not given" in text
    assert "not recorded" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.parametrize(
    ("secure", "point", "defenses"),
    [(False, Point.UPDATE, ()), (True, Point.MASKED_UPDATE, ("secure aggregation",))],
)
def test_an_update_is_of_all_training_rows_of_its_client(
    tmp_path: Path, secure: bool, point: Point, defenses: tuple[str, ...]
) -> None:
    what = HorizontalExperiment.model_validate(
        {
            "name": "small",
            "out": tmp_path,
            "data": {"name": "synthetic", "rows": 60, "features": 6, "classes": 2},
            "split": {},
            "parties": {"clients": 3},
            "horizontal": {"rounds": 2, "secure_aggregation": secure},
            "training": {"batch_size": 16},
        }
    )
    (done,) = read_runs(run(what, in_process=True).scenarios)
    clients = {name: info.train_rows for name, info in done.infos().items() if info.train_rows}
    of_clients = [x for x in lines(done) if x.crossing.point == point]
    updates = {x.crossing.sender: x.crossing for x in of_clients}
    assert {x.defenses for x in of_clients} == {defenses}
    assert {name: c.rows for name, c in updates.items()} == clients
    assert {(c.receiver, c.count) for c in updates.values()} == {("server", 2)}
    assert len(clients) == 3


def test_hostile_names_stay_text(tmp_path: Path, vflens: Run) -> None:
    run_folder = tmp_path / "demo"
    write_party(
        run_folder / "coordinator",
        "coordinator",
        crossings=[crossing(EVIL, EVIL, EVIL), crossing("[red]" + "x" * 10_000, "train", "embedding")],
    )
    text = vflens("ledger", run_folder).out
    assert not {"\x1b", "\u202e"} & set(text)
    assert "[red]" in text  # no markup
    assert len(text) < 5_000
    page = Page([run_folder], tmp_path / "page.html", write=write_page)
    assert all("alert(1)" not in script for script in page.scripts)
    assert all(tag != "img" for tag, _ in page.tags)
    labels = [name for f in page.figures for drawn in cast(Any, f["data"]) for name in drawn["y"]]
    assert labels
    assert all("<" not in name and len(name) < 400 for name in labels)
    assert len(page.html) - len(max(page.scripts, key=len)) < 40_000
    assert strict(vflens("ledger", run_folder, "--json").out)["runs"][0]["lines"][-1]["sender"] == EVIL


def write_page(folders: list[Path], out: Path) -> Path:
    return write_ledger(read_runs(folders), out)


def test_the_page_and_the_report_have_the_same_diagrams(tmp_path: Path) -> None:
    run_folder = write_run(tmp_path / "demo")
    page = Page([run_folder], tmp_path / "page.html", write=write_page)
    flows = [json.dumps(f) for f in page.figures]
    assert len(flows) == 3
    shown = [json.dumps(f) for f in Page([run_folder], tmp_path / "report.html").figures]
    assert set(flows) <= set(shown)
    bytes_between = {
        end: size
        for kind in cast(Any, page.figures[0]["data"])
        for end, size in zip(kind["y"], kind["x"], strict=True)
    }
    assert bytes_between == {"coordinator → passive": 100, "passive → coordinator": 100}


def test_a_run_without_messages_says_so(tmp_path: Path, vflens: Run) -> None:
    write_party(tmp_path / "demo/coordinator", "coordinator")
    assert "no message was recorded" in vflens("ledger", tmp_path).out
    page = Page([tmp_path], tmp_path / "page.html", write=write_page)
    assert "No message was recorded." in page.text
    assert page.scripts == []


@pytest.mark.parametrize(
    ("file", "content", "refusal"),
    [
        ("transcript/index.jsonl", b'{"sender": 1}\n', (3, "index.jsonl cannot be read as a transcript")),
        ("transcript/index.jsonl", b"[" * 100_000 + b"\n", (3, "index.jsonl cannot be read as a transcript")),
        ("transcript/index.jsonl", b" " * (1 << 21), (3, "a line has more than 1048576 bytes")),
        ("transcript/left_out.json", b'{"embedding": 3}', (12, "left_out.json cannot be read as counts")),
        ("released/digests.bin", b"\xff" * 50, (3, "released cannot be read as a log of releases")),
    ],
)
def test_damaged_files_are_refused_in_one_sentence(
    tmp_path: Path, refused: Refused, file: str, content: bytes, refusal: tuple[int, str]
) -> None:
    folder = recorded(tmp_path / "demo/coordinator", EPOCHS)
    (folder / file).parent.mkdir(exist_ok=True)
    (folder / file).write_bytes(content)
    code, words = refusal
    assert words in refused(code, "ledger", tmp_path)


def test_a_half_written_line_is_left_out(tmp_path: Path) -> None:
    folder = recorded(tmp_path / "demo/coordinator", EPOCHS)
    index = folder / "transcript" / "index.jsonl"
    index.write_bytes(index.read_bytes()[:-7])
    assert [(c.count, c.rows) for c in read_party(folder).crossings()] == [(3, 4)]


def test_no_folder_and_no_run_are_refused(tmp_path: Path, refused: Refused) -> None:
    assert "is no folder: give the folder" in refused(3, "ledger", tmp_path / "absent")
    assert "holds no run" in refused(3, "ledger", tmp_path)


def test_bytes_have_a_unit() -> None:
    sizes = (0, 812, 999, 1000, 1_500_000, 2_340_000_000, 10**13)
    assert [in_bytes(n) for n in sizes] == [
        "0 B",
        "812 B",
        "999 B",
        "1.0 kB",
        "1.5 MB",
        "2.3 GB",
        "10,000.0 GB",
    ]
