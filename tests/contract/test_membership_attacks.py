"""Attacks on membership in whole runs: a grant of candidates, attacks in the server, scores at the client."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from accidents import rebuild
from horizontal import CLASSES, clients_of, deal, federation, server_of
from laboratory import close
from nonempty import nonempty
from oneprocess import LocalFederation
from pydantic import ValidationError

from vflens.cli.evidence import _scored
from vflens.cli.federation import _summary
from vflens.config.settings import Disclosure
from vflens.errors import ConfigError, ProtocolError
from vflens.experiments.pages.report import write_report
from vflens.experiments.results.labels_membership import membership_results
from vflens.experiments.results.record import read_runs
from vflens.experiments.results.verdict import to_json
from vflens.numerics.measures.ranking import auc
from vflens.tables.table import Table
from vflens.types import Array, ColumnInfo, Phase, Point

ATTACKS: list[dict[str, Any]] = [{"name": "loss_threshold"}, {"name": "lira", "models": 8}]
SETTINGS: dict[str, Any] = {
    "training": {"batch_size": 20, "learning_rate": 0.1, "l2": 0.0},
    "horizontal": {"rounds": 2, "local_epochs": 20},
    "attacks": ATTACKS,
}


def noisy(rows: int, seed: int, predict: int) -> Table:
    """Labels that follow from nothing, and more columns than training rows: a model knows their labels by
    heart, of others none.
    """
    rng = np.random.default_rng(seed)
    columns = tuple(ColumnInfo(f"c{j}", 0.0, 1.0) for j in range(50))
    split = (np.arange(rows) >= rows - predict).astype(np.uint8)
    ids = np.array([f"{seed}-{i}".encode() for i in range(rows)])
    features, labels = rng.random((rows, len(columns))), rng.integers(0, len(CLASSES), rows)
    return Table(ids, columns, features, labels, class_names=CLASSES, split=split)


TABLES = {"a": noisy(80, 1, 40), "b": noisy(80, 2, 40)}
THREE = {**TABLES, "c": noisy(80, 3, 40)}


def made(
    folder: Path, *, rows: int = 60, tables: Any = TABLES, defenses: Any = (), **settings: Any
) -> LocalFederation:
    disclose = [{"what": "candidates", "to": "server", "rows": rows}] if rows else []
    return federation(deal(folder, tables, defenses=defenses, disclose=disclose, **{**SETTINGS, **settings}))


def figures(folder: Path) -> dict[tuple[str, str, str], float]:
    rows: list[Mapping[str, Any]] = pq.read_table(folder / "metrics.parquet").to_pylist()
    return {(r["metric"], r["attack"], r["detail"]): r["value"] for r in rows}


def granted(local: LocalFederation, client: str) -> tuple[Array, Array]:
    sent = server_of(local).transcript.select(Point.AUXILIARY, phases={Phase.DISCLOSE})
    (released,) = (r for r in sent if r.sender == client)
    assert not len(released.rows)  # no origin
    return released.tensor("candidate_features"), released.tensor("candidate_labels")


def test_a_model_that_knows_its_rows_by_heart_betrays_them(tmp_path: Path) -> None:
    local = made(tmp_path)
    local.run()
    found = figures(tmp_path / "a")
    for attack in ("loss_threshold", "lira"):
        assert found["membership_auc", attack, ""] > 0.8
        assert found["membership_tpr", attack, "0.1"] > 0.3
    assert found["blind_membership_auc", "", ""] == 0.5
    x, y = granted(local, "a")
    own = clients_of(local)["a"].run
    trained = own.truth[own.federation.rows_of("a", Phase.TRAIN)]
    members = (x[:, None] == trained).all(axis=2).any(axis=1)
    assert members.sum() == 30
    with np.load(tmp_path / "server/estimates/a.loss_threshold.train.npz") as kept:
        scores = kept["values"]
    assert found["membership_auc", "loss_threshold", ""] == pytest.approx(
        auc(np.hstack([-scores, scores]), members.astype(int))
    )
    assert set(y.tolist()) <= {0, 1, 2}


def test_the_report_names_who_was_told_apart_and_how_well(tmp_path: Path) -> None:
    local = made(tmp_path)
    local.run()
    (run,) = read_runs([tmp_path])
    results = membership_results(run)
    assert {(r.attack, r.target) for r in results} == {(a["name"], c) for a in ATTACKS for c in TABLES}
    assert [r.auc for r in results] == sorted((r.auc for r in results), reverse=True)
    best = results[0]
    assert figures(tmp_path / best.target)["membership_auc", best.attack, ""] == best.auc
    shown: Any = to_json([run])["runs"]
    assert shown[0]["membership"][0]["auc"] == best.auc
    page = write_report([tmp_path], tmp_path / "report.html").read_text(encoding="utf-8")
    assert page.partition('<section id="membership">')[2].partition("</section>")[0].count("<td>60</td>") == 4
    words = _summary([run], tmp_path / "report.html")
    assert f"{best.target}: {best.attack} ranks training rows with AUC {best.auc:.3f} (a guess 0.5)" in words


def test_the_words_of_an_offline_score() -> None:
    facts = {"attack": "lira", "rows": 60, "membership_auc": 0.75, "blind_guess": "a guess"}
    assert _scored(facts) == "lira on 60 rows: training rows ranked with AUC 0.750; a guess has .5"


def test_the_candidates_order_says_nothing_and_is_the_same_after_a_restart(tmp_path: Path) -> None:
    local = made(tmp_path)
    before = {}
    server_of(local).prepare()
    for name, client in nonempty(clients_of(local).items()):
        before[name] = client._made.grants.candidates
        rows, members = before[name]
        train = set(client.run.federation.rows_of(name, Phase.TRAIN).tolist())
        assert [row in train for row in rows.tolist()] == members.tolist()
        assert len(set(rows.tolist())) == 60
        assert 8 <= members[:30].sum() <= 22  # a shuffle: 15 ± 2·1.9
    rebuild(local, "a")
    for one, other in zip(before["a"], clients_of(local)["a"]._made.grants.candidates, strict=True):
        np.testing.assert_array_equal(one, other)
    close(local)


def test_noise_on_the_updates_hides_who_trained(tmp_path: Path) -> None:
    """Its ε is below one: hardly better than a guess."""
    local = made(tmp_path, defenses=[{"name": "dp_gaussian", "level": 40.0}])
    local.run()
    found = figures(tmp_path / "a")
    assert abs(found["membership_auc", "loss_threshold", ""] - 0.5) < 0.25


LACKING: list[tuple[dict[str, Any], str]] = [
    ({"rows": 0}, "granted no candidates"),
    (
        {
            "horizontal": {"rounds": 1, "method": "lg_fedavg"},
            "model": {"architecture": "mlp", "top": [4]},
        },
        "an update holds a part of a client's model",
    ),
    (
        {
            "horizontal": {"rounds": 1, "secure_aggregation": True},
            "secure_aggregation": True,
            "tables": THREE,
        },
        "the server saw masked updates only",
    ),
]


@pytest.mark.parametrize(("changes", "words"), LACKING)
def test_without_candidates_or_a_whole_model_they_are_skipped(
    tmp_path: Path, changes: Any, words: str
) -> None:
    local = made(tmp_path, **changes)
    local.run()
    rows = pq.read_table(tmp_path / "server" / "metrics.parquet").to_pylist()
    skipped = {r["attack"]: r["detail"] for r in rows if r["metric"] == "skipped" and r["target"] == "a"}
    assert set(skipped) == {"loss_threshold", "lira"}
    assert all(words in reason for reason in skipped.values())


def test_too_many_candidates_are_refused(tmp_path: Path) -> None:
    local = made(tmp_path, rows=90)
    with pytest.raises(
        ConfigError, match=r"disclose candidates rows = 90 at 'a': 45 training rows are needed"
    ):
        local.leader.lead()
    close(local)
    with pytest.raises(ValidationError, match="rows = 5: half of them train, give an even number"):
        Disclosure(what="candidates", to="server", rows=5)


def test_a_server_refuses_candidates_of_no_class_or_width(tmp_path: Path) -> None:
    from dataclasses import replace

    from vflens.coordinator.horizontal.granted import check_granted

    local = made(tmp_path)
    local.run()
    server = server_of(local)
    (good,) = (r for r in server.transcript.select(Point.AUXILIARY) if r.sender == "a")
    check_granted(good, "a", server.prepared)
    x, y = good.tensor("candidate_features"), good.tensor("candidate_labels")
    for features, labels in ((x[:, :30], y), (x, y + 3), (x[:4], y)):
        tensors = {"candidate_features": features, "candidate_labels": labels}
        with pytest.raises(ProtocolError, match=r"^auxiliary disclosed by .a.: candidate_"):
            check_granted(replace(good, tensors=tensors), "a", server.prepared)
