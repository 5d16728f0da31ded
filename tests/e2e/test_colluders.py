"""Colluders as a setting: after the run of a lab their attacks run, and their targets score them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commandline import Run
from nonempty import nonempty

import vflens as vl
from vflens.config.writing import toml_text
from vflens.experiments.evidence.measured import measured
from vflens.experiments.offline import score
from vflens.experiments.offline.attack import attack_recorded
from vflens.experiments.results.titles import attacker
from vflens.experiments.run.resume import resume

TOGETHER = {"name": "clear_columns", "colluders": ["coordinator"]}
VERTICAL: dict[str, Any] = {
    "name": "together",
    "data": {"name": "synthetic", "rows": 90, "features": 7, "classes": 3, "informative": 4},
    "split": {"kind": "fraction", "fraction": 0.5},
    "parties": {"passive": ["a", "b"]},
    "training": {"epochs": 20, "batch_size": 20, "learning_rate": 0.1},
    "disclose": [
        {"what": "parameters", "to": "active"},
        {"what": "auxiliary", "to": "active", "rows": 12},
    ],
    "attacks": [
        {"name": "clear_columns"},
        TOGETHER,
        {"name": "clear_columns", "colluders": ["b"], "sweeps": 40},
        {"name": "half_star"},
        {"name": "gradient_sign", "at": "b", "colluders": ["coordinator"]},
    ],
}
CLIENTS: dict[str, Any] = {
    "name": "sums",
    "data": {"name": "wine"},
    "parties": {"clients": 3},
    "training": {"batch_size": 1, "learning_rate": 0.5, "optimizer": "sgd"},
    "horizontal": {"rounds": 2, "local_steps": 1, "secure_aggregation": True},
    "attacks": [{"name": "softmax_inversion", "colluders": ["client-2", "client-3"]}],
}
PAGE = (Path(__file__).parents[2] / "docs/threat-models.md").read_text(encoding="utf-8")
(_, PLACED) = (
    tomllib.loads(text)["attacks"]
    for text in re.findall(r"```toml\n(\[\[attacks\]\].*?)```", PAGE, re.DOTALL)
)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> vl.Run:
    return vl.run(VERTICAL, out=tmp_path_factory.mktemp("runs"))


def test_colluders_are_scored_beside_the_attacks_of_one_party(done: vl.Run) -> None:
    found = {
        (r["attack"], r["target"]): r["mse"] for r in done.results.to_pylist() if r["scored_set"] == "train"
    }
    assert {key for key in found if key[0].startswith("clear")} == {
        ("clear_columns:with-coordinator", "a"),
        ("clear_columns:with-coordinator", "b"),
        ("clear_columns:with-b", "a"),
    }
    assert max(mse for (attack, _), mse in found.items() if attack.startswith("clear")) < 1e-18
    record = vl.read_run(done.folder)
    assert {(s.attack, s.target) for s in record.skipped} == {("clear_columns", "a"), ("clear_columns", "b")}
    (labels,) = record.labels
    assert (labels.attack, labels.adversary) == ("gradient_sign:with-coordinator", "b+coordinator")
    assert labels.accuracy == 1


def test_the_guess_that_a_colluder_s_columns_allow_is_no_baseline_of_one_alone(done: vl.Run) -> None:
    """`imputation` from the columns of active and b stands beside their attacks, not beside half_star."""
    rows = {
        r["attack"]: r for r in done.results.to_pylist() if (r["target"], r["scored_set"]) == ("a", "train")
    }
    assert rows["imputation:with-b"]["mse"] != rows["imputation:with-coordinator"]["mse"]
    assert rows["clear_columns:with-b"]["blind"] <= rows["imputation:with-b"]["mse"]
    assert rows["clear_columns:with-coordinator"]["blind"] <= rows["imputation:with-coordinator"]["mse"]


def test_the_parameters_are_those_of_its_own_table(done: vl.Run, tmp_path: Path) -> None:
    home = done.folder / "run"
    for name, sweeps in (("with-b", 40), ("with-coordinator", 30)):
        facts = attack_recorded(
            home / "active",
            "clear_columns",
            "a",
            tmp_path / "e.npz",
            parameters={"sweeps": sweeps},
            together=[home / name.removeprefix("with-")],
        )
        assert facts["attack"] == f"clear_columns:{name}"
        with (
            np.load(tmp_path / "e.npz") as one,
            np.load(home / f"active/estimates/a.clear_columns:{name}.train.npz") as other,
        ):
            np.testing.assert_array_equal(one["values"], other["values"])


def test_the_report_names_who_colludes(done: vl.Run) -> None:
    page = done.report.read_text(encoding="utf-8")
    assert "clear_columns:with-coordinator" in page
    assert "clear_columns:with-" in done.verdict
    assert "gradient_sign:with-coordinator at b+coordinator names 100.0 %" in done.verdict
    record = vl.read_run(done.folder)
    assert attacker(record, "clear_columns:with-b") == "the active party with b"
    assert attacker(record, "half_star") == "the active party"
    of_labels = [m for m in measured([record.findings]) if m.attack == "gradient_sign:with-coordinator"]
    assert {m.adversary for m in nonempty(of_labels)} == {"the passive party b with coordinator"}


@pytest.mark.usefixtures("one_start")
def test_processes_have_them_too(done: vl.Run, tmp_path: Path) -> None:
    small = {**VERTICAL, "attacks": [TOGETHER]}
    apart = vl.run(small, out=tmp_path, in_process=False)
    here = {(r["attack"], r["target"]): r["mse"] for r in done.results.to_pylist()}
    there = {(r["attack"], r["target"]): r["mse"] for r in apart.results.to_pylist()}
    assert there["clear_columns:with-coordinator", "a"] == here["clear_columns:with-coordinator", "a"]


@pytest.mark.facts
def test_a_run_interrupted_during_their_attacks_goes_on(
    done: vl.Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between an estimate and its score: what was scored before stays, and nothing is left afterwards."""
    real, scored = score.score_estimate, list[Path]()

    def interrupted(file: Path, *args: Any) -> Any:
        scored.append(file)
        if len(scored) == 3:
            raise KeyboardInterrupt
        return real(file, *args)

    monkeypatch.setattr(score, "score_estimate", interrupted)
    with pytest.raises(KeyboardInterrupt):
        vl.run(VERTICAL, out=tmp_path)
    folder = tmp_path / "together"
    resume(folder)
    assert len(scored) == len(set(scored)) + 1
    found, whole = vl.read_run(folder), vl.read_run(done.folder)
    assert (found.results, found.labels) == (whole.results, whole.labels)
    assert not [*folder.glob("*/*/estimates/unscored")]
    with pytest.raises(vl.errors.ConfigError, match="holds no unfinished run"):
        resume(folder)


def test_an_attack_that_lacked_knowledge_is_not_left(tmp_path: Path) -> None:
    run = vl.run({**VERTICAL, "attacks": [TOGETHER], "disclose": VERTICAL["disclose"][:1]}, out=tmp_path)
    assert {s.target for s in vl.read_run(run.folder).skipped} == {"a", "b"}
    with pytest.raises(vl.errors.ConfigError, match="holds no unfinished run"):
        resume(run.folder)


def test_clients_uncover_an_update_with_their_server(tmp_path: Path) -> None:
    run = vl.run(CLIENTS, out=tmp_path)
    found = {(r["attack"], r["target"]): r["mse"] for r in run.results.to_pylist()}
    assert found.keys() == {("softmax_inversion:with-client-2-client-3", "client-1")}
    assert max(found.values()) < 1e-12


def test_clients_without_their_server_attack_as_offline_to_the_bit(tmp_path: Path) -> None:
    run = vl.run({**CLIENTS, "attacks": PLACED}, out=tmp_path)
    (found,) = run.results.to_pylist()
    home, name = run.folder / "run", "softmax_inversion:with-client-3"
    assert (found["attack"], found["target"]) == (name, "client-1")
    out = tmp_path / "e.npz"
    together = [home / "client-3"]
    attack_recorded(home / "client-2", "softmax_inversion", "client-1", out, together=together)
    with np.load(out) as one, np.load(home / f"client-2/estimates/client-1.{name}.train.npz") as other:
        assert one.keys() == other.keys()
        for key in one:
            np.testing.assert_array_equal(one[key], other[key])
    assert score.score_estimate(out, home / "client-1/config.toml")["matched_mse"] == found["mse"] < 1e-16
    assert "client-2 with client-3 reconstructs client-1" in run.verdict
    assert "client-2 with client-3 reconstructs client-1" in run.report.read_text(encoding="utf-8")
    assert attacker(vl.read_run(run.folder), name) == "client-2 with client-3"


def test_of_two_clients_one_alone_attacks_the_other(vflens: Run, tmp_path: Path) -> None:
    """In the clear: two do not mask. The server sees the same update, and finds the same row."""
    two: dict[str, Any] = {
        **CLIENTS,
        "parties": {"clients": 2},
        "horizontal": {"rounds": 2, "local_steps": 1},
        "attacks": [{"name": "softmax_inversion"}, {"name": "softmax_inversion", "at": "client-2"}],
    }
    run = vl.run(two, out=tmp_path)
    values = {}
    for party in ("server", "client-2"):
        file = run.folder / f"run/{party}/estimates/client-1.softmax_inversion.train.npz"
        with np.load(file) as estimate:
            values[party] = estimate["values"]
    np.testing.assert_allclose(values["client-2"], values["server"], rtol=0, atol=1e-9)
    file = tmp_path / "two.toml"
    file.write_text(toml_text(two), encoding="utf-8")
    words = vflens("check", file)
    assert words.code == 0, words.err
    assert "alone: softmax_inversion" in words.out


def test_check_names_clients_who_collude(vflens: Run, tmp_path: Path) -> None:
    file = tmp_path / "sums.toml"
    file.write_text(toml_text({**CLIENTS, "attacks": PLACED}), encoding="utf-8")
    words = vflens("check", file)
    assert words.code == 0, words.err
    assert "with client-3: softmax_inversion" in words.out
    for name, grants in (("loss_threshold", "candidates"), ("wmi", "embeddings")):
        settings = {**CLIENTS, "attacks": [{**PLACED[0], "name": name}]}
        file.write_text(toml_text(settings), encoding="utf-8")
        assert f"clients grant {grants}" in vflens("check", file).err
    file.write_text(toml_text({**CLIENTS, "attacks": [{**PLACED[0], "name": "imprint"}]}), encoding="utf-8")
    assert "attack 'imprint:with-client-3' at client 'client-2' sends what no" in vflens("check", file).err


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"at": "nobody"}, "party 'nobody' is none of"),
        ({"colluders": ["client-9"]}, "party 'client-9' is none of"),
        ({"colluders": ["client-2"]}, "at 'client-2' with colluders client-2: name other parties, each once"),
        ({"colluders": ["client-3"] * 2}, "with colluders client-3, client-3: name other parties, each once"),
        ({"colluders": ["client-1", "client-3"]}, "client-1, client-3: nobody is left to attack"),
        ({"colluders": []}, "at 'client-2' without the server: of 2 other clients it knows the sum"),
        ({"colluders": ["client-3", "server"]}, "with the server it sits there, set at = 'server'"),
    ],
)
def test_who_cannot_attack_without_the_server_is_refused(changes: Any, words: str) -> None:
    placed = {**PLACED[0], **changes}
    with pytest.raises(vl.errors.ConfigError, match=words):
        vl.HorizontalExperiment(**{**CLIENTS, "attacks": [placed]})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"horizontal": {"rounds": 2, "participants": 2}}, "clients do not know who trained in a round"),
        ({"transcript": {"every": 2}}, r"transcript\.every = 2 drops models"),
        ({"parties": {"clients": 1}, "attacks": [{"name": "wmi", "at": "client-1"}]}, "nobody is left"),
    ],
)
def test_a_run_that_gives_clients_no_update_is_refused(settings: Any, words: str) -> None:
    with pytest.raises(vl.errors.ConfigError, match=words):
        vl.HorizontalExperiment(**{**CLIENTS, "attacks": PLACED, **settings})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"colluders": ["c"]}, "party 'c' is none of"),
        ({"colluders": ["active"]}, "attack 'clear_columns' at 'active' with colluders active: name other"),
        ({"colluders": ["b", "b"]}, "with colluders b, b: name other parties, each once"),
        ({"colluders": ["a", "b"]}, "with colluders a, b: nobody is left to attack"),
        ({"name": "gradient_sign", "at": "a", "colluders": ["active"]}, "nobody is left to attack"),
    ],
)
def test_who_cannot_collude_is_refused(changes: Any, words: str) -> None:
    with pytest.raises(vl.errors.ConfigError, match=words):
        vl.Experiment(**{**VERTICAL, "attacks": [{**TOGETHER, **changes}]})


def test_without_a_lab_nobody_holds_all_folders(tmp_path: Path) -> None:
    with pytest.raises(
        vl.errors.ConfigError, match="attack 'clear_columns:with-coordinator' of 'active' runs on folders"
    ):
        vl.run({**VERTICAL, "lab": False, "attacks": [TOGETHER]}, out=tmp_path)


def test_check_names_them_and_counts_their_grants(vflens: Run, tmp_path: Path) -> None:
    granted = [{"what": "auxiliary", "to": "coordinator", "rows": 12}]
    file = tmp_path / "together.toml"
    file.write_text(toml_text({**VERTICAL, "attacks": [TOGETHER], "disclose": granted}), encoding="utf-8")
    words = vflens("check", file)
    assert words.code == 0, words.err
    assert "with coordinator: clear_columns" in words.out
    file.write_text(toml_text({**VERTICAL, "attacks": [TOGETHER], "disclose": []}), encoding="utf-8")
    assert "attack 'clear_columns' at 'active' would never run" in vflens("check", file).err
