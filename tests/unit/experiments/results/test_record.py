"""One record of a run: a notebook reads what the pages read, and the pages read nothing else."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from runfolder import metric, scores, write_party

import vflens as vl
from vflens.errors import ConfigError, DataError
from vflens.experiments.results import record
from vflens.experiments.results.folders import PartyRuns
from vflens.experiments.results.labels_membership import MembershipResult

ROOT = Path(__file__).parents[4]
RESULTS = "vflens.experiments.results"
READERS = ("vflens/api", "vflens/cli", *(f"vflens/experiments/{room}" for room in (
    "pages", "watch", "sweeps", "scoreboard", "figures", "offline", "verify_log", "audit")))  # fmt: skip


def _run(home: Path) -> Path:
    ranked = {"attack": "loss", "adversary": "server", "target": "passive", "rows": 100}
    write_party(
        home / "passive",
        "passive",
        metrics=[
            *scores({"half": 0.15, "rcc2": 0.02}, rows=50),
            *scores({"half": 0.14, "rcc2": 0.01}),
            metric("membership_auc", 0.7, **ranked),
            metric("membership_tpr", 0.05, detail="0.01", **ranked),
            metric("membership_tpr", 0.2, detail="0.1", **ranked),
            metric("membership_auc", 0.9, **ranked | {"attack": "half"}),
            metric("membership_tpr", 0.9, detail="often", **ranked | {"attack": "half"}),
            metric("blind_membership_auc", 0.5, adversary="server", target="passive", rows=100),
            metric("training_releases", 5, target="passive"),
            metric("training_epsilon", 2.0, target="passive"),
        ],
        config={"limits": {"epsilon": 3.0, "delta": 1e-6}},
    )
    right = {"attack": "gia", "adversary": "passive", "target": "active", "scored_set": "train", "rows": 50}
    blind = {**right, "attack": "", "adversary": "passive"}
    write_party(
        home / "active",
        "active",
        metrics=[
            metric("accuracy", 0.9),
            metric("accuracy_alone", 0.75),
            metric("label_accuracy", 0.8, **right),
            metric("label_auc", 0.85, **right),
            metric("blind_label_accuracy", 0.6, **blind),
            metric("skipped", 1.0, attack="lmmse", adversary="active", target="passive", detail="no moments"),
            metric("failed", 1.0, attack="grna", adversary="active", target="passive", detail="a bug"),
        ],
    )
    return home


def test_a_notebook_reads_what_the_pages_read(tmp_path: Path) -> None:
    run = vl.read_run(str(_run(tmp_path / "demo")))
    assert [(r.attack, r.rows, r.mse, r.blind) for r in run.results] == [
        *(("rcc2", 360, 0.01, 0.08), ("half", 360, 0.14, 0.08))
    ]
    assert sorted(r.rows for r in run.milestones) == [50, 50, 360, 360]
    assert [column.mse for column in run.columns(run.results[0])] == [0.01] * 4
    assert len(run.leaking_columns("passive")) == 4
    assert [(r.attack, r.accuracy, r.blind, r.auc) for r in run.labels] == [("gia", 0.8, 0.6, 0.85)]
    shares = {"0.01": 0.05, "0.1": 0.2}
    assert run.membership == (MembershipResult("loss", "server", "passive", 100, 0.7, shares, 0.5),)
    assert run.skipped == (("lmmse", "active", "passive", "no moments"),)
    assert run.failed == (("grna", "active", "passive", "a bug"),)
    assert run.utility == pytest.approx({"accuracy": 0.9, "accuracy_alone": 0.75, "accuracy_gain": 0.15})
    (spent,) = run.privacy
    assert (spent.party, spent.releases, spent.epsilon, spent.budget) == ("passive", 5, 2.0, 3.0)
    assert spent.delta == 1e-6


def test_an_owner_reads_its_own_folder(tmp_path: Path) -> None:
    own = vl.read_run(_run(tmp_path / "demo") / "active")
    assert (own.name, [p.name for p in own.parties]) == ("demo", ["active"])
    assert own.results == ()
    assert own.labels
    assert (own.privacy, own.membership, own.disorders) == ((), (), ())


def test_several_runs_and_none_are_refused_in_one_sentence(tmp_path: Path) -> None:
    _run(tmp_path / "a")
    _run(tmp_path / "b")
    with pytest.raises(ConfigError, match=r"holds 2 runs \(a, b\): give one run's folder$"):
        vl.read_run(tmp_path)
    with pytest.raises(DataError, match="is no folder: give the folder that a party wrote"):
        vl.read_run(tmp_path / "nonesuch")


def _functions_of_a_run() -> set[tuple[str, str]]:
    """The functions below the record that compute something of a run."""
    found = set()
    for name in ("results", "labels_membership", "protection", "theory", "findings", "fedadob"):
        module = importlib.import_module(f"{RESULTS}.{name}")
        for called, function in inspect.getmembers(module, inspect.isfunction):
            parameters = [*inspect.signature(function).parameters.values()]
            if parameters and parameters[0].annotation in ("PartyRuns", PartyRuns):
                found.add((f"{RESULTS}.{name}", called))
    return found


def _taken(file: Path) -> Iterator[tuple[str, str]]:
    """What ``file`` imports, and the attributes of modules that it names: (module, name)."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    modules = {}
    for node in (n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)):
        for name in node.names:
            yield node.module or "", name.name
            modules[name.asname or name.name] = f"{node.module}.{name.name}"
    for use in ast.walk(tree):
        if isinstance(use, ast.Attribute) and isinstance(use.value, ast.Name) and use.value.id in modules:
            yield modules[use.value.id], use.attr


def test_readers_take_the_record_and_nothing_below_it() -> None:
    below = _functions_of_a_run()
    assert {called for _, called in below} >= {"final", "membership_results", "privacy", "comparisons"}
    files = [f for room in READERS for f in sorted((ROOT / room).rglob("*.py"))]
    files += [ROOT / f"vflens/experiments/results/{name}.py" for name in ("compare", "ledger", "titles")]
    assert {f.name: wrong for f in files if (wrong := below & set(_taken(f)))} == {}
    assert (f"{RESULTS}.results", "final") in set(_taken(Path(record.__file__)))
