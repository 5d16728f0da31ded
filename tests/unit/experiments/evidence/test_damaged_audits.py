"""Audits whose figures cannot be: refused by their field, before anything is decided."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from vflens.errors import DataError
from vflens.experiments.evidence.declared import Declaration
from vflens.experiments.evidence.dpia import assess
from vflens.experiments.evidence.tables import compare_audits

CASE = {
    **{"target": "bank.csv", "attack": "lmmse", "scored_set": "predict", "rows": 800},
    **{"rows_found": 0.3, "unique": 0.2, "control_rows": 0.1, "control_unique": 0.0},
}
AUDIT: dict[str, Any] = {
    **{"subject": "bank.csv", "columns": ["income"], "tolerance": {"income": 5.0}, "units": [100.0]},
    **{"attacked_rows": 800, "training": "secure", "worst_cases": [CASE]},
    "wanted": {"most_leak": 0.2, "least_error": None, "most_loss": 0.01},
    "attacks": [
        {
            **{"attack": "lmmse", "kind": "trained", "phase": "predict", "released": "", "rows": 800},
            **{"mse": 0.02, "stderr": 0.001, "columns": [0.02], "column_stderr": [0.001]},
            **{"column_blind": [0.06], "found": [0.5], "blind_found": [0.3], "imputed_found": [None]},
        }
    ],
}


TRIED = {
    **{"defense": "label_only", "settings": {}, "at": "the coordinator", "mse": 0.05, "leak": 0.1},
    **{"price": "no use left", "reason": ""},
}


@pytest.mark.parametrize(
    ("changed", "affordable", "text"),
    [
        ({}, True, "keeps to a leak of at most 20 % of a column; no use left"),
        (
            {},
            False,
            "keeps to a leak of at most 20 % of a column, but no cost of at most 0.01 is shown; no use",
        ),
        ({"leak": 0.3}, False, "does not keep to a leak of at most 20 % of a column; no use left"),
        ({"mse": None, "leak": None, "reason": "torch is missing"}, False, "torch is missing"),
    ],
)
def test_a_mitigation_says_what_was_asked_for(
    tmp_path: Path, changed: dict[str, Any], affordable: bool, text: str
) -> None:
    fitting = [{"defense": "label_only", "settings": {}}] if affordable else []
    document = {**AUDIT, "defenses": [{**TRIED, **changed}], "fitting": fitting}
    (tmp_path / "a.json").write_text(json.dumps(document), encoding="utf-8")
    (tried,) = assess([tmp_path / "a.json"], Declaration()).tried
    assert tried.words.startswith(text)


@pytest.mark.parametrize(
    ("measure", "plain", "lost", "cells"),
    [
        (("accuracy", "accuracy"), 0.8, [0.1, 0.1, 0.13, 0.07], ("70.0 %", "66.1 % … 73.9 %", "80.0 %")),
        (("auc", "AUC"), 0.9, [0.0, 0.4], ("0.70", "0 … 1.0", "0.90")),
        (("r2", "R²"), 0.9, [0.0, 0.4], ("0.70", "-1.8 … 1.0", "0.90")),
        (("r2", "R²"), None, [0.0, 0.4], None),
        (("r2", "R²"), 0.9, [0.4], None),
        (("r2", "AUC"), 0.9, [0.0, 0.4], None),
    ],
)
def test_a_mitigation_of_an_audit_has_its_figures_or_says_that_there_are_none(
    tmp_path: Path, measure: tuple[str, str], plain: float | None, lost: list[float], cells: Any
) -> None:
    """Student's t is 3.182 of 3 degrees of freedom, 12.706 of 1; the losses have s = .0245 and .283."""
    name, called = measure
    tried = {**TRIED, "column": "income", "cost": {"measure": called, "lost": lost}}
    document = {**AUDIT, "utility": {name: {"mean": plain, "half": 0.1}}, "defenses": [tried]}
    (tmp_path / "a.json").write_text(json.dumps(document), encoding="utf-8")
    made = assess([tmp_path / "a.json"], Declaration())
    (table,) = (s.tables[0] for s in made.sections() if s.title.startswith("Mitigations"))
    (row,) = table.rows
    assert row[2] == "income (how much: the audit's record has no share of rows with its interval)"
    none = "the audit's record has no figure of what the model is worth"
    if cells is None:
        assert row[7].endswith(none)
    else:
        assert (*row[6:8], row[8].partition(" (")[0], row[9]) == (called, *cells)
        assert "the interval is that of what is lost, model by model)" in row[8]
        assert made.json["mitigations"][0][name]["baseline"] == plain
    _refused(
        tmp_path, {"defenses": [{**tried, "cost": {"measure": "R²", "lost": ["much"]}}]}, "defenses.0.cost"
    )


def test_a_mitigation_of_an_error_too(tmp_path: Path) -> None:
    wanted = {"most_leak": None, "least_error": 0.04, "most_loss": 0.01}
    tried = [{**TRIED, "mse": mse} for mse in (0.05, 0.03)]
    document = {**AUDIT, "wanted": wanted, "defenses": tried}
    (tmp_path / "a.json").write_text(json.dumps(document), encoding="utf-8")
    found = [t.words.partition(" to ")[0] for t in assess([tmp_path / "a.json"], Declaration()).tried]
    assert found == ["keeps", "does not keep"]
    _refused(tmp_path, {"defenses": [{**TRIED, "leak": None}]}, "defenses.0: mse, leak: without a reason")
    _refused(tmp_path, {"wanted": {**wanted, "most_leak": 0.1}}, "wanted: most_leak, least_error: one of")
    _refused(tmp_path, {"defenses": [TRIED], "wanted": None}, "wanted: it is missing")


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        ({"rows": 0}, "attacks.0.rows: "),
        ({"rows": -3}, "attacks.0.rows: "),
        ({"rows": "many"}, "attacks.0.rows: "),
        ({"rows": True}, "attacks.0.rows: "),
        ({"mse": float("nan")}, "attacks.0.mse: "),
        ({"stderr": -0.1}, "attacks.0.stderr: "),
        ({"found": [1.5]}, "attacks.0.found.0: "),
        ({"blind_found": [-0.1]}, "attacks.0.blind_found.0: "),
        ({"found": []}, "attacks.0.found: it has 0 figures, of 1 column"),
        ({"phase": "later"}, "attacks.0.phase: "),
        ({"attack": ""}, "attacks.0.attack: "),
    ],
)
def test_a_damaged_attack_of_an_audit_is_refused(tmp_path: Path, damage: dict[str, Any], text: str) -> None:
    _refused(tmp_path, {"attacks": [{**AUDIT["attacks"][0], **damage}]}, text)


@pytest.mark.parametrize(
    ("damage", "text"),
    [
        ({"attacks": []}, "attacks: "),
        ({"columns": []}, "columns: "),
        ({"units": [-1.0]}, "units.0: "),
        ({"tolerance": {"income": -5.0}}, "tolerance.income: "),
        ({"tolerance": {"incme": 5.0}}, "tolerance: 'incme' is none of the columns"),
        ({"attacked_rows": -1}, "attacked_rows: "),
        ({"training": "none"}, "training: "),
        ({"worst_cases": [{**CASE, "rows": -1}]}, "worst_cases.0.rows: "),
        ({"worst_cases": [{**CASE, "unique": 0.9}]}, "worst_cases.0: unique: it is at most rows_found"),
        ({"files": [{"file": "a.csv", "sha256": "no"}]}, "files.0.sha256: 64 hexadecimal digits are due"),
    ],
)
def test_a_damaged_audit_is_refused(tmp_path: Path, damage: dict[str, Any], text: str) -> None:
    _refused(tmp_path, damage, text)


def _refused(home: Path, damage: dict[str, Any], text: str) -> None:
    """The whole audit is taken; the damaged one is refused with field and remedy, and nothing is compared."""
    (home / "whole.json").write_text(json.dumps(AUDIT), encoding="utf-8")
    assert assess([home / "whole.json"], Declaration()).measured
    damaged = home / "damaged.json"
    damaged.write_text(json.dumps({**AUDIT, **damage}), encoding="utf-8")
    with pytest.raises(DataError, match="is no run folder, sweep or audit") as refusal:
        assess([damaged], Declaration())
    assert f"({text}" in str(refusal.value)
    assert str(refusal.value).endswith("write one with `vflens audit … --json > damaged.json`")
    with pytest.raises(DataError, match="is no audit"):
        compare_audits(home / "whole.json", damaged)
