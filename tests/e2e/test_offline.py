"""A recorded run attacked again without its parties, and scored by the target: the same bits, the same
figures.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from laboratory import THREE, experiment
from recordedrun import ATTACKS, SETTINGS, home, recorded
from typer.testing import CliRunner, Result

from vflens.cli.main import app
from vflens.errors import ConfigError, KnowledgeError
from vflens.experiments.offline.attack import attack_recorded
from vflens.experiments.offline.score import score_estimate
from vflens.experiments.results.folders import read_party
from vflens.experiments.run.run import run
from vflens.registry import ATTACKS as ATTACK_PLUGINS
from vflens.types import Estimate, Phase

_FIXTURES = (
    home,
    recorded,
)  # used by name


@pytest.mark.parametrize("attack", ATTACKS)
@pytest.mark.parametrize("target", THREE["passive"])
def test_the_recorded_transcript_gives_the_run_s_own_estimate(
    tmp_path: Path, recorded: Path, attack: str, target: str
) -> None:
    out = tmp_path / "estimate.npz"
    facts = attack_recorded(recorded / "active", attack, target, out)
    assert {name: facts[name] for name in ("attack", "target", "scored_set", "rows", "estimate")} == {
        "attack": attack,
        "target": target,
        "scored_set": "predict",
        "rows": 18,
        "estimate": str(out),
    }
    with (
        np.load(out) as offline,
        np.load(recorded / "active" / "estimates" / f"{target}.{attack}.npz") as live,
    ):
        assert set(offline.files) == set(live.files)
        assert {"extra_residual", "run", "adversary", "attack", "scored_set", "target"} <= set(live.files)
        for name in live.files:
            np.testing.assert_array_equal(offline[name], live[name], strict=True)


def test_what_certifies_an_estimate_travels_with_it(tmp_path: Path, recorded: Path) -> None:
    """Residual, gap and radius √p₁ of each row in the file; median and largest in the output."""
    out = tmp_path / "estimate.npz"
    facts = attack_recorded(recorded / "active", "rcc1", "b", out)
    assert sum(facts["status"].values()) == facts["rows"] == 18
    with np.load(out) as saved:
        for name in ("residual", "gap", "radius"):
            extra = saved[f"extra_{name}"]
            assert extra.shape == (18,)
            assert facts[name] == {"median": np.median(extra), "largest": extra.max()}
        assert saved["extra_certified"].dtype == bool


def _live_mse(home: Path, target: str, attack: str) -> float:
    (value,) = (m.value for m in read_party(home / target).metrics if m.name == "mse" and m.attack == attack)
    return value


def test_the_target_scores_it_as_it_did_in_the_run(tmp_path: Path, home: Path) -> None:
    out, live = tmp_path / "estimate.npz", _live_mse(home, "b", "half_star")
    before = (home / "b" / "federation.json").read_text(encoding="utf-8")
    attack_recorded(home / "active", "half_star", "b", out)
    facts = score_estimate(out, home / "b" / "config.toml")
    assert facts["mse"] == live
    assert (facts["attack"], facts["rows"]) == ("half_star", 18)
    blind = {m.attack: m.value for m in read_party(home / "b").metrics if m.name == "blind_mse"}
    assert facts["blind_mse"] == min(blind.values()) == blind[facts["blind_guess"]]
    assert (home / "b" / "federation.json").read_text(encoding="utf-8") == before


@pytest.mark.parametrize("attack", ATTACKS)
def test_the_target_scores_an_estimate_that_the_run_kept(home: Path, attack: str) -> None:
    """Without attacking again."""
    live = _live_mse(home, "b", attack)
    facts = score_estimate(home / "active/estimates" / f"b.{attack}.npz", home / "b" / "config.toml")
    assert (facts["attack"], facts["rows"], facts["mse"]) == (attack, 18, live)


def test_the_target_scores_each_column_in_bits_too(tmp_path: Path) -> None:
    """The figures of the run itself: a digit's pixel has 17 values."""
    what = experiment(tmp_path, data={"name": "digits"}, training={"epochs": 2, "batch_size": 500})
    (home,) = run(what, in_process=True).scenarios
    passive = read_party(home / "passive")
    last = [m for m in passive.metrics if m.scored_set == "predict"][-1].rows
    (names,) = ([c.name for c in p.columns] for p in passive.federation.parties if p.name == "passive")
    live = {
        (column, str(m.name)): value
        for m in passive.metrics
        if m.rows == last and m.name.startswith("column_") and m.attack in ("", "half_star")
        for column, value in m.by_column(names).items()
    }
    out = tmp_path / "estimate.npz"
    attack_recorded(home / "active", "half_star", None, out)
    facts = score_estimate(out, home / "passive" / "config.toml")
    assert len(facts["columns"]) == 32
    for column, figures in facts["columns"].items():
        assert figures.keys() == {"mse", "blind_mse", "entropy", "conditional_entropy"}
        assert figures == {name: live[column, f"column_{name}"] for name in figures}
    assert facts["mse"] == pytest.approx(np.mean([f["mse"] for f in facts["columns"].values()]))


def test_the_command_line_says_the_same(tmp_path: Path, home: Path) -> None:
    out = tmp_path / "estimate.npz"
    attack = [
        "attack",
        str(home / "active"),
        "--attack",
        "lmmse",
        "--target",
        "a",
        "--out",
        str(out),
        "--json",
    ]
    assert json.loads(CliRunner().invoke(app, attack).stdout)["rows"] == 18
    score = ["score", str(out), "--config", str(home / "a" / "config.toml"), "--json"]
    assert json.loads(CliRunner().invoke(app, score).stdout)["mse"] == _first_mse(home, "a", "lmmse")


def _first_mse(home: Path, target: str, attack: str) -> float:
    """The figure of the run itself; scoring again added one behind it."""
    metrics = read_party(home / target).metrics
    return next(m.value for m in metrics if m.name == "mse" and m.attack == attack)


def test_what_was_not_disclosed_stays_out_of_reach(tmp_path: Path) -> None:
    (home,) = run(experiment(tmp_path, disclose=[]), in_process=True).scenarios
    with pytest.raises(KnowledgeError, match=r"^party 'passive' never disclosed its parameters to 'active'$"):
        attack_recorded(home / "active", "half_star", None, tmp_path / "estimate.npz")


@pytest.mark.parametrize("adversary", ["b", "coordinator"])
def test_whoever_receives_gradients_reads_every_label(tmp_path: Path, home: Path, adversary: str) -> None:
    """C − y of softmax regression trained in the clear: its one negative entry is the label."""
    out = tmp_path / "estimate.npz"
    facts = attack_recorded(home / adversary, "gradient_sign", None, out)
    assert (facts["target"], facts["rows"]) == ("active", 72)
    scored = score_estimate(out, home / "active" / "config.toml")
    assert scored["label_accuracy"] == 1.0
    assert scored["blind_label_accuracy"] < 0.6
    kept = {m.name: m.value for m in read_party(home / "active").metrics if m.attack == "gradient_sign"}
    assert kept == {k: v for k, v in scored.items() if k.startswith("label_")}
    score = ["score", str(out), "--config", str(home / "active" / "config.toml")]
    printed = CliRunner().invoke(app, score).stdout
    assert printed.startswith(
        "gradient_sign on 72 rows: 100.0% of the labels; best blind guess (the most frequent"
    )


def test_labels_are_attacked_from_elsewhere_and_at_the_active_party(tmp_path: Path, recorded: Path) -> None:
    out = tmp_path / "estimate.npz"
    with pytest.raises(ConfigError, match="labels are no secret from 'active', which holds them"):
        attack_recorded(recorded / "active", "gradient_sign", None, out)
    with pytest.raises(ConfigError, match="--target 'a': the labels are those of 'active'"):
        attack_recorded(recorded / "b", "gradient_sign", "a", out)


def test_training_in_the_clear_is_attacked_from_the_record_too(tmp_path: Path) -> None:
    (home,) = run(experiment(tmp_path, training={"epochs": 30, "batch_size": 24}), in_process=True).scenarios
    out = tmp_path / "estimate.npz"
    assert attack_recorded(home / "active", "clear_features", None, out)["rows"] == 72
    facts = score_estimate(out, home / "passive" / "config.toml")
    assert facts["affine_r2"] > 0.7


def test_the_agnostic_attacks_reach_training_rows_from_the_record_too(tmp_path: Path) -> None:
    """The figures of the run itself, on the rows that no auxiliary grant left out."""
    names, grants = ("agnostic", "refined_agnostic"), [SETTINGS["disclose"][0], SETTINGS["disclose"][1]]
    what = experiment(tmp_path, attacks=[{"name": n} for n in names], disclose=grants)
    (home,) = run(what, in_process=True).scenarios
    out = tmp_path / "estimate.npz"
    live = {
        (m.attack, m.scored_set): m.value for m in read_party(home / "passive").metrics if m.name == "mse"
    }
    for name in names:
        facts = attack_recorded(home / "active", name, None, out, scored=Phase.TRAIN)
        assert (facts["scored_set"], facts["rows"]) == ("train", 62)
        scored = score_estimate(out, home / "passive" / "config.toml")
        assert scored["mse"] == live[name, "train"]
        assert live[name, "train"] != live[name, "predict"]
    with pytest.raises(
        ConfigError, match=r"^--rows train: half_star estimates predict rows only, leave --rows out$"
    ):
        attack_recorded(home / "active", "half_star", None, out, scored=Phase.TRAIN)


def test_parameters_given_on_the_command_line(tmp_path: Path, recorded: Path) -> None:
    """They stand over those of the run, and are checked as those of an experiment are."""
    out = tmp_path / "estimate.npz"

    def command(*given: str) -> Result:
        words = ["attack", str(recorded / "active"), "--attack", "cls", "--target", "c", "--out", str(out)]
        return CliRunner().invoke(app, [*words, *(w for text in given for w in ("--set", text))])

    found = []
    for start in ("zero", "[0, 0, 0, 0]", "half"):
        assert command(f"start={start}").exit_code == 0
        with np.load(out) as saved:
            found.append(saved["values"])
    np.testing.assert_array_equal(found[0], found[1])
    assert np.abs(found[0] - found[2]).max() > 0.01
    for given, sentence in (
        (
            ["start=top"],
            "attacks plug-in 'cls': start: give one of clamped_ls, zero, half, random, or a point",
        ),
        (["begin=half"], "attacks plug-in 'cls': begin: there is no such setting: it has start"),
        (["start"], "--set 'start': give KEY=VALUE"),
        (["start=half", "start=zero"], "--set start is given twice"),
        (["name=rcc2"], "--set name=rcc2: an attack's name is no parameter"),
        (["start=[0.5]"], "cls: start has 1 number and there are 4 unknown columns"),
    ):
        refused = command(*given).exception
        assert isinstance(refused, ConfigError)
        assert str(refused).startswith(sentence)
        assert "\n" not in str(refused)


@pytest.mark.parametrize("attack", ["rcc2", "lmmse"])
def test_rows_are_solved_again_from_the_definition(
    tmp_path: Path, recorded: Path, attack: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All targets' columns are solved at once, of rows with some of their scores rounded to 0 too."""
    kind: Any = ATTACK_PLUGINS.get(attack)
    out = tmp_path / "estimate.npz"
    right = attack_recorded(recorded / "active", attack, "b", out, verify=100)["verified"]
    assert right["rows"] == 18
    assert right["largest_difference"] < 1e-6
    assert right["words"].startswith(f"{attack}: 18 rows solved again in CVXPY differ by at most ")
    solve = kind.solve
    monkeypatch.setattr(kind, "solve", lambda *given, **more: _moved(solve(*given, **more)))
    wrong = attack_recorded(recorded / "active", attack, "b", out, verify=100)["verified"]
    assert wrong["largest_difference"] == pytest.approx(0.01, rel=1e-3)


def _moved(estimate: Estimate) -> Estimate:
    return replace(estimate, values=estimate.values + 0.01)


def test_verify_prints_one_line_and_refuses_other_attacks_at_once(tmp_path: Path, recorded: Path) -> None:
    given = ["attack", str(recorded / "active"), "--target", "a", "--out", str(tmp_path / "estimate.npz")]
    answer = CliRunner().invoke(app, [*given, "--attack", "half_star", "--verify", "5"])
    assert "\nhalf_star: 5 rows solved again in CVXPY differ by at most " in answer.stdout
    refusal = CliRunner().invoke(app, [*given, "--attack", "zero", "--verify", "5"]).exception
    assert isinstance(refusal, ConfigError)
    assert str(refusal).startswith("attack 'zero' is not defined by a convex program")
