"""A recorded Flower app: its messages become a server's folder, and an attack finds the digits in it."""

from __future__ import annotations

import importlib.util
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commandline import Run

from vflens.errors import ConfigError, DataError, StorageError
from vflens.experiments.imports.averaged import import_recording
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.storage.journal import Reader
from vflens.types import Point

ROOT = Path(__file__).parents[2]
RECORDED, EXAMPLE = ROOT / "examples/recorded/flower", ROOT / "examples/flower"
APP = EXAMPLE / "app.toml"


def digits() -> list[np.ndarray[Any, np.dtype[np.float64]]]:
    """The first row of each client's file, in [0, 1]."""
    files = sorted(EXAMPLE.glob("client-*.csv"))
    return [np.loadtxt(file, delimiter=",", skiprows=1)[0, 1:-1] / 16 for file in files]


def test_an_attack_finds_each_clients_digit(vflens: Run, tmp_path: Path) -> None:
    server = tmp_path / "runs" / "server"
    facts = json.loads(vflens("import", RECORDED, "--config", APP, "--out", server, "--json").out)
    assert facts["rounds"] == 2
    found = []
    for client in facts["clients"]:
        out = tmp_path / f"{client}.npz"
        attack = ("--attack", "softmax_inversion", "--target", client, "--out", out)
        assert vflens("attack", server, *attack).code == 0
        found.append(np.load(out)["values"][0])
    assert len(found) == 3
    for digit in digits():
        assert min(np.abs(guess - digit).max() for guess in found) < 1e-12
    assert vflens("report", tmp_path / "runs", "--out", tmp_path / "report.html").code == 0
    assert "recorded/digits" in (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "all that could be checked fits" in vflens("verify-log", server).out


def test_updates_are_what_clients_returned_less_what_they_were_sent(tmp_path: Path) -> None:
    import_recording(RECORDED, APP, tmp_path / "server")
    federation = HorizontalAgreement.load(tmp_path / "server")
    assert [(p.name, p.train_rows) for p in federation.parties] == [(f"client-{i}", 8) for i in (1, 2, 3)]
    lines = [json.loads(line) for line in (RECORDED / "messages.jsonl").read_text().splitlines()]
    for released in Reader(tmp_path / "server" / "transcript").select(Point.UPDATE):
        node = sorted({line["node"] for line in lines})[int(released.sender[-1]) - 1]
        here = [x for x in lines if (x["round"], x["node"]) == (released.exchange.round + 1, node)]
        sent, returned = (
            np.load(RECORDED / next(x["file"] for x in here if x["direction"] == way))
            for way in ("sent", "received")
        )
        for place, name in enumerate(("weight", "bias")):
            due = returned[f"arr_{place}"] - sent[f"arr_{place}"]
            np.testing.assert_array_equal(released.tensor(name), due)


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A recording that a test may change."""
    copied = tmp_path / "recorded"
    shutil.copytree(RECORDED, copied)
    return copied


def _lines(change: Callable[[list[dict[str, Any]]], None]) -> Callable[[Path], None]:
    def changed(recording: Path) -> None:
        file = recording / "messages.jsonl"
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        change(lines)
        file.write_text("".join(f"{json.dumps(line)}\n" for line in lines))

    return changed


def _arrays(name: str, *values: np.ndarray[Any, Any]) -> Callable[[Path], None]:
    return lambda recording: np.savez(recording / name, *values)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: (r / "messages.jsonl").unlink(), "holds no recording"),
        (lambda r: (r / "messages.jsonl").write_text("{\n"), "line 1, cannot be read"),
        (lambda r: (r / "2.npz").write_bytes(b"no archive"), "line 4, cannot be read"),
        (_arrays("2.npz", np.array([{}], object)), "line 4, cannot be read"),
        (_arrays("2.npz", np.zeros((10, 63)), np.zeros(10)), r"arrays of shapes .*\(10, 63\)"),
        (_arrays("5.npz", np.ones((10, 64)), np.ones(10)), "does not begin with the clients' mean"),
        (_lines(lambda lines: lines[3]["metrics"].clear() or lines[9]["metrics"].clear()), "num-examples"),
        (_lines(lambda lines: lines.__delitem__(slice(0, 3))), "round 1 was not recorded whole"),
        (_lines(lambda lines: lines[1].update(file="2.npz")), "got different parameters"),
        (_lines(lambda lines: lines[0].update(file="../../secret.npz")), "line 1, cannot be read"),
        (_lines(lambda lines: lines.clear()), "holds no message"),
    ],
)
def test_a_recording_that_cannot_be_read_is_refused(
    tmp_path: Path, recorded: Path, change: Callable[[Path], Any], words: str
) -> None:
    change(recorded)
    with pytest.raises((DataError, ConfigError), match=words):
        import_recording(recorded, APP, tmp_path / "server")
    assert not (tmp_path / "server").exists()


def test_a_folder_is_not_written_over(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="choose a new folder"):
        import_recording(RECORDED, APP, tmp_path)


def _with_rows(*rows: float | str, name: str = "num-examples", round_: int = 0) -> Callable[[Path], None]:
    """The clients' numbers of rows in all rounds, or in one."""

    def change(lines: list[dict[str, Any]]) -> None:
        nodes = sorted({line["node"] for line in lines})
        for line in lines:
            if line["direction"] == "received" and round_ in (0, line["round"]):
                line["metrics"] = {name: rows[nodes.index(line["node"])]}

    return _lines(change)


def test_the_older_name_of_a_number_of_rows_is_read(tmp_path: Path, recorded: Path) -> None:
    _with_rows(8, 8, 8, name="num_examples")(recorded)
    import_recording(recorded, APP, tmp_path / "server")
    federation = HorizontalAgreement.load(tmp_path / "server")
    assert [p.train_rows for p in federation.parties] == [8, 8, 8]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (_with_rows(0, 0, 0, round_=2), "round 2 was trained on 0 rows"),
        (_with_rows(0, 8, 8), "round 2 does not begin with the clients' mean"),
        (_with_rows(2**31, 8, 8), "returned num-examples = 2147483648"),
        (_with_rows("8", 8, 8), "returned num-examples = 8: let it send"),
        (_with_rows(60, 8, 8), "round 2 does not begin with the clients' mean"),
        (_with_rows(0.5, 0.25, 0.25), r"returned num-examples = 0\.(5|25): let it send its number of rows"),
        (_with_rows(8.5, 8, 8), r"returned num-examples = 8\.5"),
        (_with_rows(8, -8, 8), "returned num-examples = -8"),
        (_with_rows(8, float("nan"), 8), "returned num-examples = nan"),
    ],
)
def test_rows_that_cannot_be_weights_are_named(
    tmp_path: Path, recorded: Path, change: Callable[[Path], None], words: str
) -> None:
    change(recorded)
    with pytest.raises(DataError, match=words):
        import_recording(recorded, APP, tmp_path / "server")


def test_masked_updates_are_named(tmp_path: Path, recorded: Path) -> None:
    """Under SecAgg+ a reply of each of the four stages holds no arrays, but bytes of its own protocol."""
    np.savez(recorded / "empty.npz")

    def masked(lines: list[dict[str, Any]]) -> None:
        for line in (line for line in lines if line["direction"] == "received"):
            line.update(file="empty.npz", names=[], metrics={})

    _lines(masked)(recorded)
    with pytest.raises(DataError, match="only masked updates were recorded"):
        import_recording(recorded, APP, tmp_path / "server")


@pytest.fixture
def recorder() -> ModuleType:
    """The file that is copied beside a Flower app."""
    spec = importlib.util.spec_from_file_location(
        "vflens_recorder", ROOT / "examples/recorder/vflens_recorder.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _message(node: int, arrays: dict[str, Any], *, kind: str = "train", error: str = "") -> SimpleNamespace:
    """A message as Flower's, as far as the recorder reads it."""
    array_record = {name: SimpleNamespace(numpy=lambda value=value: value) for name, value in arrays.items()}
    content = SimpleNamespace(
        array_records={"arrays": array_record}, metric_records={"metrics": {"num-examples": 5}}
    )
    metadata = SimpleNamespace(message_type=kind, dst_node_id=node, src_node_id=node)
    failed = SimpleNamespace(reason=error)
    return SimpleNamespace(metadata=metadata, content=content, error=failed, has_error=lambda: bool(error))


def test_the_recorder_writes_all_messages(tmp_path: Path, recorder: ModuleType) -> None:
    returned = [_message(1, {"w": np.ones(2)}), _message(2, {}, error="it stopped")]
    grid = SimpleNamespace(send_and_receive=lambda messages, **options: returned, name="mine")
    recording = recorder.FlowerGrid(grid, tmp_path / "recorded")
    sent = {"w": np.zeros(2)}
    assert recording.send_and_receive([_message(1, sent), _message(2, sent)], timeout=3) == returned
    recording.send_and_receive([_message(1, {"w": np.zeros(1)}, kind="evaluate")])
    assert recording.name == "mine"
    lines = [json.loads(x) for x in (tmp_path / "recorded/messages.jsonl").read_text().splitlines()]
    assert [(x["round"], x["node"], x["direction"], x["type"]) for x in lines] == [
        (1, "1", "sent", "train"),
        (1, "2", "sent", "train"),
        (1, "1", "received", "train"),
        (1, "2", "received", "train"),
        (1, "1", "sent", "evaluate"),
        (1, "1", "received", "train"),
        (1, "2", "received", "train"),
    ]
    assert lines[3]["error"] == "it stopped"
    np.testing.assert_array_equal(np.load(tmp_path / "recorded" / lines[2]["file"])["arr_0"], np.ones(2))
    with pytest.raises(FileExistsError):
        recorder.FlowerGrid(grid, tmp_path / "recorded")
