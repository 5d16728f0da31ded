"""What the audit says of training, beside the rows that trained XGBoost's models: a part of ``make zoo``."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

ZOO = Path(__file__).parents[3] / "zoo"
sys.path.append(str(ZOO))

import judge  # noqa: E402

MODELS = judge.models(ZOO / "models")


@pytest.mark.parametrize("at", range(len(MODELS)), ids=[model.file.stem for model in MODELS])
def test_no_number_is_false_under_its_condition(at: int) -> None:
    model = MODELS[at]
    verdict = judge.judged(model)
    assert judge.under_condition(model, verdict.false) == []


def test_the_zoo_has_every_option_and_most_files_tell() -> None:
    facts = [bool(judge.told(model)[1].training_rows) for model in MODELS if model.about["equal"]]
    assert len({model.about["option"] for model in MODELS}) > 50
    assert sum(facts) > len(facts) / 2


@pytest.mark.parametrize("part", ["rows", "members"])
def test_a_false_number_is_found(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    (model,) = (model for model in MODELS if model.file.stem == "plain-0")
    tree_model, found = judge.told(model)
    assert judge.judged(model).false == []
    found.training_rows[0][part] += 1
    monkeypatch.setattr(judge, "told", lambda _: (tree_model, found))
    assert judge.judged(model).false


def test_a_sentence_without_its_condition_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    (model,) = (model for model in MODELS if model.file.stem == "plain-0")
    monkeypatch.setattr(
        judge, "training", lambda found: ["the file tells how many end in a leaf of the first tree"]
    )
    assert judge.judged(model).false
