"""The registry of figures: each is listed, each is written whole, in quick form without a data folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from experiments.cells import Pool
from experiments.figures import Drawing, Options, figures, render, reproduce
from experiments.figures._data import dealt, sizes, windows
from vfl.errors import ConfigError, DataError
from vfl.numerics.theory import second_moment


@pytest.fixture(autouse=True)
def _no_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VFLENS_DATA", raising=False)


def options(folder: Path) -> Options:
    return Options(Pool(folder / ".cells"), quick=True)


def test_names_are_those_of_the_figures() -> None:
    assert {"rvg-fig6", "var-fig2", "var-fig6"} <= figures().keys()
    assert all(name == figure.name and figure.title for name, figure in figures().items())


def test_an_unknown_name_lists_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"^figure 'fig4' is none of .*rvg-fig6.*: choose one of them$"):
        reproduce("fig4", options(tmp_path), tmp_path)


def test_absent_data_sets_are_named_and_left_out(tmp_path: Path) -> None:
    facts = reproduce("rvg-fig6", options(tmp_path), tmp_path)
    rows = pq.read_table(facts["data"]).to_pylist()
    assert {r["dataset"] for r in rows} == {"synthetic"}
    assert len(facts["notes"]) == 3
    assert all("VFLENS_DATA is not set" in note for note in facts["notes"])
    page = Path(facts["page"]).read_text(encoding="utf-8")
    assert "bank is left out" in page
    x = dealt("synthetic", 0).x
    np.testing.assert_allclose([r["variance"] for r in rows], np.diag(second_moment(x, x.mean(axis=0))))


def test_a_figure_without_any_data_set_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^figure 'var-fig2' has no data: bank is left out: "):
        reproduce("var-fig2", options(tmp_path), tmp_path)


def test_the_page_escapes_what_it_is_given() -> None:
    drawing = Drawing([{"a": 1}], [], "<script>alert(1)</script>", ["<b>"])
    page = render("<i>", drawing, data="x.parquet", command="vflens <u>")
    for bad in ("<script>alert", "<b></p>", "<h1><i>", "vflens <u>"):
        assert bad not in page


def test_windows_are_cyclic_and_each_feature_is_in_as_many() -> None:
    found = windows(7, 3, quick=False)
    assert found.shape == (7, 3)
    assert found[5].tolist() == [5, 6, 0]
    assert np.bincount(found.ravel()).tolist() == [3] * 7
    assert sizes(7, quick=False) == [1, 2, 3, 4, 5, 6, 7]
    assert sizes(36, quick=True)[-1] == 36
