"""The document against the run folder, computed by hand; its properties; its sentences from made-up data."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import tomli_w
from commandline import Refused, Run, refused, strict, vflens
from nonempty import nonempty
from processes import experiment_file

from vflens.experiments.evidence.declared import Declaration
from vflens.experiments.evidence.dpia import Dpia, assess
from vflens.experiments.evidence.measured import statistic, what
from vflens.experiments.evidence.words import residual
from vflens.experiments.outcome.finding import Finding, Quantity
from vflens.experiments.run.loading import load_any
from vflens.experiments.run.run import run
from vflens.experiments.sweeps.pool import write_rows

_FIXTURES = (refused, vflens)  # used by name
SETTINGS: dict[str, Any] = {
    "data": {"name": "synthetic", "rows": 400, "features": 8, "classes": 3, "informative": 4},
    "predict_share": 0.5,
    "attacks": [{"name": "half_star"}, {"name": "lmmse"}],
    "disclose": [
        {"what": "parameters", "to": "active"},
        {"what": "auxiliary", "to": "active", "rows": 30},
    ],
    "scenarios": [
        {"name": "open"},
        {"name": "rounded", "defenses": [{"name": "round_scores", "digits": 1, "at": "coordinator"}]},
    ],
    "scoring": {"tolerance": {"x5": 0.4}},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of two scenarios."""
    home = tmp_path_factory.mktemp("dpia")
    return run(load_any(experiment_file(home, **SETTINGS)), in_process=True).folder


@pytest.fixture(scope="module")
def made(folder: Path) -> Dpia:
    """The document on it."""
    return assess([folder], Declaration(people=5000))


def _row(made: Dpia, *of: str) -> Finding:
    """The findings of one place, one thing and one statistic."""
    (found,) = (m for m in made.measured if (m.where, what(m), statistic(m)) == of)
    return found


def _truth_and_estimate(home: Path, attack: str, column: int) -> tuple[Any, Any, float]:
    """The column's true values at the attacked rows and the estimate, in its own unit; the training mean."""
    table = pq.read_table(home / "passive/data.parquet")
    order = np.load(home / "passive/order.npz")
    name = next(k for k in order.files if order[k].ndim == 1 and order[k].dtype.kind in "iu")
    estimate, rows = (
        np.load(home / f"active/estimates/passive.{attack}.npz"),
        np.load(home / "passive/rows.npz"),
    )
    own = table[f"x{column + 4}"].to_numpy()[order[name]]
    training = own[rows["train"]]
    low, unit = training.min(), np.ptp(training)
    scaled = np.clip((own - low) / unit, 0, 1)[estimate["rows"]]
    return scaled * unit, np.clip(estimate["values"][:, column], 0, 1) * unit, float(np.mean(training - low))


def _wilson_by_roots(share: float, n: int) -> tuple[float, float]:
    """The two shares p with |share − p| = z √(p(1 − p)/n)."""
    z2 = 1.959963984540054**2 / n
    low, high = sorted(np.roots([1 + z2, -(2 * share + z2), share**2]).real)
    return float(low), float(high)


def test_the_worst_case_is_the_share_that_the_folder_gives(folder: Path, made: Dpia) -> None:
    row = _row(made, "with no defence", "x5 within 0.40", "worst case")
    true, found, _ = _truth_and_estimate(folder / "open", row.attack, 1)
    share = float((np.abs(true - found) <= 0.4).mean())
    assert row.rows == len(true) == 200
    assert row.value == pytest.approx(share)
    assert (row.low, row.high) == pytest.approx(_wilson_by_roots(share, 200))
    tried = max(float((np.abs(true - c) <= 0.4).mean()) for c in np.linspace(true.min(), true.max(), 2001))
    assert tried - 0.1 <= row.guessed <= tried + 1e-9  # constants of other rows
    assert row.adversary == "the active party"


@pytest.mark.parametrize(
    ("words", "name"), [("whole rows", "rows_found"), ("whole rows that fit nobody else", "rows_unique")]
)
def test_rows_singled_out_stand_beside_the_same_of_a_guess(
    folder: Path, made: Dpia, words: str, name: str
) -> None:
    """A constant finds a crowd of rows whole, and singles out one of them at most."""
    found = _row(made, "with no defence", words, "worst case")
    metrics = pq.read_table(folder / "open/passive/metrics.parquet").to_pylist()
    shares = {r["attack"]: r["value"] for r in metrics if r["metric"] == name}
    constant = [r["value"] for r in metrics if r["metric"] == f"blind_{name}"][-1]  # at the last milestone
    assert found.value == shares[found.attack]
    assert found.guessed == max(constant, shares["imputation"])
    assert found.quantity is Quantity.WHOLE or constant <= 1 / 200


def test_the_average_is_the_root_mean_square_in_the_column_s_unit(folder: Path, made: Dpia) -> None:
    row = _row(made, "with no defence", "x5", "average")
    true, found, mean = _truth_and_estimate(folder / "open", row.attack, 1)
    squares = (true - found) ** 2
    half = 1.96 * squares.std(ddof=1) / np.sqrt(len(squares))
    ends = np.sqrt([max(squares.mean() - half, 0.0), squares.mean() + half])
    assert row.value == pytest.approx(np.sqrt(squares.mean()))
    assert [row.low, row.high] == pytest.approx(ends.tolist())
    of_mean = float(np.sqrt(((true - mean) ** 2).mean()))
    assert of_mean / 2 < row.guessed <= of_mean + 1e-9  # imputation can be better than the mean


def test_each_subject_has_the_attack_that_takes_most(folder: Path, made: Dpia) -> None:
    row = _row(made, "with no defence", "x5 within 0.40", "worst case")
    shares = {}
    for attack in ("half_star", "lmmse"):
        true, found, _ = _truth_and_estimate(folder / "open", attack, 1)
        shares[attack] = float((np.abs(true - found) <= 0.4).mean())
    assert row.value == pytest.approx(max(shares.values()))


def test_a_mitigation_stands_beside_the_accuracy_without_it(folder: Path, made: Dpia) -> None:
    (tried,) = made.tried
    accuracy = {
        name: {
            r["metric"]: r["value"]
            for r in pq.read_table(folder / name / "active/metrics.parquet").to_pylist()
        }["accuracy"]
        for name in ("open", "rounded")
    }
    (figure,) = tried.worth.values()
    assert (figure.value, figure.without) == (accuracy["rounded"], accuracy["open"])
    assert figure[1:3] == pytest.approx(_wilson_by_roots(accuracy["rounded"], 200))
    assert tried.worst is not None
    assert tried.worst.where == "with round_scores (digits 1)"


def _figures(found: Any) -> Iterator[dict[str, Any]]:
    """Every figure in a document; a float outside one is none."""
    if isinstance(found, dict) and "value" in found:
        yield found
        return
    assert not isinstance(found, float), found
    for inner in found.values() if isinstance(found, dict) else found if isinstance(found, list) else ():
        yield from _figures(inner)


def _check(document: dict[str, Any], least: int) -> None:
    figures = [*_figures(document["measured"]), *_figures(document["mitigations"])]
    assert len(figures) >= least
    for f in nonempty(figures):
        assert f["low"] <= f["value"] <= f["high"]
        assert isinstance(f["baseline"], float)
        assert f["unit"]
    for row in nonempty([*document["measured"], *document["mitigations"]]):
        assert re.match(r"(run|audit|sweep) \S", row["source"])


def test_no_figure_stands_without_its_interval_and_its_baseline(folder: Path, made: Dpia) -> None:
    _check(json.loads(json.dumps(made.json, allow_nan=False)), 20)


def test_recipients_digests_and_times_are_those_of_the_folder(folder: Path, made: Dpia) -> None:
    known = {(d.source, d.file): d.digest for d in made.digests}
    file = folder / "open/passive/metrics.parquet"
    assert known["run tiny/open, passive", "metrics.parquet"] == hashlib.sha256(file.read_bytes()).hexdigest()
    status = json.loads((folder / "open/passive/status.json").read_text(encoding="utf-8"))
    assert known["run tiny/open, passive", "transcript"] == status["heads"]["transcript"]["head"]
    assert ("coordinator", "active", "predict: scores") in {
        (r.sender, r.receiver, r.what) for r in made.recipients
    }
    events = (folder / "open/active/events.jsonl").read_text(encoding="utf-8").splitlines()
    (_, began, ended, _), *_ = (t for t in made.times if t.source == "run tiny/open")
    assert began <= json.loads(events[0])["timestamp"] <= ended


def test_the_table_that_went_in_has_the_digest_of_the_file_that_the_run_read(
    tmp_path: Path, folder: Path, made: Dpia
) -> None:
    """An own file, and one that a dealer wrote; it can have changed since."""
    columns = "".join(f"{i},{i % 7},{i % 5}\n" for i in range(60))
    labels = "".join(f"{i},{i % 3},{i % 2}\n" for i in range(60))
    (tmp_path / "p.csv").write_text(f"id,age,income\n{columns}", encoding="utf-8")
    (tmp_path / "a.csv").write_text(f"id,balance,bought\n{labels}", encoding="utf-8")
    files = {"active": {"file": "a.csv", "label_column": "bought"}, "passive": {"file": "p.csv"}}
    shared = {"name": "own", "out": str(tmp_path / "runs"), "training": {"epochs": 2}, "predict_share": 0.5}
    experiment = tmp_path / "own.toml"
    experiment.write_text(tomli_w.dumps({**shared, "files": files}), encoding="utf-8")
    read = hashlib.sha256((tmp_path / "p.csv").read_bytes()).hexdigest()
    home = run(load_any(experiment), in_process=True).folder
    (tmp_path / "p.csv").write_text("changed", encoding="utf-8")
    known = {(d.source, d.file): d for d in assess([home], Declaration()).digests}
    (own_file,) = (d for (_, file), d in known.items() if file == "p.csv")
    assert own_file.source.endswith(", passive")
    assert (own_file.kind, own_file.digest) == ("SHA-256 as the run read it", read)
    dealt = {
        d.digest for d in made.digests if (d.source, d.file) == ("run tiny/open, passive", "data.parquet")
    }
    assert len(dealt) == 1  # as it was read, and as it lies there


def test_what_was_not_tested_is_said(made: Dpia) -> None:
    words = " ".join(made.untested)
    assert "Trained in the clear, and no attack of this run reads that" in words
    assert "No attack on labels was scored." in words
    assert "No attack on membership was scored" in words
    idle = next(s for s in made.untested if "Installed attacks that did not run: " in s)
    assert "clear_columns" in idle
    assert not re.search(r"\blmmse\b", idle)


# --- sentences from made-up records


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("pepole = 3", "did you mean people?"),
        ("people = 0", "people"),
        ("people = true", "people"),
        ('people = "3"', "people"),
        ("prior = true", "prior"),
        ('purpose = ""', "purpose: it is blank: say it, or leave the field out"),
        ('assessor = " \\t"', "assessor: it is blank"),
        ('safeguards = ["a contract", " "]', "safeguards.1: it is blank"),
        ("safeguards = []", "safeguards"),
        ("prior = 1.5", "prior"),
        ("purpose = ", "is not TOML"),
    ],
)
def test_a_wrong_declaration_is_refused(
    refused: Refused, tmp_path: Path, folder: Path, text: str, words: str
) -> None:
    (tmp_path / "declared.toml").write_text(text, encoding="utf-8")
    sentence = refused(
        2, "dpia", folder, "--declared", tmp_path / "declared.toml", "--out", tmp_path / "d.html"
    )
    assert words in sentence
    assert not (tmp_path / "d.html").exists()


# --- other sources


@pytest.mark.usefixtures("few_defences")
def test_an_audit_is_a_source(vflens: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    table = "id,age,income\n" + "".join(
        f"{i},{a:.2f},{b:.2f}\n" for i, (a, b) in enumerate(rng.random((300, 2)).tolist())
    )
    (tmp_path / "own.csv").write_text(table, encoding="utf-8")
    given = ["audit", tmp_path / "own.csv", "--classes", "2", "--models", "1", "--out", tmp_path / "a.html"]
    (tmp_path / "audit.json").write_text(vflens(*given, "--json").out, encoding="utf-8")
    ended = vflens("dpia", tmp_path / "audit.json", "--json", "--out", tmp_path / "d.html")
    assert ended.code == 0, ended.err
    found = strict(ended.out)
    _check({**found, "mitigations": []}, 8)
    recipients = {m["recipient"] for m in found["measured"]}
    assert recipients == {
        "whoever knows the model and gets its predictions",
        "whoever reads the messages of training",
    }
    assert all(m["words"] for m in nonempty(found["mitigations"]))
    assert "neither was tested" in " ".join(found["untested"])
    whole = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    (tmp_path / "b.json").write_text((tmp_path / "audit.json").read_text(encoding="utf-8"), encoding="utf-8")
    _check_two(assess([tmp_path / "audit.json", tmp_path / "b.json", tmp_path / "audit.json"], Declaration()))
    read = hashlib.sha256((tmp_path / "own.csv").read_bytes()).hexdigest()
    inputs = [d for d in found["digests"] if d["kind"] == "SHA-256 as the audit read it"]
    assert [(d["source"], d["file"], d["digest"]) for d in inputs] == [("audit audit.json", "own.csv", read)]
    (made,) = found["sources"]
    assert made["began"] <= made["ended"] == whole["ended"]
    assert made["version"] == whole["version"] != ""


def _check_two(made: Dpia) -> None:
    """Each figure and each sentence says which of two audits it is of."""
    per_source = Counter(m.source for m in made.measured)
    assert per_source.keys() == {"audit audit.json", "audit b.json"}
    assert len({*per_source.values()}) == 1
    words = [*made.untested, *residual(made.measured), *made.notes]
    assert all(s.startswith(("Audit audit.json", "Audit b.json")) for s in words)
    assert len(words) == len({*words})


def test_a_sweep_is_a_source(vflens: Run, tmp_path: Path) -> None:
    noise = {"at": "coordinator", "name": "gaussian_scores", "vary": "sigma", "values": [3.0]}
    plain = {k: v for k, v in SETTINGS.items() if k != "scenarios"}
    file = experiment_file(tmp_path, **plain, sweep={"seeds": 2, "defenses": [noise]})
    vflens("sweep", file, "--out", tmp_path / "out")
    ended = vflens("dpia", tmp_path / "out", "--json", "--out", tmp_path / "d.html")
    assert ended.code == 0, ended.err
    found = strict(ended.out)
    _check(found, 10)
    words = "Sweep out: no attack on training rows was scored. What training gives away was not tested."
    assert words in found["untested"]
    assert "Sweep out keeps no log of messages" in (tmp_path / "d.md").read_text(encoding="utf-8")
    assert any(m["where"].startswith("with no defence, seed ") for m in found["measured"])
    (tried,) = found["mitigations"]
    rows = pq.read_table(tmp_path / "out/sweep.parquet").to_pylist()
    by_seed = {r["seed"]: r["accuracy"] for r in rows if r["defense"] == "gaussian_scores"}
    assert tried["accuracy"]["value"] == pytest.approx(np.mean([*by_seed.values()]))
    half = 12.7062 * np.std([*by_seed.values()], ddof=1) / np.sqrt(2)  # Student's t of one degree of freedom
    assert tried["accuracy"]["high"] - tried["accuracy"]["value"] == pytest.approx(half, rel=1e-4)


def test_a_defence_under_which_no_attack_could_run_is_not_said_to_hide_anything(
    vflens: Run, tmp_path: Path
) -> None:
    """Both attacks need the parameters, which one defence withholds; the other cannot act where it is."""
    defences = [{"at": "passive", "name": "withhold_parameters"}]
    idle = {"at": "passive", "name": "round_scores", "vary": "digits", "values": [1]}
    plain = {k: v for k, v in SETTINGS.items() if k != "scenarios"}
    file = experiment_file(tmp_path, **plain, sweep={"seeds": 2, "defenses": [*defences, idle]})
    vflens("sweep", file, "--out", tmp_path / "out")
    made = assess([tmp_path / "out"], Declaration())
    words = {m.where: (m.worst, m.unfound, bool(m.worth)) for m in made.tried}
    nothing = "not known: no attack could run"
    assert words == {
        "with withhold_parameters": (None, nothing, True),
        "with round_scores 1": (None, nothing, False),
    }
    cells = next(s for s in made.sections() if s.title.startswith("Mitigations")).tables[0].rows
    assert {row[2] for row in cells} == {nothing}
    for attack in ("half_star", "lmmse"):
        facts = f"Sweep out, with withhold_parameters, seeds 3, 4: {attack} was skipped: parameters of party"
        assert [s for s in made.untested if s.startswith(facts)]
    (why,) = (s for s in made.untested if s.startswith("Sweep out, with round_scores 1, seeds 3, 4: "))
    assert "the federation was refused: " in why


def test_an_older_sweep_does_not_say_that_no_attack_was_skipped(tmp_path: Path) -> None:
    row = {"defense": "undefended", "strength": 0.0, "seed": 0, "attack": "lmmse", "accuracy": 0.5}
    place = {"target": "passive", "scored_set": "predict", "rows": 9, "mse": 0.1, "blind": 0.2}
    for name, kept in (("old", None), ("new", [])):
        (tmp_path / name).mkdir()
        write_rows(tmp_path / name / "sweep.parquet", [{**row, **place}], kept)
    old, new = (assess([tmp_path / name], Declaration()).untested for name in ("old", "new"))
    assert [s for s in old if "does not record which attacks were skipped" in s]
    assert not [s for s in new if "skipped" in s]


def test_it_writes_over_no_source(refused: Refused, tmp_path: Path) -> None:
    source = tmp_path / "audit.json"
    source.write_text("{}", encoding="utf-8")
    for out in ("audit.json", "audit.html", "audit.md"):
        words = refused(2, "dpia", source, "--out", tmp_path / out)
        assert words.endswith("would write over audit.json: choose another name")
    assert source.read_text(encoding="utf-8") == "{}"
