"""The recorder that is copied into other frameworks, and what FATE and SecretFlow gave with it."""

from __future__ import annotations

import importlib.util
import json
import re
import runpy
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from commandline import Refused, Run, refused, vflens

from vflens.storage.journal import Reader
from vflens.storage.transcript import Transcript
from vflens.types import Array, Exchange, Phase, Point, Released, sealed

_FIXTURES = (refused, vflens)  # used by name
ROOT = Path(__file__).parents[2]
RECORDED, EXAMPLES = ROOT / "examples/recorded", ROOT / "examples"
ALICE = RECORDED / "secretflow/alice"
PARTIES: list[dict[str, Any]] = [
    {"name": "alice", "role": "passive", "columns": ["age", "income"]},
    {"name": "bob", "role": "active", "columns": ["balance"], "classes": ["no", "yes"]},
]
GRADIENT = np.random.default_rng(2).normal(size=(6, 3))


@pytest.fixture(scope="module")
def recorder() -> ModuleType:
    """The file that is copied."""
    spec = importlib.util.spec_from_file_location("recorder", EXAMPLES / "recorder/vflens_recorder.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_recorder_writes_what_a_transcript_of_ours_writes(tmp_path: Path, recorder: ModuleType) -> None:
    """Payload and meaning are the same; each has its own spaces in a line, so the links differ."""
    weights: dict[str, Array] = {"weight": np.arange(4.0).reshape(2, 2), "bias": np.array([1, 2], np.float32)}
    written = recorder.Recorder(tmp_path / "alice", "mine", "alice", PARTIES)
    ours = Transcript(tmp_path / "ours")
    for step in range(2):
        written.received("bob", "gradient", GRADIENT + step, range(6), epoch=step)
        at = Exchange("mine", Phase.TRAIN, step, step)
        tensors = {"gradient": sealed(GRADIENT + step)}
        ours.record(
            Released("bob", at, Point.GRADIENT, sealed(np.arange(6, dtype=np.int32)), tensors=tensors)
        )
    written.received("bob", "parameters", weights, (), phase="disclose")
    at = Exchange("mine", Phase.DISCLOSE, 0, 0)
    sent = {name: sealed(array) for name, array in weights.items()}
    ours.record(Released("bob", at, Point.PARAMETERS, np.zeros(0, np.int32), tensors=sent))
    ours.close()
    theirs = tmp_path / "alice/transcript"
    assert (theirs / "payload.bin").read_bytes() == (tmp_path / "ours/payload.bin").read_bytes()
    lines = [
        [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]
        for folder in (theirs, tmp_path / "ours")
    ]
    assert lines[0] == lines[1]
    assert len((theirs / "chain.bin").read_bytes()) == 3 * 32
    assert (tmp_path / "alice").stat().st_mode & 0o777 == 0o700


def test_the_recorder_takes_tensors_and_other_numbers(tmp_path: Path, recorder: ModuleType) -> None:
    torch = pytest.importorskip("torch")
    written = recorder.Recorder(tmp_path / "alice", "mine", "alice", PARTIES)
    for values in (torch.ones(2, 3, requires_grad=True), np.ones((2, 3), np.float16), [[1, 1, 1]] * 2):
        written.received("bob", "gradient", values, [4, 7])
    found = list(Reader(tmp_path / "alice/transcript"))
    assert [r.tensor("gradient").dtype.str for r in found] == ["<f4", "<f8", "<f8"]
    assert [r.exchange.step for r in found] == [0, 1, 2]
    for released in found:
        assert released.rows.tolist() == [4, 7]
        np.testing.assert_array_equal(released.tensor("gradient"), np.ones((2, 3)))


def test_the_recorder_refuses_what_no_transcript_has(tmp_path: Path, recorder: ModuleType) -> None:
    written = recorder.Recorder(tmp_path / "alice", "mine", "alice", PARTIES)
    with pytest.raises(ValueError, match=r"gradient of bob: 5 rows"):
        written.received("bob", "gradient", GRADIENT, range(5))
    for point, phase in (("loss", "train"), ("gradient", "test")):
        with pytest.raises(ValueError, match="name one of"):
            written.received("bob", point, GRADIENT, range(6), phase=phase)
    with pytest.raises(FileExistsError):
        recorder.Recorder(tmp_path / "alice", "mine", "alice", PARTIES)


def test_secretflow_gradients_give_the_labels(vflens: Run, tmp_path: Path) -> None:
    """Against a route of its own: the sign along the largest direction of the summed gradients."""
    (line,) = json.loads(vflens("ledger", ALICE, "--json").out)["runs"][0]["lines"]
    assert (line["sender"], line["receiver"], line["phase"], line["point"]) == (
        *("bob", "alice"),
        *("train", "gradient"),
    )
    assert (line["count"], line["rows"], line["defenses"]) == (36, 180, None)
    out, truth = tmp_path / "estimate.npz", RECORDED / "secretflow/truth.npz"
    text = vflens("attack", ALICE, "--attack", "gradient_clustering", "--out", out)
    assert "180 train rows of 'bob'" in text.out
    assert "--truth" in text.out
    facts = json.loads(vflens("score", out, "--truth", truth, "--json").out)
    y = np.load(truth)["y"]
    assert facts["label_accuracy"] == 1.0
    assert facts["blind_label_accuracy"] == max(y.mean(), 1 - y.mean())
    sums = np.zeros((180, 4))
    for released in Reader(ALICE / "transcript"):
        sums[released.rows] += released.tensor("gradient")
    signs = sums @ np.linalg.svd(sums)[2][0] > 0
    assert max((signs == y).mean(), (signs != y).mean()) == 1.0


def test_a_changed_record_is_found(vflens: Run, tmp_path: Path) -> None:
    copied = Path(shutil.copytree(ALICE, tmp_path / "alice"))
    assert "36 linked records" in vflens("verify-log", copied).out
    payload = bytearray((copied / "transcript/payload.bin").read_bytes())
    payload[-1] ^= 1
    (copied / "transcript/payload.bin").write_bytes(payload)
    ended = vflens("verify-log", copied)
    assert ended.code == 12
    assert "index.jsonl, line 36" in ended.out


def test_fate_sends_the_partial_scores_in_the_clear(vflens: Run, tmp_path: Path) -> None:
    saved, seen, out = RECORDED / "fate", tmp_path / "seen.npz", tmp_path / "estimate.npz"
    module = runpy.run_path(str(EXAMPLES / "fate/seen.py"))
    module["main"](saved, seen)
    (message,) = Reader(saved / "guest/transcript")
    x = np.load(saved / "truth.npz")["x"]
    weight, bias = module["weights"](saved / "host_model.json")
    assert bias == 0
    np.testing.assert_allclose(message.tensor("embedding"), x @ weight.T, atol=1e-6)
    assert vflens("attack", "--arrays", seen, "--attack", "rcc2", "--out", out).code == 0
    facts = json.loads(vflens("score", out, "--truth", saved / "truth.npz", "--json").out)
    assert facts["mse"] < 0.7 * facts["blind_mse"]
    found = np.load(out)["values"]
    np.testing.assert_allclose(found @ weight[0], x @ weight[0], atol=1e-5)
    (line,) = json.loads(vflens("ledger", saved / "guest", "--json").out)["runs"][0]["lines"]
    assert (line["sender"], line["phase"], line["rows"]) == ("host", "predict", 180)
    assert "all that could be checked fits" in vflens("verify-log", saved / "guest").out


def test_the_line_that_converts_a_part_of_secretflow_converts_it(
    tmp_path: Path, refused: Refused, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch")
    part = shutil.copy(RECORDED / "secretflow/alice.pt", tmp_path)
    bank = EXAMPLES / "bank_passive.csv"
    sentence = refused(3, "audit", bank, "--columns", "age,income", "--weights", part)
    (line,) = re.findall(r'python -c "(.+)"', sentence)
    monkeypatch.chdir(tmp_path)
    subprocess.run([sys.executable, "-c", line], check=True, timeout=120)
    saved = torch.load(part, weights_only=True)["model_state_dict"]
    with np.load("weights.npz") as found:
        assert found.keys() == saved.keys() == {"layers.0.weight", "layers.0.bias"}
        for name, array in found.items():
            np.testing.assert_array_equal(array, saved[name].numpy())


Change = Callable[[Any], None]


def described(change: Change) -> Callable[[Path], None]:
    """``change`` of the parties that a folder describes, and of its other facts."""

    def changed(folder: Path) -> None:
        file = folder / "federation.json"
        facts = json.loads(file.read_text())
        change(facts)
        file.write_text(json.dumps(facts))

    return changed


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda f: f["parties"][1].update(role="passive"), "describes no party with labels"),
        (lambda f: f["parties"][0].update(role="active"), "'alice' is passive, and active in parties"),
        (lambda f: f["parties"][1].update(n_classes=1), "describes no party with labels"),
        (lambda f: f.update(party="carol"), "does not describe 'carol' and every other party once"),
        (lambda f: f["parties"].append(f["parties"][0]), "does not describe 'alice' and every other"),
        (lambda f: f["parties"].append({"name": "dave", "role": "chief"}), "federation.json cannot be read"),
        (lambda f: f.update(parties=3), "federation.json cannot be read"),
    ],
)
def test_a_wrong_description_is_refused(tmp_path: Path, refused: Refused, change: Change, words: str) -> None:
    copied = Path(shutil.copytree(ALICE, tmp_path / "alice"))
    described(change)(copied)
    assert words in refused(3, "attack", copied, "--attack", "norm_scoring", "--out", tmp_path / "e.npz")


@pytest.mark.parametrize(
    ("arrived", "words"),
    [
        ((GRADIENT, range(-1, 5)), "has other rows than 0 to 9999999: number them from 0"),
        ((GRADIENT, [0, 1, 2, 3, 4, 2**31 - 1]), "has other rows than 0 to 9999999"),
        ((GRADIENT, ()), "has other rows than"),
        ((GRADIENT[:, :2], range(6)), "has shape (6, 2) for 6 rows"),
        ((GRADIENT[:, 0], range(6)), "has shape (6,) for 6 rows"),
        ((GRADIENT * np.nan, range(6)), "record finite numbers"),
        ((), "holds no gradient of training"),
    ],
)
def test_wrong_gradients_are_refused(
    tmp_path: Path, refused: Refused, recorder: ModuleType, arrived: tuple[Any, ...], words: str
) -> None:
    written = recorder.Recorder(tmp_path / "alice", "mine", "alice", PARTIES)
    written.received("bob", "scores", GRADIENT, range(6), phase="predict")
    if arrived:
        written.received("bob", "gradient", GRADIENT, range(6))
        written.received("bob", "gradient", *arrived)
    sentence = refused(3, "attack", tmp_path / "alice", "--attack", "norm_scoring")
    assert words in sentence


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--attack", "half_star"], "attacks on labels that read gradients alone"),
        (["--attack", "wmi"], "attacks on labels that read gradients alone"),
        (["--attack", "norm_scoring", "--target", "carol"], "the labels are those of 'bob'"),
        (["--attack", "norm_scoring", "--rows", "predict"], "estimates train rows only"),
        (["--attack", "norm_scoring", "--verify", "3"], "--verify and --with belong to a run of VFLens"),
        (["--attack", "norm_scoring", "--set", "q=1"], "q"),
    ],
)
def test_what_a_recording_cannot_give_is_refused(refused: Refused, flags: list[str], words: str) -> None:
    assert words in refused(2, "attack", ALICE, *flags)


def test_the_holder_of_the_labels_does_not_guess_them(
    tmp_path: Path, refused: Refused, recorder: ModuleType
) -> None:
    written = recorder.Recorder(tmp_path / "bob", "mine", "bob", PARTIES)
    written.received("alice", "gradient", GRADIENT, range(6))
    sentence = refused(2, "attack", tmp_path / "bob", "--attack", "norm_scoring")
    assert "labels are no secret from 'bob'" in sentence


@pytest.mark.parametrize(
    ("truth", "words"),
    [
        ({"x": np.zeros(180)}, "lacks 'y'"),
        ({"y": np.zeros(179)}, "has 179 labels, the estimate row 179"),
        ({"y": np.full(180, 2)}, "has other values than 0 to 1"),
        ({"y": np.full(180, 0.5)}, "has other values than 0 to 1"),
        ({"y": np.zeros((180, 1))}, "give an array of 1 axes"),
    ],
)
def test_a_wrong_truth_is_refused(
    vflens: Run, refused: Refused, tmp_path: Path, truth: dict[str, Any], words: str
) -> None:
    out = tmp_path / "estimate.npz"
    assert vflens("attack", ALICE, "--attack", "norm_scoring", "--out", out).code == 0
    np.savez(tmp_path / "truth.npz", **truth)
    assert words in refused(3, "score", out, "--truth", tmp_path / "truth.npz")


@pytest.mark.parametrize(
    "changes",
    [{"rows": np.arange(179)}, {"rows": np.arange(180.0)}, {"rows": np.arange(180) - 1}, {"values": None}],
)
def test_a_wrong_estimate_is_refused(
    vflens: Run, refused: Refused, tmp_path: Path, changes: dict[str, Any]
) -> None:
    out = tmp_path / "estimate.npz"
    assert vflens("attack", ALICE, "--attack", "norm_scoring", "--out", out).code == 0
    with np.load(out) as saved:
        arrays = {name: array for name, array in {**saved, **changes}.items() if array is not None}
    np.savez(out, **arrays)
    refused(3, "score", out, "--truth", RECORDED / "secretflow/truth.npz")
