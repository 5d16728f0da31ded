"""A passive party that releases its table: once, noisy, through its gate; and nothing else of its columns."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tomli_w
from laboratory import close, deal, experiment, federation, finish
from oneprocess import LocalFederation

from vflens.errors import ConfigError, ProtocolError
from vflens.experiments.outcome.words import number
from vflens.experiments.pages.report import render
from vflens.experiments.results.record import read_runs
from vflens.experiments.run.check import check
from vflens.protocol.acts import Deliver, Disclose
from vflens.table_noise.svm import solve_svm
from vflens.types import Point, Released

ATTACKS = [{"name": "released_table"}, {"name": "shrunk_table"}, {"name": "half"}]
GRANTS = [{"what": "moments", "to": "active"}]
MANY = {"name": "synthetic", "rows": 1500, "features": 7, "classes": 2, "informative": 4}


def _release(**settings: Any) -> list[dict[str, Any]]:
    return [{"at": "passive", "name": "release_table", **settings}]


def _tables(local: LocalFederation) -> list[Released]:
    return [r for r in local.active.transcript if r.point is Point.DATASET]


def _metrics(folder: Path) -> dict[tuple[str, str], float]:
    """(metric, attack) → its last value."""
    rows = pq.read_table(folder / "metrics.parquet").to_pylist()
    return {(r["metric"], r["attack"]): r["value"] for r in rows}


@pytest.mark.parametrize(("mechanism", "excess"), [("gaussian", 1.0), ("laplace", 2.0), ("bounded", None)])
def test_the_table_arrives_under_noise_and_attacks_meet_what_theory_says(
    tmp_path: Path, mechanism: str, excess: float | None
) -> None:
    local = federation(
        tmp_path, data=MANY, defenses=_release(mechanism=mechanism), attacks=ATTACKS, disclose=GRANTS
    )
    local.run()
    passive = local.passive["passive"]
    (table,) = _tables(local)
    np.testing.assert_array_equal(table.rows, np.arange(1500))
    noise = table.tensor("dataset") - passive.run.truth[:]
    assert (noise != 0).all()
    np.testing.assert_array_equal(passive.run.inputs[:], table.tensor("dataset"))  # its model sees no more
    found = _metrics(tmp_path / "passive")
    error, bound = found["mse", "released_table"], found["released_bound", ""]
    asked, truth = passive.run.federation.predict, passive.run.truth[:]
    moved = np.clip(table.tensor("dataset"), 0, 1) - truth  # as an answer is before it is scored
    assert error == pytest.approx((moved[asked] ** 2).mean(), rel=1e-12)
    if excess is not None:
        # 300 rows: 8 % for Laplace
        assert (noise[asked] ** 2).mean() == pytest.approx(excess * bound, rel=0.2)
    assert 0.5 < found["mse", "shrunk_table"] / found["released_linear", ""] < 1.2
    assert found["mse", "shrunk_table"] < bound
    accuracy = _metrics(tmp_path / "active")
    assert accuracy["accuracy_alone", ""] <= accuracy["accuracy_released", ""] + 0.1
    for member in local.members():
        member.flush()
    shown = render(read_runs([tmp_path]))
    shrunk = found["mse", "shrunk_table"]
    assert f"shrunk_table {number(shrunk)}, released_table {number(error)}" in shown  # the least error first
    assert f"<td>{number(bound)}</td>" in shown
    assert "accuracy, released tables" in shown
    assert not {r.point for r in local.coordinator.transcript} & {Point.DATASET}


def test_a_release_asked_for_again_is_the_same_release(tmp_path: Path) -> None:
    local = federation(tmp_path, defenses=_release(), attacks=ATTACKS, disclose=GRANTS)
    local.coordinator.prepare()
    local.coordinator.disclose()
    asked = Disclose("tiny/run", 1, "active")
    again = [r for r in local.coordinator.links["passive"].call(asked) if r.point is Point.DATASET]
    first, second = ([t.tensor("dataset").tobytes() for t in tables] for tables in (_tables(local), again))
    assert len(first) == 1
    assert second == first


def test_other_settings_draw_other_noise(tmp_path: Path) -> None:
    noises = []
    for name, lam in (("a", 100.0), ("b", 1600.0)):
        local = federation(tmp_path / name, defenses=_release(lam=lam))
        local.coordinator.prepare()
        run = local.passive["passive"].run
        noises.append((run.inputs[:] - run.truth[:]).ravel())
    assert abs(np.corrcoef(noises)[0, 1]) < 0.3  # 270 cells: five times their standard error


def test_without_the_defence_no_table_leaves_and_the_attacks_say_so(tmp_path: Path) -> None:
    local = federation(tmp_path, attacks=ATTACKS, disclose=GRANTS)
    local.run()
    assert not _tables(local)
    assert ("mse", "released_table") not in _metrics(tmp_path / "passive")
    assert ("accuracy_released", "") not in _metrics(tmp_path / "active")


def test_a_table_of_another_shape_is_refused(tmp_path: Path) -> None:
    local = federation(tmp_path, defenses=_release())
    local.coordinator.prepare()
    local.coordinator.disclose()
    (table,) = _tables(local)
    wrong = Released(
        table.sender, table.exchange, table.point, table.rows, tensors={"dataset": np.zeros((2, 2))}
    )
    with pytest.raises(ProtocolError, match="dataset"):
        local.active.deliver(Deliver(wrong))


def test_correlated_noise_needs_labels_of_its_owner(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'release_table' at 'passive' reads labels of its owner"):
        federation(tmp_path, defenses=_release(mechanism="correlated"))


def test_correlated_noise_keeps_the_classifier_of_the_owners_labels(tmp_path: Path) -> None:
    files = deal(
        experiment(tmp_path, data=MANY, defenses=_release(mechanism="correlated"), attacks=ATTACKS), tmp_path
    )
    _give_labels(files["passive"])
    local = LocalFederation(files, lambda *_: None)
    local.coordinator.prepare()
    local.coordinator.train()
    finish(local)
    run, labels = local.passive["passive"].run, local.passive["passive"].owner.labels
    assert labels is not None
    y = np.where(labels == 1, 1.0, -1.0)
    before, after = (solve_svm(x, y, theta=1.0, rho=0.01) for x in (run.truth[:], run.inputs[:]))
    assert before.change(after) < 1e-6
    assert (run.inputs[:] - run.truth[:]).std() > 0.2
    (table,) = _tables(local)
    np.testing.assert_array_equal(table.tensor("dataset"), run.inputs[:])
    close(local)


def test_correlated_noise_for_labels_of_three_classes_is_refused_before(tmp_path: Path) -> None:
    files = deal(experiment(tmp_path, data=MANY, defenses=_release(mechanism="correlated")), tmp_path)
    _give_labels(files["passive"], third=True)
    words = (
        "release_table at 'passive': correlated noise keeps a classifier of two classes, "
        "and data.label_column holds 3"
    )
    with pytest.raises(ConfigError, match=f"^{words}$"):
        check(files["passive"])


def _give_labels(config: Path, *, third: bool = False) -> None:
    settings = tomllib.loads(config.read_text())
    file = config.parent / settings["data"]["file"]
    table = pq.read_table(file)
    mine = np.where(table.column(settings["data"]["columns"][0]).to_numpy() > 0, "high", "low")
    mine[0] = "even" if third else mine[0]
    pq.write_table(table.append_column("mine", pa.array(mine)), file)
    settings["data"]["label_column"] = "mine"
    config.write_text(tomli_w.dumps(settings))
