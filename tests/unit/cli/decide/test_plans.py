"""A description's ``[audit]`` and ``[release]``: the same as the flags, which stay for a release, hidden."""

from __future__ import annotations

import json
import tomllib
from dataclasses import asdict
from pathlib import Path

import click
import numpy as np
import pytest
import typer.main
from commandline import Run, strict

from vflens.cli.main import app
from vflens.experiments.audit.bench import Plan
from vflens.experiments.audit.given import FLAGS as FLAGS_OF_OTHERS
from vflens.experiments.release.options import ReleaseOptions
from vflens.experiments.release.planned import SETTINGS

AUDIT = 'models = 1\nrows = 30\nknown = 5\nseed = 3\ntraining = "secure"\ntolerance.x = 2\n'
FLAGS = [
    *("--models", 1, "--rows", 30, "--known", 5, "--seed", 3, "--training", "secure"),
    *("--tolerance", "x=2"),
]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    rng = np.random.default_rng(5)
    rows = [f"{i},{a:.3f},{b:.3f},{'ab'[int(a > 5)]}" for i, (a, b) in enumerate(rng.uniform(0, 10, (60, 2)))]
    file = tmp_path / "own.csv"
    file.write_text("\n".join(["id,x,y,label", *rows, ""]))
    return file


def _described(table: Path, plan: str, more: str = "") -> Path:
    file = table.with_name("own.toml")
    file.write_text(f'file = "own.csv"\ncolumns = ["x", "y"]\nlabel_column = "label"\n{more}{plan}')
    return file


@pytest.mark.usefixtures("few_defences")
def test_an_audit_reads_its_plan_from_the_description(table: Path, tmp_path: Path, vflens: Run) -> None:
    file = _described(table, f"[audit]\n{AUDIT}")
    of_file = vflens("audit", file, "--json", "--out", tmp_path / "a.html")
    assert of_file.code == 0, of_file.err
    assert "0.4" not in of_file.err
    of_flags = vflens("audit", _described(table, ""), *FLAGS, "--json", "--out", tmp_path / "a.html")
    assert of_flags.code == 0, of_flags.err
    notes = [line for line in of_flags.err.splitlines() if "0.4" in line]
    assert len(notes) == 1
    assert "--models, --tolerance, --seed" in notes[0]
    one, other = strict(of_file.out), strict(of_flags.out)
    assert one["plan"] == other["plan"]
    assert one["plan"]["tolerance"] == {"x": 2.0}
    assert one["attacks"] == other["attacks"]


@pytest.mark.usefixtures("few_defences")
def test_a_flag_stands_before_the_plan_and_one_aim_replaces_the_other(
    table: Path, tmp_path: Path, vflens: Run
) -> None:
    file = _described(table, f"[audit]\n{AUDIT}most_leak = 0.3\n")
    ended = vflens("audit", file, "--known", 7, "--least-error", 0.01, "--json", "--out", tmp_path / "a.html")
    assert ended.code == 0, ended.err
    plan = strict(ended.out)["plan"]
    assert (plan["known"], plan["models"], plan["least_error"], plan["most_leak"]) == (7, 1, 0.01, None)


WRONG = [
    ("audit", "[audit]\nmodles = 3\n", "own.toml: [audit]: modles"),
    ("audit", "[audit]\nmodels = 0\n", "models: give 1 or more (got 0)"),
    ("audit", "[audit]\nknown = -1\n", "known: give 0 or more"),
    ("audit", "[audit]\nmost_leak = 1.5\n", "most_leak: give 1 or less"),
    ("audit", '[audit]\ntraining = "open"\n', "training: give 'clear' or 'secure'"),
    ("audit", "[audit]\nmost_leak = 0.1\nleast_error = 0.1\n", "two thresholds for the same"),
    ("audit", "[audit]\ntolerance.x = 0\n", "tolerance.x: give more than 0"),
    ("audit", "audit = 3\n", "audit = 3: write a table, [audit]"),
    ("release", "[release]\nlamda = 3\n", "no setting is called 'lamda'"),
    ("release", '[release]\nseed = "s"\n', "no setting is called 'seed'"),
    ("release", "release = 3\n", "release = 3: write a table, [release]"),
]


@pytest.mark.parametrize(("command", "plan", "words"), WRONG)
def test_a_wrong_plan_is_refused_in_a_sentence(
    table: Path, vflens: Run, command: str, plan: str, words: str
) -> None:
    file = _described(table, plan)
    for line in (("check", file), (command, file, "--out", table.with_name("out.html"))):
        ended = vflens(*line)
        assert ended.code == 2, ended.out
        assert words in ended.err.replace("\n", " ")
        assert ended.err.startswith("error: ")
        assert len(ended.err.splitlines()) == 1


def test_a_release_reads_its_table_and_plan_from_the_description(
    table: Path, tmp_path: Path, vflens: Run
) -> None:
    file = _described(table, '[release]\nlambda = 2\npi = "standardise"\n')
    for source, flags in (
        (file, ()),
        (table, ("--id", "id", "--label", "label", "--lambda", 2, "--pi", "standardise")),
    ):
        ended = vflens(
            "release", source, *flags, "--seed", "s", "--out", tmp_path / f"{source.stem}{len(flags)}.csv"
        )
        assert ended.code == 0, ended.err
        assert "0.4" not in ended.err
    assert (tmp_path / "own0.csv").read_bytes() == (tmp_path / "own8.csv").read_bytes()


def test_columns_that_a_description_leaves_out_are_not_released(
    table: Path, tmp_path: Path, vflens: Run
) -> None:
    file = table.with_name("own.toml")
    text = 'file = "own.csv"\ncolumns = ["x"]\nlabel_column = "label"\n[release]\nlambda = 1\n'
    for more, header in (("", "x,label"), ("--id x", "label")):
        file.write_text(text)
        ended = vflens("release", file, *more.split(), "--force", "--out", tmp_path / "r.csv")
        if header == "x,label":
            assert ended.code == 0, ended.err
            assert (tmp_path / "r.csv").read_text().splitlines()[0] == header
        else:
            assert ended.code != 0  # a flag adds an identifier: nothing is left
    file.write_text(text + "keep_ids = true\n")
    ended = vflens("release", file, "--force", "--out", tmp_path / "r.csv")
    assert ended.code == 2
    assert "keep_ids = true would release columns" in ended.err


def test_a_release_refuses_what_it_does_not_read_of_a_description(table: Path, vflens: Run) -> None:
    ended = vflens(
        "release", _described(table, "[release]\nlambda = 1\n", 'missing = "mean"\n'), "--out", "r.csv"
    )
    assert ended.code == 2
    assert "choose refuse or drop_row" in ended.err.replace("\n", " ")


@pytest.mark.usefixtures("few_defences")
def test_a_list_of_bounds_is_one_for_each_column(table: Path, tmp_path: Path, vflens: Run) -> None:
    plan = '[release]\nmechanism = "bounded"\nlambda = 1\nlower = [-3, -4]\nupper = 5\n'
    ended = vflens("release", _described(table, plan), "--out", tmp_path / "r.csv", "--json")
    assert ended.code == 0, ended.err
    assert json.loads(ended.out)["mechanism"] == "bounded"


def test_a_party_that_runs_keeps_its_plan_in_its_file(table: Path, vflens: Run) -> None:
    """The plan is no setting of the run; a coordinator has none."""
    from vflens.config.plans import without_plans

    assert without_plans({"role": "passive", "audit": {}}) == {"role": "passive"}
    assert without_plans({"role": "coordinator", "audit": {}}) == {"role": "coordinator", "audit": {}}


def test_what_check_writes_has_the_defaults_of_both_plans(table: Path, tmp_path: Path, vflens: Run) -> None:
    to = tmp_path / "written.toml"
    assert vflens("check", table, "--write", to).code == 0
    lines = to.read_text().splitlines()
    first = next(number for number, line in enumerate(lines) if "[audit]" in line)
    plans = [line.removeprefix("# ") for line in lines[first:]]
    stated = tomllib.loads("\n".join(plans))
    plan = {**asdict(Plan()), "most_leak": 0.2}
    assert stated["audit"] == {name: plan[name] for name in stated["audit"]}
    assert stated["release"] == {"mechanism": "gaussian", "lambda": 1}


def test_what_a_plan_states_is_hidden_in_the_help() -> None:
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    shown = {
        name: [p for p in commands[name].params if isinstance(p, click.Option) or hasattr(p, "hidden")]
        for name in ("audit", "release")
    }
    names = {name: {p.name for p in found if not p.hidden} for name, found in shown.items()}
    fields = set(asdict(Plan())) | {"label_kind"}
    assert names["audit"] & fields == {*FLAGS_OF_OTHERS}  # a data set or run folder has no description
    assert len(names["release"]) <= 14
    known = {f.replace("lambda", "lambda_") for f in SETTINGS} - {"lambda__"}
    assert known <= set(ReleaseOptions.__dataclass_fields__)
