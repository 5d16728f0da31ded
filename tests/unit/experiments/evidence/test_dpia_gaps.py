"""What a DPIA says was not tested, and its mitigations: from made-up folders and rows."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from audits import read
from nonempty import nonempty
from runfolder import crossing, metric, write_party

from vflens.experiments.audit.record import AuditRecord
from vflens.experiments.evidence.declared import Declaration
from vflens.experiments.evidence.dpia import Dpia, assess
from vflens.experiments.evidence.measured import measured, what
from vflens.experiments.evidence.mitigations import NO_TWIN, of_runs_tried, of_sweep_tried
from vflens.experiments.evidence.sources import of_audit
from vflens.experiments.evidence.untested import by_audit, by_runs, by_sweep, without_imputation
from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import Finding, Findings, Quantity
from vflens.experiments.results.findings import of_runs
from vflens.experiments.results.record import RecordedRun, read_runs
from vflens.experiments.results.titles import places
from vflens.registry import ATTACKS
from vflens.storage.metrics import Name

TABLE = [{"name": "income", "low": 0.0, "high": 100.0}]
PARTIES = [
    {"name": "coordinator", "role": "coordinator", "n_classes": 0, "columns": []},
    {"name": "active", "role": "active", "n_classes": 2, "columns": []},
    {"name": "passive", "role": "passive", "n_classes": 0, "columns": TABLE},
    {"name": "second", "role": "passive", "n_classes": 0, "columns": TABLE},
]
PLACE = {"adversary": "active", "target": "passive", "scored_set": "predict", "rows": 400}
SCORED = [
    metric("blind_mse", 0.06, attack="column_means", **PLACE),
    metric("mse", 0.01, attack="lmmse", **PLACE),
    metric("mse_stderr", 0.001, attack="lmmse", **PLACE),
    metric("column_found", 0.3, attack="lmmse", column="income", **PLACE),
    metric("column_blind_found", 0.3, column="income", **PLACE),
    metric("column_tolerance", 5.0, column="income", **PLACE),
]
GOT = {
    "coordinator": [crossing("passive", "train", "embedding"), crossing("active", "train", "embedding")],
    "active": [crossing("coordinator", "predict", "scores"), crossing("second", "disclose", "moments")],
}


def _run(home: Path, *absent: str, metrics: Any = SCORED, **of_passive: Any) -> RecordedRun:
    """A run of which the folders of ``absent`` parties are missing."""
    for p in PARTIES:
        name = str(p["name"])
        own = {"metrics": metrics, **of_passive} if name == "passive" else {}
        if name not in absent:
            facts = {"facts": {"parties": PARTIES}, "config": {"peers": []}, "crossings": GOT.get(name)}
            write_party(home / name, str(p["role"]), **facts, **own)  # type: ignore[arg-type]
    (run,) = read_runs([home])
    return run


def test_a_whole_run_names_the_attacks_that_did_not_run(tmp_path: Path) -> None:
    text = list(by_runs([_run(tmp_path / "bank")]))
    (idle,) = (s for s in text if "Installed attacks" in s)
    assert idle.startswith("Run bank: Installed attacks that did not run: ")
    named = set(idle.rstrip(".").split(": ")[2].split(", "))
    assert named == set(ATTACKS.names()) - {"lmmse"}
    assert not any("were not given" in s or "has not finished" in s for s in text)


@pytest.mark.parametrize(
    ("absent", "status", "why"),
    [
        (("active", "coordinator"), None, "the folders of active, coordinator were not given"),
        ((), {"state": "failed", "reason": "no memory"}, "has not finished (failed: no memory)"),
        ((), {"state": "interrupted", "reason": "stopped"}, "has not finished (interrupted: stopped)"),
    ],
)
def test_of_a_part_of_a_run_nobody_knows_which_attacks_ran(
    tmp_path: Path, absent: tuple[str, ...], status: Any, why: str
) -> None:
    text = list(by_runs([_run(tmp_path / "bank", *absent, status=status)]))
    assert [s for s in text if why in s]
    assert not [s for s in text if "did not run" in s]
    assert [
        s for s in text if s.startswith("Run bank: Installed attacks of which these folders have no figure")
    ]


def test_recipients_without_an_attack_are_named(tmp_path: Path) -> None:
    text = [s for s in by_runs([_run(tmp_path / "bank")]) if "no attack by" in s]
    assert text == [
        "Run bank: no attack by the active party on the passive party second was scored.",
        "Run bank: no attack by the coordinator party was scored. What it can find was not tested.",
    ]


def test_a_blind_guess_is_no_attack_by_a_recipient(tmp_path: Path) -> None:
    metrics = [{**m, "attack": m["attack"].replace("lmmse", "imputation")} for m in SCORED]
    text = list(by_runs([_run(tmp_path / "bank", metrics=metrics)]))
    assert "Run bank: no attack by the active party was scored. What it can find was not tested." in text


def test_naming_the_client_of_a_row_is_an_attack(tmp_path: Path) -> None:
    metrics = [
        metric("source_right", 0.5, attack="source_inference", **{**PLACE, "adversary": "coordinator"})
    ]
    text = list(by_runs([_run(tmp_path / "bank", metrics=metrics)]))
    assert not any("no attack by the coordinator party was scored. What" in s for s in text)
    (idle,) = (s for s in text if "Installed attacks" in s)
    assert "source_inference" not in idle


def test_no_figure_stands_among_what_was_not_tested(tmp_path: Path) -> None:
    """Labels that an attack found have an interval in the table, and none in a sentence."""
    place = {"adversary": "active", "target": "active", "scored_set": "train", "rows": 300}
    labels = [
        metric("label_accuracy", 0.875, attack="gradient_sign", **place),
        metric("label_auc", 0.9, attack="gradient_sign", **place),
        metric("blind_label_accuracy", 0.5, **place),
    ]
    run = _run(tmp_path / "bank", metrics=[*SCORED, *labels])
    assert [r.accuracy for r in run.labels] == [0.875]
    text = " ".join(by_runs([run]))
    assert "gradient_sign read training traffic" in text
    assert "87.5" not in text
    assert "%" not in text


def test_two_runs_each_have_their_own_sentences(tmp_path: Path) -> None:
    one, other = _run(tmp_path / "a"), _run(tmp_path / "b", "active")
    text = list(by_runs([one, other]))
    assert [s for s in text if s.startswith("Run a, run b: No attack on labels was scored.")]
    assert [s for s in text if s.startswith("Run b: the folders of active")]
    assert not [s for s in text if s.startswith("Run a: the folders")]
    assert {m.source for m in nonempty(assess([tmp_path], Declaration()).measured)} == {"run a", "run b"}


def test_one_party_s_folder_knows_no_defences(tmp_path: Path) -> None:
    part = _run(tmp_path / "bank", "coordinator", "active", "second")
    assert places([part]) == ["with unknown defences"]
    assert places([_run(tmp_path / "whole")]) == ["with no defence"]
    (evidence,) = of_runs([part])
    assert evidence.where == "with unknown defences"
    assert places([part, _run(tmp_path / "other", "coordinator")]) == [
        "with unknown defences · bank",
        "with unknown defences · other",
    ]


def test_a_failed_attack_leaves_nothing_settled(tmp_path: Path) -> None:
    found = SCORED[:3]
    held = [{**m, "value": 0.06} if m["metric"] == "mse" else m for m in found]
    broke = metric("failed", 1, attack="mine", detail="it has a fault", **{**PLACE, "rows": 0})
    whole, part = (
        assess([_run(tmp_path / name, metrics=metrics).parties[0].folder.parent], Declaration())
        for name, metrics in {"a": held, "b": [*held, broke]}.items()
    )
    assert {m.state for m in whole.measured} == {State.NOT_FOUND}
    assert {(m.state, m.reason) for m in part.measured} == {
        (State.UNDECIDED, "mine failed and may find more")
    }


def _found(imputation: float | None) -> Finding:
    known: dict[str, Any] = {"subject": "income", "imputation": imputation, "tolerance": 1.0}
    place: dict[str, Any] = {"attack": "lmmse", "target": "passive", "scored_set": "predict"}
    return Finding.of_share(Quantity.WITHIN, 0.3, 400, 0.3, **known, **place)


def test_a_baseline_without_imputation_is_said_to_be_a_constant() -> None:
    evidence = [Findings(where="with no defence", found=(_found(i),)) for i in (None, 0.2)]
    assert list(without_imputation(evidence, "run a")) == [
        "Run a, with no defence: imputation from other columns did not run on columns of passive (predict "
        "rows). Their baseline is the best constant."
    ]
    assert list(without_imputation(evidence[1:], "run a")) == []


# --- audits and sweeps


def _audit(rows: int, phase: str = "predict", **changes: Any) -> AuditRecord:
    attack = {
        **{"attack": "rcc1", "kind": "trained", "phase": phase, "rows": rows, "mse": 0.06, "released": ""},
        **{"stderr": 0.001, "columns": [0.06], "column_blind": [0.06], "column_stderr": [0.001]},
        **{"found": [0.0], "blind_found": [0.0], "imputed_found": [0.0]},
    }
    known = {"subject": "bank.csv", "columns": ["income"], "tolerance": {"income": 5.0}, "units": []}
    return read({**known, "attacks": [attack], "worst_cases": [], "attacked_rows": 800, **changes})


def test_an_attack_that_tried_few_rows_is_why_nobody_knows() -> None:
    for rows, why in ((20, "rcc1 tried 20 rows only"), (800, "")):
        found = measured([of_audit(_audit(rows), "audit a")])
        (of_column,) = (m for m in found if what(m).startswith("income within"))
        assert (of_column.state, of_column.reason) == (State.UNDECIDED if why else State.NOT_FOUND, why)


@pytest.mark.parametrize(
    ("phase", "unread"),
    [
        ("predict", "whoever reads the messages of training"),
        ("train", "whoever knows the model and gets its predictions"),
    ],
)
def test_an_audit_names_the_recipient_that_it_did_not_try(phase: str, unread: str) -> None:
    text = list(by_audit(_audit(800, phase), "audit a.json"))
    (spared,) = (s for s in text if "no attack by" in s)
    assert spared == f"Audit a.json: no attack by {unread} was scored. What it can find was not tested."
    assert all(s.startswith("Audit a.json") for s in text)


@pytest.mark.parametrize(
    ("facts", "labelled"),
    [
        ({"label": None, "real_labels": False}, False),
        ({"label": None, "real_labels": True}, True),
        ({"label": {"name": "amount"}, "real_labels": True}, True),
        ({}, False),
    ],
)
def test_an_audit_with_labels_is_not_said_to_have_none(facts: dict[str, Any], labelled: bool) -> None:
    text = list(by_audit(_audit(800, **facts), "audit a.json"))
    none = "Audit a.json has no labels and no membership: neither was tested."
    some = "Audit a.json has labels, and no attack on them ran: what can be found of them was not tested."
    member = "Audit a.json has no membership: whether a person is in the table was not tested."
    assert [s for s in text if s in (none, some, member)] == ([some, member] if labelled else [none])


@pytest.mark.parametrize(
    ("shares", "most", "text"),
    [
        ({Quantity.WHOLE: (0.0, 0.0), Quantity.WITHIN: (0.2, 0.3)}, "age within 1.0", ""),
        ({Quantity.WHOLE: (0.0004, 0.0)}, None, "nothing: every share is 0.0 %"),
        ({}, None, "not known: no attack on columns has a share found"),
    ],
)
def test_what_is_found_in_no_row_is_not_found_most(
    shares: dict[Quantity, tuple[float, float]], most: str | None, text: str
) -> None:
    rows = [_cell(d, s, 0.8, 1) for d in ("undefended", "noise") for s in (0, 1)]
    place: dict[str, Any] = {"where": "with noise, horizontal.local_epochs = 1, seed 0", "target": "a"}
    place |= {"attack": "lmmse", "scored_set": "predict", "tolerance": 1.0}
    found = [
        Finding.of_share(quantity, share, 99, guess, subject="age", **place)
        for quantity, (share, guess) in shares.items()
    ]
    (tried,) = of_sweep_tried(rows, [], found, "undefended", "sweep s")
    assert (tried.worst and what(tried.worst), tried.unfound) == (most, text)


def _cell(defense: str, seed: int, accuracy: float, rounds: int, strength: float | None = None) -> Any:
    names = {"defense": defense, "strength": strength, "seed": seed, "accuracy": accuracy}
    return {**names, "horizontal.local_epochs": rounds, "attack": "lmmse", "target": "client-1"}


def test_a_sweep_s_defence_stands_beside_the_same_other_settings() -> None:
    """With 1 epoch .9 without a defence, with 5 epochs .7; a defence takes a tenth of both."""
    rows = [
        _cell(defense, seed, plain - lost + seed / 100, epochs, strength)
        for epochs, plain in ((1, 0.9), (5, 0.7))
        for defense, lost, strength in (("undefended", 0.0, None), ("sparsification", 0.1, 0.5))
        for seed in (0, 1)
    ]
    tried = {m.where: m for m in of_sweep_tried(rows, [], [], "undefended", "sweep s")}
    assert {
        where: [(name, round(f.value, 3), round(f.without, 3)) for name, f in m.worth.items()]
        for where, m in tried.items()
    } == {
        "with sparsification 0.5, horizontal.local_epochs = 1": [("accuracy", 0.805, 0.905)],
        "with sparsification 0.5, horizontal.local_epochs = 5": [("accuracy", 0.605, 0.705)],
    }
    assert {m.source for m in tried.values()} == {"sweep s"}
    alone = [r for r in rows if r["defense"] != "undefended"]
    left = [(m.worth, m.words) for m in of_sweep_tried(alone, [], [], "undefended", "sweep s")]
    assert left == [({}, NO_TWIN)] * 2


def test_a_sweep_says_what_it_did_not_try() -> None:
    text = list(by_sweep({"lmmse"}, [Findings(where="with a", defended=True)], "sweep s"))
    assert all(s.startswith("Sweep s") for s in text)
    assert [s for s in text if "no attack on labels was scored" in s]
    assert [s for s in text if "whether a person is in the table was not tested" in s]
    (idle,) = (s for s in text if "installed attacks that did not run" in s)
    assert "rcc1" in idle
    assert ", lmmse," not in idle


def _defended(home: Path, columns: list[Any], defences: list[Any], accuracy: float) -> None:
    parties = [{**p, "columns": columns} if p["name"] == "passive" else p for p in PARTIES[:3]]
    for p in parties:
        own = {"metrics": [metric("accuracy", accuracy, rows=400)]} if p["name"] == "active" else {}
        config = {"defenses": defences} if p["name"] == "coordinator" else {}
        write_party(home / str(p["name"]), str(p["role"]), facts={"parties": parties}, config=config, **own)  # type: ignore[arg-type]


def test_a_defended_run_stands_beside_an_undefended_one_of_its_own_data(tmp_path: Path) -> None:
    """Two experiments in one document: neither is the other's baseline."""
    rounding = [{"name": "round_scores", "digits": 1}]
    _defended(tmp_path / "digits", [{"name": "x"}], [], 0.5)
    _defended(tmp_path / "bank", TABLE, [], 0.9)
    _defended(tmp_path / "bank-rounded", TABLE, rounding, 0.8)
    _defended(tmp_path / "lonely", [{"name": "y"}], rounding, 0.7)
    tried = {m.source: m for m in of_runs_tried(read_runs([tmp_path]), [])}
    (beside,) = tried["run bank-rounded"].worth.values()
    assert (beside.value, beside.without) == (0.8, 0.9)
    assert (tried["run lonely"].worth, tried["run lonely"].words) == ({}, NO_TWIN)


def _predicting(home: Path, defences: list[Any], error: float, stderr: float = 0.5) -> None:
    """A run on 400 prediction rows whose prices have a standard deviation of 20."""
    price = {"name": "price", "low": 0.0, "high": 200.0}
    parties: list[Any] = [{**p, "columns": TABLE if p["name"] == "passive" else []} for p in PARTIES[:3]]
    parties[1] |= {"n_classes": 1, "label": price}
    figures = {"r2": 1 - (error / 20) ** 2, "rmse": error, "rmse_stderr": stderr}
    for p in parties:
        own = {"metrics": [metric(n, v, rows=400) for n, v in figures.items()]} if "label" in p else {}
        config = {"defenses": defences} if p["name"] == "coordinator" else {}
        write_party(home / str(p["name"]), str(p["role"]), facts={"parties": parties}, config=config, **own)  # type: ignore[arg-type]


def test_a_mitigation_of_a_number_is_said_in_r2_and_in_the_label_s_unit(tmp_path: Path) -> None:
    """Its RMSE goes from 10 to 12 of a standard deviation of 20: R² from .75 to .64."""
    _predicting(tmp_path / "plain", [], 10.0)
    _predicting(tmp_path / "noisy", [{"name": "gaussian_embedding"}], 12.0)
    made = assess([tmp_path / "plain", tmp_path / "noisy"], Declaration())
    (tried,) = made.tried
    error, r2 = tried.worth[Name.RMSE], tried.worth[Name.R2]
    assert error[:4] == pytest.approx((12.0, 12 - 0.98, 12 + 0.98, 10.0))
    assert r2[:4] == pytest.approx((0.64, 1 - (12.98 / 20) ** 2, 1 - (11.02 / 20) ** 2, 0.75))
    cells = next(s for s in made.sections() if s.title == "Mitigations tried, and their cost").tables[0].rows
    assert [row[6:] for row in cells] == [
        ("R²", "0.64", "0.58 … 0.70", "0.75"),
        ("RMSE, unit of price", "12", "11 … 13", "10"),
    ]
    assert made.json["mitigations"][0]["accuracy"] is None
    assert made.json["mitigations"][0]["rmse"]["unit"] == "unit of price"


@pytest.mark.parametrize(
    ("name", "values", "least", "most"),
    [("r2", (0.8, 0.2), -math.inf, 1.0), ("accuracy", (0.9, 0.1), 0.0, 1.0), ("rmse", (9.0, 1.0), 0.0, None)],
)
def test_no_interval_over_seeds_leaves_what_its_measure_can_be(
    name: str, values: tuple[float, float], least: float, most: float | None
) -> None:
    """With two seeds Student's interval is 12.7 standard errors wide to each side."""
    mean, half = sum(values) / 2, 12.7062 * abs(values[0] - values[1]) / 2
    rows = [
        {"defense": d, "strength": None, "seed": s, "attack": "ls", "r2": 0.5, "rmse": 1.0, name: value}
        for d in ("undefended", "noise")
        for s, value in enumerate(values)
    ]
    (tried,) = of_sweep_tried(rows, [], [], "undefended", "sweep s")
    figure = {str(measure): f for measure, f in tried.worth.items()}[name]
    assert figure.low == pytest.approx(max(mean - half, least), rel=1e-4)
    assert figure.high == pytest.approx(mean + half if most is None else most, rel=1e-4)
    assert mean - half < 0
    assert mean + half > 1


@pytest.mark.parametrize(
    ("seeds", "text"), [(2, "interval from 2 seeds only"), (4, "interval from 4 seeds only"), (5, "")]
)
def test_few_seeds_behind_an_interval_are_said_beside_it(seeds: int, text: str) -> None:
    rows = [_cell(d, s, 0.8 + s / 100, 1) for d in ("undefended", "noise") for s in range(seeds)]
    (tried,) = of_sweep_tried(rows, [], [], "undefended", "sweep s")
    assert tried.words == text
    made = Dpia(Declaration(), tried=[tried])
    ((*_, ends, _plain),) = (
        next(s for s in made.sections() if s.title.startswith("Mitigations")).tables[0].rows
    )
    assert ends.endswith(f" % ({text})" if text else " %")


def test_a_sweep_of_a_number_has_both_measures_over_seeds() -> None:
    rows: list[dict[str, Any]] = [
        {"defense": d, "strength": s, "seed": seed, "attack": "ls", "r2": r2 + seed / 50, "rmse": e}
        for d, s, r2, e in (("undefended", None, 0.6, 9.0), ("noise", 2.0, 0.4, 11.0))
        for seed in (0, 1)
    ]
    (tried,) = of_sweep_tried(rows, [], [], "undefended", "sweep s")
    half = 12.7062 * 0.01  # Student's t of one degree of freedom, of .40 and .42
    assert tried.worth[Name.R2][:4] == pytest.approx((0.41, 0.41 - half, 0.41 + half, 0.61), rel=1e-4)
    assert tried.worth[Name.RMSE].words() == ("11", "11 … 11", "9.0")
    assert tried.worth[Name.RMSE].unit == "unit of the label"
