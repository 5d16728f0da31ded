"""``vflens audit`` as a user meets it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

import vflens.cli.main
from vflens.defenses.withhold_parameters import WithholdParameters
from vflens.experiments.audit import defenses as module

EXAMPLES = Path(__file__).parents[4] / "examples"


def _vflens(monkeypatch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    monkeypatch.setattr(sys, "argv", ["vflens", "audit", *map(str, arguments)])
    try:
        vflens.cli.main.command_line()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 0


def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "candidates", lambda: iter([("withhold_parameters", {}, WithholdParameters)]))
    out, csv = tmp_path / "audit.html", EXAMPLES / "bank_passive.csv"
    given = ["--columns", "age, income,credit_score", "--classes", "2", "--models", "2", "--out", str(out)]
    assert _vflens(monkeypatch, csv, *given) == 0
    text = capsys.readouterr().out
    assert "The strongest attack here" in text
    assert "While training is in the clear no installed defence" in text
    assert out.stat().st_size > 1_000_000
    assert _vflens(monkeypatch, csv, *given, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["columns"] == ["age", "income", "credit_score"]
    assert len(printed["verdict"]) == 6
    assert printed["training"] == "clear"
    assert printed["strongest"]["phase"] == "train"
    assert _vflens(monkeypatch, csv, *given, "--training", "secure") == 0
    assert "Not tested" not in capsys.readouterr().out
    assert _vflens(monkeypatch, csv, *given, "--training", "secure", "--known", "0") == 0
    assert "Not tested, since no attack made for them ran: withhold_parameters." in capsys.readouterr().out
    assert _vflens(monkeypatch, csv, "--classes", "1") == 2
    (tmp_path / "file").touch()
    assert _vflens(monkeypatch, csv, *given, "--out", tmp_path / "file" / "audit.html") == 12
    assert "choose another folder" in capsys.readouterr().err
    assert _vflens(monkeypatch, "whine") == 2
    assert "error: 'whine' is no file" in capsys.readouterr().err
