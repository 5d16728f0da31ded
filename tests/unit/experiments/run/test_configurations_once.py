"""A run in one process reads each party's configuration once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from vflens.config import load_party
from vflens.experiments.run import afterwards, in_process, run
from vflens.experiments.run.vertical.experiment import Experiment


def test_each_configuration_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = list[str]()

    def reads(file: Path) -> Any:
        read.append(file.parent.name)
        return load_party(file)

    for module in (run, afterwards, in_process):
        monkeypatch.setattr(module, "load_party", reads)
    settings = {"name": "small", "data": {"name": "synthetic", "rows": 60}, "training": {"epochs": 1}}
    split = {"kind": "fraction", "fraction": 0.5}
    experiment = Experiment.model_validate({**settings, "split": split, "out": tmp_path})
    assert [*run.begun(experiment, in_process=True)]
    assert sorted(read) == ["active", "coordinator", "passive"]
