"""The recipes paper and authors beside clean: what is scaled by what, and where labels leak in."""

from __future__ import annotations

import numpy as np
import pytest
from datafiles import needs_file

from vflens.datasets._resolve import dataset
from vflens.errors import ConfigError, DataError
from vflens.tables.recipes import target_encoded

needs_data = needs_file("sat.trn.gz")


def test_paper_scales_over_all_rows_and_draws_its_split() -> None:
    clean, paper = dataset("wine", {}).prepared(), dataset("wine", {"recipe": "paper"}).prepared()
    np.testing.assert_array_equal(paper.features.min(axis=0), 0)
    np.testing.assert_array_equal(paper.features.max(axis=0), 1)
    for j in range(13):  # an affine map of the same values
        assert np.corrcoef(clean.features[:, j], paper.features[:, j])[0, 1] == pytest.approx(1)
    assert paper.split is None
    assert {(c.low, c.high) for c in paper.columns} == {(0.0, 1.0)}
    np.testing.assert_array_equal(paper.labels, clean.labels)


def test_declared_bounds_and_alphabets_follow_the_extremes() -> None:
    paper = dataset("digits", {"recipe": "paper"}).prepared()
    values = paper.features[:, 20]
    assert set(values) <= set(paper.columns[20].alphabet or ())


def test_a_data_set_that_the_scripts_do_not_treat_has_no_recipe_authors() -> None:
    expected = (
        r"^data set 'breast_cancer' has no recipe 'authors', their scripts do not treat it: "
        r"choose clean or paper, or bank, robot, satellite or synthetic$"
    )
    with pytest.raises(DataError, match=expected):
        dataset("breast_cancer", {"recipe": "authors"}).prepared()
    with pytest.raises(ConfigError, match="recipe"):
        dataset("wine", {"recipe": "mine"})


def test_text_and_a_negative_first_number_become_shares_of_the_label() -> None:
    raw = {
        "job": np.array(["a", "b", "a", "b"]),
        "index": np.array(["-1", "2", "-1", "2"]),
        "rate": np.array(["1.5", "-2", "3", "4"]),
    }
    columns, x = target_encoded(raw, np.array([True, False, False, False]))
    assert [c.name for c in columns] == ["job", "index", "rate"]
    np.testing.assert_array_equal(x.T, [[0.5, 0, 0.5, 0], [0.5, 0, 0.5, 0], [1.5, -2, 3, 4]])


def test_synthetic_as_coded_has_redundant_columns() -> None:
    made = dataset(
        "synthetic", {"recipe": "authors", "rows": 200, "features": 10, "informative": 3}
    ).prepared()
    assert made.features.shape == (200, 10)
    assert np.linalg.matrix_rank(made.features - made.features.mean(axis=0), tol=1e-8) == 8
    assert (made.features.min(), made.features.max()) == (0, 1)


@pytest.mark.facts
@needs_data
def test_the_files_as_coded() -> None:
    bank = dataset("bank", {"recipe": "authors"}).prepared()
    names = [c.name for c in bank.columns]
    assert names.index("emp.var.rate") == 14
    assert "duration" in names
    assert "campaign" not in names
    job = bank.features[:, names.index("job")]
    assert bank.labels is not None
    shares = {v: bank.labels[job == v].mean() for v in np.unique(job)}  # one share of yes per text …
    assert np.corrcoef(list(shares), list(shares.values()))[0, 1] == pytest.approx(1)  # … scaled to [0, 1]
    assert len(np.unique(bank.features[:, names.index("cons.conf.idx")])) == 26
    satellite = dataset("satellite", {"recipe": "authors"}).prepared()
    for part in (0, 1):
        rows = satellite.features[satellite.split == part]
        assert rows.min(axis=0).tolist() == [0] * 36
        assert rows.max(axis=0).tolist() == [1] * 36
    whole = dataset("satellite", {"recipe": "paper"}).prepared()  # the level belongs to this scaling
    assert ((whole.features - 0.5) ** 2).mean() == pytest.approx(0.039, abs=0.001)
    assert ((bank.features - 0.5) ** 2).mean() == pytest.approx(0.178, abs=0.001)
