"""What the listing of the examples says of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from vflens.experiments.starting import copies


def test_an_example_is_told_by_the_first_sentence_of_its_comment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copies, "EXAMPLES", tmp_path)
    (tmp_path / "b.toml").write_text('# Two lines of\n# one sentence. Another.\nname = "b"\n# no', "utf-8")
    (tmp_path / "a.toml").write_text("name = 1\n# not at the top", "utf-8")
    assert list(copies.experiments().items()) == [("a.toml", ""), ("b.toml", "Two lines of one sentence.")]
