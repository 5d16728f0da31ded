"""A split network that cannot work is refused before training, and by ``check``, in one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import tomli_w
import torch
from laboratory import deal, experiment, federation
from splitcases import CONCATENATED, MODEL, PLACES, SETTINGS

from vflens.config import load_party
from vflens.errors import ConfigError, KnowledgeError
from vflens.experiments.run.check import check
from vflens.experiments.run.vertical.check import clip_notes
from vflens.models.families.split_network import SplitNetwork

#: Of the digits' eight lines the passive party holds two.
TWO_LINES = {
    "kind": "columns",
    "columns": {"passive": [f"pixel_{i}_{j}" for i in range(2) for j in range(8)]},
}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model": None},
            "defence 'passport' at 'active' has nothing to act on, softmax regression has no "
            "layers: leave it out, or train another model",
        ),
        (
            {"model": {"architecture": "cnn"}},
            r"^party '\w+': 4 columns are not the pixels of one rectangle, column '.+' is no pixel: "
            r"cut images by halves or tiles",
        ),
        (
            {"data": {"name": "digits"}, "split": TWO_LINES, "model": {"architecture": "cnn"}},
            r"model.combine = 'sum' of embeddings of widths \[64, 192\]: cut the columns alike, or "
            r"concatenate",
        ),
        (
            {"model": {"architecture": "mlp", "width": 5, "trainable_top": False}},
            "model.trainable_top = false makes the summed embeddings the logits: combine by sum, of an 'mlp' "
            "with width = 3",
        ),
        (
            {"defenses": [{"name": "passport", "at": "passive", "layer": "9"}]},
            r"passport layer '9' at 'passive' is no linear or convolution layer of its model without a "
            r"passport: name one of \['0', '3'\]",
        ),
        (
            {"defenses": [{"name": "transform_parameters", "at": "passive"}]},
            "defence 'transform_parameters' at 'passive' changes the weight matrix of softmax regression, a "
            "split network has none",
        ),
        (
            {"defenses": [{"name": "distorted_parameters", "at": "passive"}]},
            "defence 'distorted_parameters' at 'passive' changes the weight matrix of softmax regression",
        ),
        (
            {"defenses": [{"name": "marvell", "at": "active", "positive": 3}]},
            r"^marvell at 'active': positive = 3 is no class, choose one from 0 to 2$",
        ),
        (
            {"defenses": [{"name": "round_scores", "at": "coordinator"}]},
            "'round_scores' at coordinator 'coordinator' would never act",
        ),
    ],
)
def test_what_cannot_work_is_refused_before_training(tmp_path: Path, changes: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        federation(tmp_path, **{**SETTINGS, **changes}).run()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"model": None},
            "defence 'passport' at 'active' has nothing to act on, softmax regression has no",
        ),
        (
            {"defenses": [{"name": "passport", "at": "passive", "layer": "9"}]},
            "passport layer '9' at 'passive' is no linear",
        ),
        (
            {"model": {**MODEL, "top": [], "trainable_top": False, "width": 3}},
            "^passport at 'active' finds no layer of its model without a passport: leave it out$",
        ),
        (
            {
                "data": {"name": "digits"},
                "split": TWO_LINES,
                "model": {"architecture": "cnn", "cut": 1, "combine": "concatenate"},
            },
            r"model.cut = 1: the top model begins with a convolution, .* images of \[\(1, 4\), \(3, 4\)\]",
        ),
        (
            {"model": {"architecture": "cnn"}},
            "^party 'passive': 4 columns are not the pixels of one rectangle, column '.+' is no",
        ),
        ({"model": {**MODEL, "trainable_top": False}}, "combine by sum, of an 'mlp' with width = 3"),
        (
            {
                "data": {"name": "digits"},
                "split": {"kind": "image_halves"},
                "model": {"architecture": "lenet"},
            },
            "^party 'passive': .* needs images of at least 12 by 12 pixels, a party holds 8 by 4",
        ),
        (
            {"data": {"name": "digits"}, "split": TWO_LINES, "model": {"architecture": "cnn"}},
            r"model.combine = 'sum' of embeddings of widths \[64, 192\]: cut the columns alike, or "
            r"concatenate",
        ),
        (
            {"defenses": [{"name": "marvell", "at": "active", "positive": 3}]},
            r"^marvell at 'active': positive = 3 is no class, choose one from 0 to 2$",
        ),
        (
            {"defenses": [{"name": "passport", "at": "passive"} for _ in range(3)]},
            "^passport at 'passive' finds no layer of its model without a passport: leave it out$",
        ),
        (
            {"attacks": [{"name": "wmi", "passport": "joint", "layer": "9"}]},
            r"layer '9' is no linear or convolution layer of the target's model: name one of \['0', '3'\]",
        ),
    ],
    ids=range(11),
)
def test_check_refuses_it_too(tmp_path: Path, changes: Any, message: str) -> None:
    what = experiment(tmp_path, **{**SETTINGS, **changes}).model_dump(mode="json", exclude_none=True)
    file = tmp_path / "experiment.toml"
    file.write_text(tomli_w.dumps(what), encoding="utf-8")
    with pytest.raises((ConfigError, KnowledgeError), match=message):
        check(file)


def test_check_refuses_a_network_beyond_the_limits_before_it_builds_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SplitNetwork, "module", lambda *_: pytest.fail("four layers of 65536 take 51 GB"))
    changes = {"model": {**MODEL, "top": [65536] * 4}}
    what = experiment(tmp_path, **{**SETTINGS, **changes}).model_dump(mode="json", exclude_none=True)
    file = tmp_path / "experiment.toml"
    file.write_text(tomli_w.dumps(what), encoding="utf-8")
    with pytest.raises(ConfigError, match=r"^the widest layer: 65536 .*, limits.max_width at .* is 8192: "):
        check(file)


def test_a_gpu_that_is_absent_is_refused_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By `vflens check`, and by the party that would need it."""
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    what = experiment(tmp_path / "out", **SETTINGS, device="cuda")
    file = tmp_path / "experiment.toml"
    file.write_text(tomli_w.dumps(what.model_dump(mode="json", exclude_none=True)), encoding="utf-8")
    for refused in (lambda: check(file), lambda: federation(tmp_path / "out", **SETTINGS, device="cuda")):
        with pytest.raises(
            ConfigError, match="device = 'cuda': torch finds no GPU on this machine, set device"
        ):
            refused()
    assert not list(tmp_path.glob("out/*/transcript"))
    with pytest.raises(ValueError, match="device = 'cuda': softmax regression computes on"):
        experiment(tmp_path, device="cuda")


def test_check_takes_what_runs(tmp_path: Path) -> None:
    for name, settings in {**PLACES, "side by side": CONCATENATED}.items():
        file = tmp_path / f"{name}.toml"
        what = experiment(tmp_path, **settings).model_dump(mode="json", exclude_none=True)
        file.write_text(tomli_w.dumps(what), encoding="utf-8")
        assert check(file)["experiment"] == "tiny"


@pytest.mark.parametrize(("clip", "noted"), [(20.0, True), (2.1, True), (2.0, False)])
def test_a_clip_that_no_gradient_reaches_is_noted_before_the_run(
    tmp_path: Path, clip: float, noted: bool
) -> None:
    """A row of c − y is at most 2 long; embeddings have no such length."""
    defenses = [{"name": "dp_gaussian", "at": at, "clip": clip} for at in ("active", "passive")]
    what = experiment(tmp_path, defenses=defenses)
    configs = deal(what, tmp_path)
    found = {party: clip_notes("run", load_party(file)) for party, file in configs.items()}
    assert found["passive"] == found["coordinator"] == {}
    notes = [*found["active"].values()]
    assert [note.startswith(f"clip = {clip:g} clips no gradient of logits,") for note in notes] == [
        True
    ] * noted
