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


@pytest.mark.usefixtures("few_defences")
def test_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(module, "candidates", lambda: iter([("withhold_parameters", {}, WithholdParameters)]))
    out, csv = tmp_path / "audit.html", EXAMPLES / "bank_passive.csv"
    given = ["--columns", "age, income,credit_score", "--classes", "2", "--models", "2", "--out", str(out)]
    assert _vflens(monkeypatch, csv, *given) == 0
    text = capsys.readouterr().out
    assert text.startswith("Whoever reads training finds")
    first, table = text.index("While training is in the clear"), text.index("┃ column")
    assert first < table
    for word in ("The strongest attack here", "Worst case of", "is left out", "unclipped", "lmmse: "):
        assert word not in text
    assert text.rstrip().endswith(f"report: {out} (--details prints what is behind it here too)")
    assert _vflens(monkeypatch, csv, *given, "--details") == 0
    detailed = capsys.readouterr().out
    assert detailed.startswith(text[: text.index("report: ")])
    for word in ("The strongest attack here", "Worst case of", "unclipped", "lmmse: ", "counts as found"):
        assert word in detailed
    assert detailed.rstrip().endswith(f"report: {out}")
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
    assert (
        "Not tested, since no attack made for them had what it needs: withhold_parameters."
        in capsys.readouterr().out
    )
    assert _vflens(monkeypatch, csv, "--classes", "1") == 2
    (tmp_path / "file").touch()
    assert _vflens(monkeypatch, csv, *given, "--out", tmp_path / "file" / "audit.html") == 12
    assert "choose another folder" in capsys.readouterr().err
    assert _vflens(monkeypatch, "whine") == 2
    assert "error: 'whine' is no file" in capsys.readouterr().err


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 8, 9, 10, 11])
@pytest.mark.parametrize("known", [(), ("--known", "0")])
def test_few_rows_end_with_a_verdict_or_are_refused_in_words(
    rows: int,
    known: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(module, "candidates", lambda: iter([("withhold_parameters", {}, WithholdParameters)]))
    file, out = tmp_path / "few.csv", tmp_path / "audit.html"
    file.write_text("id,a,b\n" + "".join(f"p{i},{i * i % 7},{i * 3 % 11}\n" for i in range(rows)))
    code = _vflens(monkeypatch, file, "--classes", "2", "--models", "1", *known, "--out", out)
    if rows < 10 or not known:
        assert code == 3
        mended = f"state known = {rows // 2} in [audit] of a description" if rows >= 10 else "add rows"
        more = f"{'' if known else ', and 2 more than known = 50'}: {mended}"
        needed = f"an audit needs at least 10{more}"
        assert capsys.readouterr().err.rstrip().endswith(needed)
    else:
        assert code == 0
        assert "oin " in capsys.readouterr().out
        assert out.exists()
