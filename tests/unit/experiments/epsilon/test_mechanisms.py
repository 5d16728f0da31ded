"""What `vflens epsilon` measures: defences, Python functions and files; its output, codes and refusals."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import Refused, Run

from vflens.errors import ConfigError, DataError, PluginError, StorageError
from vflens.experiments.epsilon.measure import Claimed, measure
from vflens.experiments.epsilon.sources import CanaryPlan, of_defense, of_file, of_function
from vflens.experiments.outcome.decide import State
from vflens.types import Array

ROOT = Path(__file__).parents[4]

MECHANISMS = """
import numpy as np

calls = []

def laplace(rows, rng):
    \"\"\"ε = 2.\"\"\"
    calls.append(rows.copy())
    return np.clip(rows, -1, 1) + rng.laplace(0, 1, rows.shape)

def unclipped(rows, rng):
    return rows + rng.laplace(0, 1, rows.shape)

def broken(rows, rng):
    raise KeyError("nothing")

NUMBER = 3
"""


@pytest.fixture
def mechanisms(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The name of a module in the working folder."""
    import sys

    (tmp_path / "mechanisms_of_a_test.py").write_text(MECHANISMS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    yield "mechanisms_of_a_test"
    sys.modules.pop("mechanisms_of_a_test", None)


def test_canaries_are_opposite_rows_or_there_or_not() -> None:
    drawn, gone = CanaryPlan(300, 3, 5.0).drawn(), CanaryPlan(300, 3, 5.0, left_out=True).drawn()
    assert (abs(drawn.first).sum(axis=1) == 5).all()
    assert (drawn.second == -drawn.first).all()
    assert not gone.second.any()
    assert 120 < drawn.chosen.sum() < 180  # a fair coin
    assert (drawn.rows[drawn.chosen] == drawn.first[drawn.chosen]).all()
    assert (drawn.rows[~drawn.chosen] == drawn.second[~drawn.chosen]).all()
    assert not np.array_equal(drawn.chosen, CanaryPlan(300, 3, seed=1).drawn().chosen)
    labels = CanaryPlan(300, 4).drawn(labels=True)
    assert (labels.first.sum(axis=1) == 1).all()
    assert (labels.first.argmax(axis=1) != labels.second.argmax(axis=1)).all()


def test_a_clients_rounds_have_noise_of_their_own_and_their_claim_is_that_of_all() -> None:
    canaries, released, claimed = of_defense("dp_laplace", {"level": 4.0}, 3, 1e-5, CanaryPlan(100, 4))
    assert released.shape == (100, 3, 4)
    assert claimed == Claimed(1.5, 0.0)
    noise = released - np.clip(canaries.rows, -1, 1)[:, None]
    assert (np.diff(noise, axis=1) != 0).mean() > 0.99  # on a grid two can be alike
    assert (np.diff(noise, axis=0) != 0).mean() > 0.99
    once = of_defense("dp_gaussian", {"level": 4.0}, None, 1e-6, CanaryPlan(100, 4))[2]
    assert (once.delta, once.gaussian) == (1e-6, True)


def test_a_function_gets_all_rows_once_and_is_measured(mechanisms: str) -> None:
    import sys

    right, released = of_function(f"{mechanisms}:laplace", CanaryPlan(1000, 4))
    (rows,) = sys.modules[mechanisms].calls
    assert (rows == right.rows).all()
    claimed = Claimed(2.0, 0.0)
    assert 1.3 < measure(right, released, claimed).least <= 2
    assert measure(*of_function(f"{mechanisms}:unclipped", CanaryPlan(1000, 4)), claimed).least > 4


@pytest.mark.parametrize(
    ("name", "error", "words"),
    [
        (":broken", PluginError, "broken failed: KeyError: 'nothing'"),
        (":NUMBER", ConfigError, "has no function 'NUMBER': give module:function"),
        (
            ".py:laplace",
            ConfigError,
            "names a file: give its module, mechanisms_of_a_test:laplace, in the folder of",
        ),
        ("_absent:laplace", ConfigError, "does not import: ModuleNotFoundError"),
    ],
)
def test_a_function_that_is_none_or_fails_is_refused(
    mechanisms: str, name: str, error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words):
        of_function(f"{mechanisms}{name}", CanaryPlan(100, 4))


def _saved(file: Path, **changed: Any) -> Path:
    canaries = CanaryPlan(100, 4, 1.0).drawn()
    arrays: dict[str, Array] = {**canaries._asdict(), "released": canaries.rows}
    np.savez(file, **{k: v for k, v in {**arrays, **changed}.items() if v is not None})
    return file


def test_a_file_says_what_it_lacks(tmp_path: Path) -> None:
    canaries, released = of_file(_saved(tmp_path / "whole.npz"))
    assert (canaries.rows == released).all()
    with pytest.raises(DataError, match="give numbers first and second"):
        of_file(_saved(tmp_path / "short.npz", released=None))
    with pytest.raises(DataError, match=r"chosen \(n,\)"):
        of_file(_saved(tmp_path / "chosen.npz", chosen=np.ones(3, bool)))
    with pytest.raises(DataError, match="true or false as chosen"):
        of_file(_saved(tmp_path / "numbers.npz", chosen=np.ones(100)))
    with pytest.raises(StorageError, match="give an npz with first, second, chosen and released"):
        of_file(tmp_path / "absent.npz")


def test_what_a_flower_mod_released_is_measured_again(vflens: Run) -> None:
    ended = vflens("epsilon", ROOT / "examples/epsilon/flower.npz", "--claimed", "2", "--gaussian")
    assert ended.code == 15
    assert ended.out == "at least ε = 2.95 with 95 % confidence; claimed 2: the claim is false\n"
    assert ended.err.startswith("error: the claim is false: add noise, release less, or claim more")


def test_what_an_nvflare_filter_released_is_measured_again(vflens: Run) -> None:
    ended = vflens("epsilon", ROOT / "examples/epsilon/nvflare.npz", "--claimed", "1", "--delta", "0")
    assert ended.code == 0
    assert ended.out == "at least ε = 0 with 95 % confidence; claimed 1: no breach of the claim is found\n"


def test_the_command_ends_with_the_codes_of_a_threshold(vflens: Run) -> None:
    right = vflens("epsilon", "dp_gaussian", "--set", "level=2", "--columns", 4, "--json")
    found = json.loads(right.out)
    assert (right.code, found["state"], found["claimed"]) == (0, "not found", pytest.approx(4.38, abs=0.01))
    assert 0.7 * found["claimed"] < found["least"] <= found["claimed"]
    assert vflens("epsilon", "dp_laplace").code == 16  # ε = 20 is beyond 2,000 canaries
    unclaimed = vflens("epsilon", "dp_gaussian")
    assert (unclaimed.code, unclaimed.out.rstrip().endswith("nothing to test")) == (0, True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["label_dp", "--rounds", "3"], "'label_dp' has none of the hooks on_update: name another defence"),
        (["privee"], "'privee' has none of the hooks"),
        (["dp_laplace", "--claimed", "2"], "a defence states its own claim"),
        (["a:b", "--set", "level=1"], "--set and --rounds belong to a defence"),
        (["a:b", "--gaussian", "--delta", "0"], "above 0 for Gaussian noise"),
        (["dp_laplace", "--canaries", "99"], "--canaries 99, --columns 8, --length 1: give at least 100"),
        (["dp_laplace", "--columns", "1"], "at least 2 columns"),
        (["dp_laplace", "--length", "0"], "--length 0: give at least"),
    ],
)
def test_what_cannot_be_measured_is_refused(arguments: list[str], words: str, refused: Refused) -> None:
    assert words in refused(2, "epsilon", *arguments)


def test_a_sum_of_all_in_few_columns_is_no_measurement(tmp_path: Path) -> None:
    """An exact sum of canaries that share columns would pass any claim."""
    rows = np.random.default_rng(0).random((100, 8))
    chosen = np.arange(100) % 2 == 0
    released = np.where(chosen[:, None], rows, -rows).sum(axis=0)
    np.savez(tmp_path / "sum.npz", first=rows, second=-rows, chosen=chosen, released=released)
    canaries, found = of_file(tmp_path / "sum.npz")
    with pytest.raises(DataError, match="canaries hide each other: give at least 100 columns"):
        canaries.scores(found)


def test_canaries_that_are_equal_and_complex_releases_are_refused(tmp_path: Path) -> None:
    rows, chosen = np.random.default_rng(0).random((200, 8)), np.arange(200) % 2 == 0
    np.savez(tmp_path / "equal.npz", first=rows, second=rows, chosen=chosen, released=rows)
    canaries, found = of_file(tmp_path / "equal.npz")
    with pytest.raises(DataError, match="first and second are equal in 200 canaries: give two that differ"):
        canaries.scores(found)
    np.savez(tmp_path / "complex.npz", first=rows, second=-rows, chosen=chosen, released=rows + 1j)
    with pytest.raises(DataError, match="give numbers first and second"):
        of_file(tmp_path / "complex.npz")


def test_a_release_that_turns_the_sign_hides_nothing(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    rows, chosen = rng.random((1000, 8)), rng.random(1000) < 0.5
    turned = -np.where(chosen[:, None], rows, -rows)
    np.savez(tmp_path / "turned.npz", first=rows, second=-rows, chosen=chosen, released=turned)
    assert measure(*of_file(tmp_path / "turned.npz"), Claimed(1.0, 0.0, False)).state is State.FOUND
