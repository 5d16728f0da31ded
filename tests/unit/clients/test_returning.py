"""People who come back: their rows, and who of them trained."""

from __future__ import annotations

import numpy as np
import pytest

from vflens.clients.returning import come_again, trained_before, with_returning
from vflens.errors import ConfigError
from vflens.tables.table import Table
from vflens.types import ColumnInfo

TABLE = Table(
    np.array([b"a", b"bb", b"ccc", b"again", b"e"]),
    (ColumnInfo("x"),),
    np.arange(5.0)[:, None],
    np.array([0, 1, 0, 1, 0]),
    class_names=("no", "yes"),
    split=np.array([0, 0, 1, 0, 1], np.uint8),
)


def test_training_rows_come_back_once_each_as_prediction_rows() -> None:
    found = with_returning(TABLE, 3, np.random.default_rng(0))
    assert found.ids[:5].tolist() == TABLE.ids.tolist()
    assert sorted(found.ids[5:].tolist()) == [b"again-a", b"again-again", b"again-bb"]
    assert found.labels is not None
    assert found.split is not None
    assert TABLE.labels is not None
    place = {name: i for i, name in enumerate(TABLE.ids.tolist())}
    for i in range(5, 8):
        own = place[found.ids[i].removeprefix(b"again-")]
        assert (found.features[i], found.labels[i], found.split[i]) == (own, TABLE.labels[own], 1)
    np.testing.assert_array_equal(found.split[:5], TABLE.split)


def test_only_training_rows_return_and_no_name_is_taken() -> None:
    with pytest.raises(ConfigError, match=r"data\.returning = 4: there are 3 training rows"):
        with_returning(TABLE, 4, np.random.default_rng(0))
    again = with_returning(TABLE, 1, np.random.default_rng(0))
    with pytest.raises(ConfigError, match="ids begin with 'again-', rename these rows"):
        with_returning(again, 1, np.random.default_rng(0))


def test_who_trained_is_known_by_name() -> None:
    ids = np.array([b"again-a", b"again-bb", b"a", b"again-", b"again"])
    assert come_again(ids).tolist() == [True, True, False, True, False]
    assert trained_before(ids, np.array([b"a", b"c"])).tolist() == [True, False, False, False, False]
    assert come_again(np.array([b"a"])).tolist() == [False]
