"""Figures are written when they have changed."""

from __future__ import annotations

from pathlib import Path

from vflens.storage.metrics import Metrics, Name, metric_rows


def test_figures_are_written_once_until_another_comes(tmp_path: Path) -> None:
    file = tmp_path / "metrics.parquet"
    figures = Metrics(file)
    figures.save()
    assert metric_rows(file) == []
    figures.add(Name.ACCURACY, 0.5)
    figures.save()
    written = file.stat().st_ino
    figures.save()
    assert file.stat().st_ino == written
    figures.add(Name.ACCURACY, 0.75)
    figures.save()
    assert [row["value"] for row in metric_rows(file)] == [0.75]
