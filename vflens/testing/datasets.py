"""What every data set promises."""

import numpy as np
import pytest

from vflens.plugins.dataset import Dataset
from vflens.tables.table import Table


def assert_sound(table: Table) -> None:
    """Its arrays fit each other, and its columns their description."""
    n, d = table.features.shape
    images = all(c.pixel is not None and c.high == 255 for c in table.columns)
    assert table.features.dtype == (np.uint8 if images else np.float64)
    assert table.labels is not None
    assert table.labels.dtype == (np.int64 if table.label is None else np.float64)
    assert len(np.unique(table.ids)) == n == len(table.labels)
    assert len({c.name for c in table.columns}) == d
    for j, column in enumerate(table.columns):
        x = table.features[:, j]
        assert column.low is None or column.low <= x.min()
        assert column.high is None or column.high >= x.max()
        assert column.alphabet is None or np.isin(x, column.alphabet).all()


class DatasetContract:
    """Derive ``TestMine`` from it; its fixture ``dataset`` returns a data set with its options."""

    @pytest.fixture
    def dataset(self) -> Dataset:
        raise NotImplementedError("override the fixture dataset: return one, such as Mine()")

    def test_its_table_is_sound_and_always_the_same(self, dataset: Dataset) -> None:
        table = dataset.load()
        assert_sound(table)
        np.testing.assert_array_equal(dataset.load().digest(), table.digest())

    def test_the_papers_recipe_scales_it_into_the_box(self, dataset: Dataset) -> None:
        scaled = dataset.model_copy(update={"recipe": "paper"}).prepared().features
        assert 0 <= scaled.min() <= scaled.max() <= 1
