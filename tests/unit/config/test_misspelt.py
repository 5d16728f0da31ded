"""What a wrong name might have meant: settings, plug-ins, files of another kind."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from processes import experiment_file

from vflens.errors import ConfigError, PluginError
from vflens.experiments.run.loading import load_any, load_experiment
from vflens.experiments.run.run import run
from vflens.registry import ATTACKS, DEFENSES


def _written(folder: Path, settings: dict[str, Any]) -> Path:
    (folder / "own.toml").write_text(tomli_w.dumps(settings))
    return folder / "own.toml"


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"attakcs": []}, r"attakcs: there is no such setting, did you mean attacks\?$"),
        ({"training": {"optimizer": "adm"}}, r"give 'adam' or 'sgd' \(got 'adm'\), did you mean adam\?$"),
        ({"training": {"epochs": date(2024, 5, 1)}}, r"epochs: give a whole number \(got 2024-05-01\)$"),
        ({"training": {"epoch": 3}}, r"training\.epoch: there is no such setting, did you mean epochs\?$"),
        (
            {"split": {"kind": "fractoin"}},
            r"split: its 'kind' is 'fractoin': give 'columns', .*'image_channels', did you mean fraction\?$",
        ),
        ({"split": {"kind": "fraction"}}, r"toml: split\.fraction: it is missing$"),
        (
            {"split": {"kind": "fraction", "fraction": 3}},
            r"toml: split\.fraction: give less than 1 \(got 3\)$",
        ),
        ({"split": {"fraction": 0.5}}, "split: its 'kind' is missing$"),
        ({"scenarios": [{"name": "a", "x": 1}]}, r"own\.toml: scenarios\.0\.x: there is no such setting$"),
        ({"data": {"name": "digits"}, "hue": 1}, "hue: there is no such setting$"),
    ],
)
def test_a_misspelt_setting_is_compared_with_those_that_are(
    tmp_path: Path, changes: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ConfigError, match=sentence):
        load_experiment(_written(tmp_path, {"name": "x", **changes}))


def test_a_party_s_own_file_is_no_experiment(tmp_path: Path) -> None:
    file = _written(tmp_path, {"role": "passive"})
    with pytest.raises(
        ConfigError, match="own file, no experiment: start the party with vflens serve passive"
    ):
        load_any(file)


def test_a_run_with_a_misspelt_attack_makes_no_folder(tmp_path: Path) -> None:
    experiment = load_any(experiment_file(tmp_path, attacks=[{"name": "half"}, {"name": "lmse:mine"}]))
    with pytest.raises(PluginError, match=r"^unknown attacks plug-in 'lmse', did you mean lmmse or ls\?$"):
        run(experiment, in_process=True)
    assert [f.suffix for f in tmp_path.iterdir()] == [".toml"]


def test_a_misspelt_plug_in_is_compared_with_those_that_are() -> None:
    with pytest.raises(PluginError, match=r"^unknown attacks plug-in 'lmse', did you mean lmmse or ls\?$"):
        ATTACKS.get("lmse")
    with pytest.raises(PluginError, match=r"'gaussian', did you mean dp_gaussian or gaussian_scores\?$"):
        DEFENSES.get("gaussian")
    with pytest.raises(
        PluginError, match=r"^unknown attacks plug-in 'nothing like it': known are agnostic, "
    ):
        ATTACKS.get("nothing like it")
