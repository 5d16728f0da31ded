"""The figures of all pixels are one row of the metrics; readers take them as they take a row a column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from reportpage import report
from runfolder import as_arrays, metric, scores, write_party

from vflens.errors import DataError
from vflens.experiments.results.compare import compare
from vflens.experiments.results.folders import read_party
from vflens.experiments.results.record import read_runs
from vflens.experiments.results.results import column_errors, final, leaking_columns
from vflens.experiments.results.verdict import result_table, to_json
from vflens.storage.metrics import Metrics, Name

WHERE: dict[str, Any] = {"target": "passive", "scored_set": "predict", "rows": 360}


def _uneven() -> list[dict[str, Any]]:
    """Errors that differ by column."""
    kept = scores({"ls": 0.02, "half": 0.15})
    return [m | {"value": m["value"] * (i % 5 + 1) / 3} if m["column"] else m for i, m in enumerate(kept)]


def _pair(folder: Path) -> list[Path]:
    """A target with a row for each column, and one with arrays."""
    return [
        write_party(folder / side / "demo" / "passive", "passive", metrics=metrics)
        for side, metrics in (("rows", _uneven()), ("arrays", as_arrays(_uneven())))
    ]


def test_results_and_comparisons_take_arrays_as_rows(tmp_path: Path) -> None:
    folders = _pair(tmp_path)
    assert (
        len(read_party(folders[1]).metrics) == len(read_party(folders[0]).metrics) - 9
    )  # 3 of 4 columns, thrice
    plain, arrays = (read_runs([f])[0] for f in folders)
    found = [column_errors(plain, r) for r in final(plain)]
    assert found == [column_errors(arrays, r) for r in final(arrays)]
    assert {len(errors) for errors in found} == {4}
    assert leaking_columns(plain, "passive") == leaking_columns(arrays, "passive") != ()
    assert compare(*folders)["equal"]
    assert report(folders[0]).panels == report(folders[1]).panels


def test_arrays_of_other_columns_are_refused(tmp_path: Path) -> None:
    metrics = [*scores({"ls": 0.02}), metric("column_mse", 0.1, values=[0.1], attack="ls", **WHERE)]
    run = read_runs([write_party(tmp_path / "demo" / "passive", "passive", metrics=metrics)])[0]
    with pytest.raises(DataError, match=r"column_mse has figures of 1 column, 'passive' has 4: copy"):
        column_errors(run, final(run)[0])


def test_metrics_keep_their_arrays_after_a_restart(tmp_path: Path) -> None:
    file = tmp_path / "metrics.parquet"
    first = Metrics(file)
    first.add(Name.MSE, 0.5, attack="ls", target="passive")
    first.save()
    again = Metrics(file)
    again.add(Name.SSIM, 0.25, values=(0.0, 0.5), attack="ls")
    again.save()
    Metrics(file).save()
    assert [(m.name, m.value, m.values) for m in read_party(tmp_path).metrics] == [
        ("mse", 0.5, ()),
        ("ssim", 0.25, (0.0, 0.5)),
    ]


def test_likeness_of_images_stands_beside_the_error(tmp_path: Path) -> None:
    figures = {
        ("psnr", "ls"): 17.0,
        ("ssim", "ls"): 0.43,
        ("blind_psnr", "half"): 8.0,
        ("blind_psnr", "zero"): 3.0,
    }
    figures |= {("blind_ssim", "half"): 0.01, ("blind_ssim", "zero"): 0.02}
    kept = [metric(name, value, attack=attack, **WHERE) for (name, attack), value in figures.items()]
    folder = write_party(tmp_path / "demo" / "passive", "passive", metrics=[*scores({"ls": 0.02}), *kept])
    runs = read_runs([folder])
    (r,) = final(runs[0])
    assert (r.psnr, r.ssim, r.blind_psnr, r.blind_ssim) == (17.0, 0.43, 8.0, 0.02)
    cells = [row[-1] for row in result_table(runs)[1]]
    assert cells == [
        ".020 ± .002 (25 %); 17.0 dB, SSIM .430",
        ".080 (the column means); 8.0 dB, SSIM .020",
    ]
    assert to_json(runs)["runs"][0]["results"][0]["ssim"] == 0.43
    assert "17.0 dB, SSIM .430" in report(folder).text
