"""TabLeak's setting: what counts as found, and a page that goes on where it was interrupted."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from vflens.experiments.figures import FigureOptions, reproduce, tableak
from vflens.experiments.figures.tableak import Encoded, InvertedBatch, batch_rows, encoded
from vflens.experiments.sweeps.pool import Pool
from vflens.types import Array, ColumnInfo

COLUMNS = tuple(ColumnInfo(name) for name in ("age", "work=0", "work=1", "work=2"))
X = np.array([[0.0, 1, 0, 0], [1.0, 0, 1, 0], [0.5, 0, 0, 1], [0.5, 1, 0, 0]])
TABLE = Encoded(X, COLUMNS, (slice(0, 1), slice(1, 4)), np.zeros(4, int))
TINY = InvertedBatch("wine", 2, (4,), free=True)


def test_a_category_is_its_largest_and_a_number_is_near_by_the_columns_own_spread() -> None:
    near = 0.319 * X[:, 0].std()
    values = X.copy()
    values[0, 0] += 0.99 * near
    values[1, 0] -= 1.01 * near
    values[2, 1:] = [0.3, 0.3, 0.4]
    values[3, 1:] = [0.4, 0.1, 0.5]
    assert TABLE.found(values, X) == pytest.approx(6 / 8)


def test_the_blind_guess_names_the_commonest_category_and_a_uniform_one_has_one_each() -> None:
    guess = np.tile(TABLE.commonest(), (4, 1))
    assert TABLE.found(guess, X) == pytest.approx((2 + 2) / 8)  # two ages are the mean, two work at 0
    drawn = TABLE.uniform(300, np.random.default_rng(1))
    np.testing.assert_array_equal(drawn[:, 1:].sum(axis=1), 1)
    np.testing.assert_allclose(drawn.mean(axis=0), [0.5, *[1 / 3] * 3], atol=0.1)


def test_rows_are_matched_before_they_are_compared() -> None:
    """One row of a batch is found by closed form behind one layer; here two, in an order of no account."""
    rows = {r["attack"]: r for r in batch_rows(TINY, 3, {"starts": 2, "steps": 40, "polishing_steps": 40})}
    assert rows.keys() == {"tabular_inversion", "dlg, free", "blind", "uniform", "other rows"}
    assert rows["tabular_inversion"]["mse"] < rows["uniform"]["mse"]
    again = batch_rows(TINY, 3, {"starts": 2, "steps": 40, "polishing_steps": 40})
    assert {r["attack"]: r for r in again} == rows
    assert (encoded("wine").x.min(), encoded("wine").x.max()) == (0, 1)


def test_guesses_are_of_the_population_and_other_rows_outside_the_batch() -> None:
    data, places = encoded("wine"), np.arange(10)
    found = data.guesses(places, np.random.default_rng(2))
    others = found["other rows"]
    assert (others[:, None] == data.x[10:]).all(axis=2).any(axis=1).all()
    assert len(np.unique(others, axis=0)) == 10
    np.testing.assert_array_equal(found["blind"], np.tile(data.x.mean(axis=0), (10, 1)))


def test_guesses_are_matched_as_the_attack_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Guesses that are the batch itself in another order are exact."""

    def same(self: Encoded, places: Array, rng: np.random.Generator) -> dict[str, Array]:
        return {"other rows": self.x[places[::-1]]}

    monkeypatch.setattr(Encoded, "guesses", same)
    batch = InvertedBatch("wine", 2, (4,))  # whose rows have one label with this seed
    rows = batch_rows(batch, 1, {"starts": 1, "steps": 1, "polishing_steps": 1})
    assert [r["mse"] for r in rows if r["attack"] == "other rows"] == [0]


def test_it_goes_on_where_it_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[int] = []

    def counted(setting: InvertedBatch, seed: int, descents: object) -> list[dict[str, object]]:
        ran.append(seed)
        if len(ran) == 2:
            raise KeyboardInterrupt
        place = {"data": setting.data, "batch": setting.batch, "seed": seed}
        return [{**place, "attack": "tabular_inversion", "found": 0.5, "mse": 0.1}]

    monkeypatch.setattr(tableak, "SETTINGS", (TINY,))
    monkeypatch.setattr(tableak, "batch_rows", counted)
    options = FigureOptions(Pool(tmp_path / ".cells"), seeds=3)
    with pytest.raises(KeyboardInterrupt):
        reproduce("tableak", options, tmp_path)
    finished = FigureOptions(Pool(tmp_path / ".cells", only_finished=True), seeds=3)
    assert reproduce("tableak", finished, tmp_path)["notes"][0] == "2 of 3 batches are not computed yet."
    facts = reproduce("tableak", options, tmp_path)
    assert ran == [0, 1, 1, 2]
    assert facts["tables"][0]["rows"] == [["wine, 2 rows", "3", "–", "0.500 ± 0.000", "–", "–", "–"]]
