"""Two runs side by side: differences only, secrets masked, attack errors beside their blind errors."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path

import pytest
from rich.console import Console
from runfolder import metric, scores, write_party, write_run

from vflens.cli.output import emit
from vflens.errors import ConfigError, DataError
from vflens.experiments.results.compare import compare, masked, table


def rendered(comparison: dict[str, object]) -> str:
    screen = io.StringIO()
    Console(width=200, markup=False, file=screen).print(table(comparison))
    return screen.getvalue()


def test_equal_runs_differ_in_nothing(tmp_path: Path) -> None:
    for side in ("one", "two"):
        write_run(tmp_path / side / "demo")
    found = compare(tmp_path / "one", tmp_path / "two" / "demo")
    assert found == {
        "a": "demo",
        "b": "demo",
        "only_a": [],
        "only_b": [],
        "configuration": [],
        "errors": [],
        "figures": [],
        "metrics": [],
        "equal": True,
    }


def test_of_a_run_and_a_party_only_that_party_is_compared(tmp_path: Path) -> None:
    for side in ("one", "two"):
        write_run(tmp_path / side / "demo")
    whole, party = tmp_path / "one" / "demo", tmp_path / "two" / "demo" / "active"
    for sides, alone in (((whole, party), "a"), ((party, whole), "b")):
        found = compare(*sides)
        assert found[f"only_{alone}"] == ["coordinator", "passive"]
        assert (found["configuration"], found["errors"], found["metrics"], found["equal"]) == (
            [],
            [],
            [],
            True,
        )
        text = f"Only {alone} holds: coordinator, passive. Equal: nothing differs but times."
        assert text in " ".join(rendered(found).split())


def test_what_differs_at_a_party_that_both_hold_is_found_beside_absent_ones(tmp_path: Path) -> None:
    write_run(tmp_path / "one" / "demo")
    write_run(tmp_path / "two" / "demo", {"lmmse": 0.05}, accuracy=0.9)
    found = compare(tmp_path / "one", tmp_path / "two" / "demo" / "active")
    assert [c["key"] for c in found["configuration"]] == ["attacks[1].name"]
    assert [m["metric"] for m in found["metrics"]] == ["accuracy"]
    assert not found["equal"]


def test_folders_without_a_common_party_are_refused(tmp_path: Path) -> None:
    run = write_run(tmp_path / "demo")
    with pytest.raises(ConfigError, match=r"/active holds active and .*/passive passive: give two folders"):
        compare(run / "active", run / "passive")


def test_undefined_figures_of_both_are_equal(tmp_path: Path) -> None:
    rows = [metric("label_auc", math.nan, attack="exploit", rows=9)]
    for name, values in (("a", [math.nan, 1.0]), ("b", [math.nan, 1.0]), ("c", [math.nan, 2.0])):
        figures = [*rows, metric("score_noise", 1.0, values=values)]
        write_party(tmp_path / name / "passive", "passive", metrics=figures)
    assert compare(tmp_path / "a", tmp_path / "b")["equal"]
    (other,) = compare(tmp_path / "a", tmp_path / "c")["metrics"]
    assert other["metric"] == "score_noise"


@pytest.mark.parametrize(("name", "equal"), [("train_seconds", True), ("accuracy", False)])
def test_times_alone_make_no_run_another(tmp_path: Path, name: str, equal: bool) -> None:
    for side, value in (("one", 1.0), ("two", 2.0)):
        folder = tmp_path / side / "demo" / "coordinator"
        write_party(folder, "coordinator", metrics=[metric(name, value)])
    found = compare(tmp_path / "one", tmp_path / "two")
    assert [m["metric"] for m in found["metrics"]] == [name]
    assert found["equal"] is equal
    assert ("nothing differs but times" in rendered(found)) is equal


def test_what_differs_is_listed_by_party_and_key(tmp_path: Path) -> None:
    defenses = [{"name": "round_scores", "digits": 2}]
    write_run(tmp_path / "one" / "demo")
    write_run(tmp_path / "two" / "demo", {"lmmse": 0.05}, defenses=defenses, accuracy=0.9)
    found = compare(tmp_path / "one", tmp_path / "two")
    assert found["configuration"] == [
        {"party": "active", "key": "attacks[1].name", "a": "half_star", "b": None},
        {"party": "coordinator", "key": "defenses[0].name", "a": None, "b": "round_scores"},
        {"party": "coordinator", "key": "defenses[0].digits", "a": None, "b": 2},
    ]
    whole = {e["attack"]: e for e in found["errors"] if not e["column"]}
    assert whole["lmmse"] == {
        **{"attack": "lmmse", "target": "passive", "scored_set": "predict", "rows": 360, "column": ""},
        **{"a": 0.021, "b": 0.05, "difference": pytest.approx(0.029), "blind_a": 0.08, "blind_b": 0.08},
    }
    assert (whole["half_star"]["a"], whole["half_star"]["b"], whole["half_star"]["difference"]) == (
        0.112,
        None,
        None,
    )
    assert sum(e["attack"] == "lmmse" and e["column"] != "" for e in found["errors"]) == 4
    accuracy = next(m for m in found["metrics"] if m["metric"] == "accuracy")
    assert (accuracy["party"], accuracy["difference"]) == ("active", pytest.approx(-0.06))


def test_figures_of_attacks_stand_apart_from_those_of_the_run(tmp_path: Path) -> None:
    named = {"attack": "ls", "target": "passive", "scored_set": "train", "rows": 60}
    for side, value in (("one", 0.25), ("two", 0.5)):
        of_attack = [metric(name, value, **named) for name in ("psnr", "ssim", "matched_mse")]
        of_attack += [metric("column_match", value, column="c", **named)]
        folder = tmp_path / side / "demo" / "passive"
        write_party(folder, "passive", metrics=[*of_attack, metric("accuracy", value)])
    found = compare(tmp_path / "one", tmp_path / "two")
    assert [m["metric"] for m in found["figures"]] == ["psnr", "ssim", "column_match"]
    assert [m["metric"] for m in found["metrics"]] == ["accuracy"]
    assert not found["equal"]
    lines = [line.split("│")[1].strip() for line in rendered(found).splitlines() if "│" in line]
    assert lines[-4:] == [
        *(f"passive {name} ls passive train 60" for name in ("psnr", "ssim")),
        *("passive column_match ls passive train c 60", "passive accuracy"),
    ]


def test_secrets_are_compared_but_never_shown(tmp_path: Path) -> None:
    for side in ("one", "two"):
        secrets = {"seed": f"SECRET {side}", "peers": [{"name": "x", "token": f"SECRET {side}"}], "epochs": 1}
        write_party(tmp_path / side / "demo" / "active", "active", config=secrets)
    found = compare(tmp_path / "one", tmp_path / "two")
    assert found["configuration"] == [
        {"party": "active", "key": "seed", "a": "(secret)", "b": "(secret)"},
        {"party": "active", "key": "peers[0].token", "a": "(secret)", "b": "(secret)"},
    ]
    assert "SECRET" not in json.dumps(found)
    assert rendered(found).count("(secret)") == 4


def test_masking_reaches_any_depth_and_spares_the_rest() -> None:
    config = {
        "seed": "s",
        "tokens": {"passive": "t"},
        "training": {"epochs": 5, "api-key": "k"},
        "peers": [{"name": "active", "token": "t"}],
        "monkey": "not a key",
    }
    assert masked(config) == {
        "seed": "(secret)",
        "tokens": "(secret)",
        "training": {"epochs": 5, "api-key": "(secret)"},
        "peers": [{"name": "active", "token": "(secret)"}],
        "monkey": "not a key",
    }


def test_an_error_without_a_blind_one_is_left_out(tmp_path: Path) -> None:
    for side, error in (("one", 0.02), ("two", 0.04)):
        metrics = [m for m in scores({"ls": error}) if m["metric"] != "blind_mse"]
        write_party(tmp_path / side / "demo" / "passive", "passive", metrics=metrics)
    found = compare(tmp_path / "one", tmp_path / "two")
    assert (found["errors"], found["figures"], found["metrics"]) == ([], [], [])


def test_infinite_figures_are_shown_and_null_in_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for side, value in (("one", float("inf")), ("two", 0.5)):
        write_party(
            tmp_path / side / "demo" / "coordinator", "coordinator", metrics=[metric("mean_kl", value)]
        )
    found = compare(tmp_path / "one", tmp_path / "two")
    shown = next(line for line in rendered(found).splitlines() if "mean_kl" in line)
    assert [cell.strip() for cell in shown.split("│")[2:5]] == ["∞", ".500", "-∞"]
    emit(True, found, str)
    (row,) = json.loads(capsys.readouterr().out)["metrics"]
    assert (row["a"], row["b"], row["difference"]) == (None, 0.5, None)


def test_the_table_shows_untrusted_names_as_they_are(tmp_path: Path) -> None:
    for side, name in (("one", "plain"), ("two", "[bold]x[/nonsense]")):
        write_party(tmp_path / side / "demo" / "active", "active", config={"comment": name})
        write_party(tmp_path / side / "demo" / "passive", "passive", metrics=scores({name: 0.02}))
    shown = rendered(compare(tmp_path / "one", tmp_path / "two"))
    assert "active: comment" in shown
    assert "MSE of [bold]x[/nonsense] on passive (360 predict rows)" in shown
    assert ".020 (blind .080)" in shown


def test_a_folder_of_several_runs_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        write_run(tmp_path / "runs" / name)
    with pytest.raises(ConfigError, match=r"holds 2 runs \(a, b\): give one run's folder"):
        compare(tmp_path / "runs", tmp_path / "runs" / "a")
    with pytest.raises(DataError, match="is no folder"):
        compare(tmp_path / "nowhere", tmp_path / "runs" / "a")
