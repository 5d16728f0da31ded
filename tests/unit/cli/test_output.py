"""What commands print: nothing that another wrote commands the terminal."""

from __future__ import annotations

import json

import pytest
from rich.table import Table

from vflens.cli.output import emit, note, plain
from vflens.errors import printable

HOSTILE = "\x1b[2J\x1b]0;owned\x07\x9b32mwell\r\u202e\ud800"
WRITTEN = r"\x1b[2J\x1b]0;owned\x07\x9b32mwell\r\u202e\ud800"


def test_text_keeps_its_lines_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    emit(False, {}, lambda: f"a\n\t{HOSTILE} − é\n")
    note(f"{HOSTILE}\n")
    printed = capsys.readouterr()
    assert printed.out == f"a\n\t{WRITTEN} − é\n\n"
    assert printed.err == f"{WRITTEN}\n\n"


def test_json_means_the_same_and_is_printable(capsys: pytest.CaptureFixture[str]) -> None:
    emit(True, {"name": f"é{HOSTILE}\U000e0001"}, str)
    out = capsys.readouterr().out.removesuffix("\n")
    assert out.isprintable()
    assert "é" in out
    assert json.loads(out) == {"name": f"é{HOSTILE}\U000e0001"}


def test_a_cell_is_no_markup() -> None:
    table = Table("[bold]head", caption=":bomb:")
    table.add_row("[/x][red]cell")
    shown = plain(table)
    assert "[/x][red]cell" in shown
    assert "[bold]head" in shown
    assert ":bomb:" in shown


def test_what_is_printable_stays_as_it_is() -> None:
    assert printable("σ² ≤ ½ · naïve — 日本") == "σ² ≤ ½ · naïve — 日本"
    assert printable("a\nb", keep="\n") == "a\nb" != printable("a\nb") == r"a\nb"
