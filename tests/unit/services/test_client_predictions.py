"""What a client's owner reads of its predictions, and when it is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from horizontal import CLASSES, clients_of, deal, federation, table

from vflens.errors import ConfigError, StateError, StorageError
from vflens.services.operator import ask_configured

TABLE = table(30, 1)


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return deal(tmp_path, {"a": TABLE, "b": table(17, 2)}, horizontal={"rounds": 3})["a"]


def run_below(folder: Path) -> dict[str, np.ndarray]:
    """Run what is dealt; the last parameters of client a."""
    local = federation({name: folder / name / "config.toml" for name in ("server", "a", "b")})
    local.run()
    return clients_of(local)["a"].run.model.parameters()


def test_they_are_those_of_the_last_parameters_for_its_own_rows(config: Path, tmp_path: Path) -> None:
    parameters = run_below(tmp_path)
    rows = np.flatnonzero(np.asarray(TABLE.split))
    x = (TABLE.features[rows] + 4) / 8
    logits = x @ parameters["weight"].T + parameters["bias"]
    expected = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    found = ask_configured(config, "all")
    assert [a["id"] for a in found] == [TABLE.ids[row].decode() for row in rows]
    assert [list(a["scores"]) for a in found] == [list(CLASSES)] * len(rows)
    np.testing.assert_allclose([list(a["scores"].values()) for a in found], expected, rtol=1e-9)
    assert ask_configured(config, "1,3-4") == [found[1], *found[3:5]]


def test_before_a_run_has_ended_there_are_none(config: Path) -> None:
    with pytest.raises(StateError, match=r"client 'a' has no predictions in .*: it makes them at the end of"):
        ask_configured(config, "all")


def test_rows_that_are_none_are_refused(config: Path, tmp_path: Path) -> None:
    run_below(tmp_path)
    with pytest.raises(ConfigError, match=r"there are 6 prediction rows, counted from 0"):
        ask_configured(config, "6")


def test_another_table_is_refused(config: Path, tmp_path: Path) -> None:
    (file,) = config.parent.glob("*.parquet")
    run_below(tmp_path)
    other = deal(tmp_path / "other", {"a": table(30, 9)})["a"].parent / file.name
    file.write_bytes(other.read_bytes())
    with pytest.raises(StorageError, match=r"the party's table is no longer that of the run"):
        ask_configured(config, "all")
