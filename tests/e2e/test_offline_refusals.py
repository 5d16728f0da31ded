"""A recorded run attacked again: what is refused, in words."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from recordedrun import home, recorded

from vflens.errors import ConfigError, DataError, ProtocolError, StorageError
from vflens.experiments.audit.subject import load_subject
from vflens.experiments.offline.attack import attack_recorded
from vflens.experiments.offline.score import score_estimate
from vflens.experiments.results.folders import read_party
from vflens.services.folder import exclusive
from vflens.storage.files import load_arrays, save_arrays
from vflens.types import Array

_FIXTURES = (
    home,
    recorded,
)  # used by name


def test_nothing_is_made_of_a_federation_that_was_changed(tmp_path: Path, home: Path) -> None:
    estimate = home / "active/estimates/b.zero.npz"
    for party in ("active", "b"):
        file = home / party / "federation.json"
        text = file.read_text(encoding="utf-8")
        file.write_text(text.replace('"penalise_bias": true', '"penalise_bias": false'), encoding="utf-8")
        assert file.read_text(encoding="utf-8") != text
    refused = pytest.raises(
        StorageError, match=r"federation.json was changed after its run began: bring back"
    )
    with refused:
        attack_recorded(home / "active", "zero", "b", tmp_path / "estimate.npz")
    with refused:
        score_estimate(estimate, home / "b" / "config.toml")
    with refused:
        load_subject(str(home / "b"), classes=None, columns=None, id_column="id")


def test_another_target_refuses_the_estimate(tmp_path: Path, home: Path) -> None:
    """By its name: a table of as many columns would give a figure, of nothing."""
    out = tmp_path / "estimate.npz"
    attack_recorded(home / "active", "zero", "a", out)
    for other in ("b", "c", "active"):
        with pytest.raises(
            ConfigError,
            match=rf"estimates 'a', and .*config.toml is that of '{other}': only the target can score it$",
        ):
            score_estimate(out, home / other / "config.toml")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (
            {"values": np.full((18, 2), "x")},
            r"is no estimate, its values is <U1 of shape \(18, 2\): write one with",
        ),
        ({"values": np.zeros((18, 2), complex)}, "is no estimate, its values is complex128 of"),
        ({"rows": np.zeros(18)}, "is no estimate, its rows is float64 of"),
        ({"rows": np.array(3)}, r"is no estimate, its rows is int64 of shape \(\): write one with"),
        ({"status": np.array("ok")}, r"is no estimate, its status is <U2 of shape \(\): write one with"),
        ({"attack": np.array(["zero"] * 2)}, r"is no estimate, its attack is <U4 of shape \(2,\): write one"),
        ({"values": np.zeros((18, 5))}, r"submitted values of shape \(18, 5\): \(18, 2\) is needed$"),
    ],
)
def test_an_estimate_of_other_numbers_is_refused(
    tmp_path: Path, home: Path, wrong: dict[str, Array], message: str
) -> None:
    out = tmp_path / "estimate.npz"
    attack_recorded(home / "active", "zero", "a", out)
    save_arrays(out, {**load_arrays(out), **wrong})
    with pytest.raises((DataError, ProtocolError), match=message):
        score_estimate(out, home / "a" / "config.toml")


@pytest.mark.parametrize("adversary", ["a", "nobody", ""])
def test_an_estimate_by_nobody_of_the_run_is_refused(tmp_path: Path, home: Path, adversary: str) -> None:
    """Its figures would stand under that name; the target itself attacks nobody's columns but others'."""
    out = tmp_path / "estimate.npz"
    attack_recorded(home / "active", "zero", "a", out)
    save_arrays(out, {**load_arrays(out), "adversary": np.array(adversary)})
    before = read_party(home / "a").metrics
    with pytest.raises(
        DataError,
        match=rf"says that '{adversary}' is the adversary: in this run active, b, c, coordinator can",
    ):
        score_estimate(out, home / "a" / "config.toml")
    assert read_party(home / "a").metrics == before


def test_what_cannot_be_attacked_is_a_sentence(tmp_path: Path, recorded: Path) -> None:
    out = tmp_path / "estimate.npz"
    with pytest.raises(ConfigError, match=r"^--target is missing: name a, b or c$"):
        attack_recorded(recorded / "active", "zero", None, out)
    with pytest.raises(ConfigError, match=r"^--target 'active' is no target of this attack: name a, b or c$"):
        attack_recorded(recorded / "active", "zero", "active", out)
    with pytest.raises(StorageError, match="holds no federation"):
        attack_recorded(tmp_path, "zero", "a", out)
    with pytest.raises(ConfigError, match="columns are attacked from the folder of 'active'"):
        attack_recorded(recorded / "a", "zero", "a", out)
    damaged = shutil.copytree(recorded / "active", tmp_path / "active")
    (damaged / "config.toml").write_text("", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"config.toml: role is missing: a party is passive, active, coord"):
        attack_recorded(damaged, "zero", "a", out)
    assert not out.exists()


def test_what_is_no_estimate_is_a_sentence(tmp_path: Path, home: Path) -> None:
    config = home / "a" / "config.toml"
    np.savez(tmp_path / "other.npz", values=np.zeros((2, 2)))
    with pytest.raises(
        DataError, match=r"other.npz is no estimate, it lacks .*: write one with `vflens attack`$"
    ):
        score_estimate(tmp_path / "other.npz", config)
    attack_recorded(home / "active", "zero", "a", tmp_path / "estimate.npz")
    with pytest.raises(ConfigError, match="configures a coordinator: only the target, a data party, can"):
        score_estimate(tmp_path / "estimate.npz", home / "coordinator" / "config.toml")


def test_a_running_party_is_left_alone(tmp_path: Path, home: Path) -> None:
    estimate, config = tmp_path / "estimate.npz", home / "a" / "config.toml"
    attack_recorded(home / "active", "zero", "a", estimate)
    with (
        exclusive(home / "a"),
        pytest.raises(ConfigError, match=r"^run folder .* is in use by another party's process: "),
    ):
        score_estimate(estimate, config)


@pytest.mark.parametrize("edit", ["another value", "another order"])
def test_a_table_that_changed_since_the_run_scores_nothing(tmp_path: Path, home: Path, edit: str) -> None:
    """Aligned rows are rows of the file: of another file the figures would be of other rows."""
    out, file = tmp_path / "estimate.npz", home / "a" / "data.parquet"
    attack_recorded(home / "active", "zero", "a", out)
    table = pq.read_table(file)
    if edit == "another order":
        table = table.take(list(range(len(table)))[::-1])
    else:
        name = next(n for n in table.column_names if n not in ("id", "label", "split"))
        values = table[name].to_numpy().copy()
        values[0] = values[1]
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    pq.write_table(table, file)
    with pytest.raises(StorageError, match=r"^the party's table is no longer that of the run in .*a: bring"):
        score_estimate(out, home / "a" / "config.toml")
