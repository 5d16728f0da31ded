"""Whose training row is it: the attack in whole runs, its score at each client, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from horizontal import CLASSES, clients_of, deal, federation, server_of
from oneprocess import LocalFederation

from vflens.cli.evidence import _scored
from vflens.experiments.evidence.matrix import rows
from vflens.experiments.evidence.measured import measured
from vflens.experiments.outcome.decide import State
from vflens.experiments.outcome.finding import Quantity
from vflens.experiments.results.labels_membership import sites, sites_told
from vflens.experiments.results.record import read_runs
from vflens.experiments.results.verdict import verdict
from vflens.tables.table import Table
from vflens.types import Array, ColumnInfo, Phase, Point

ROWS = 60  # candidates of a client, half of them trained on


def table(seed: int) -> Table:
    """Labels that follow from nothing: a model knows those of its own rows by heart."""
    rng = np.random.default_rng(seed)
    columns = tuple(ColumnInfo(f"c{j}", 0.0, 1.0) for j in range(50))
    ids = np.array([f"{seed}-{i}".encode() for i in range(80)])
    features, labels = rng.random((80, 50)), rng.integers(0, len(CLASSES), 80)
    split = (np.arange(80) >= 40).astype(np.uint8)
    return Table(ids, columns, features, labels, class_names=CLASSES, split=split)


TABLES = {"a": table(1), "b": table(2), "c": table(3)}


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, LocalFederation]:
    folder = tmp_path_factory.mktemp("sites")
    return folder, ran(folder)


def ran(folder: Path, **changes: Any) -> LocalFederation:
    settings: dict[str, Any] = {
        "training": {"batch_size": 20, "learning_rate": 0.1, "l2": 0.0},
        "horizontal": {"rounds": 2, "local_epochs": 20},
        "attacks": [{"name": "source_inference"}],
    }
    disclose = [{"what": "candidates", "to": "server", "rows": ROWS}]
    local = federation(deal(folder, TABLES, disclose=disclose, **{**settings, **changes}))
    local.run()
    return local


def figure(folder: Path, client: str, metric: str) -> float:
    metrics = pq.read_table(folder / client / "metrics.parquet").to_pylist()
    (value,) = (r["value"] for r in metrics if r["metric"] == metric and r["target"] == client)
    return float(value)


def losses(local: LocalFederation, client: str, x: Array, y: Array) -> Array:
    """Losses of rows under the own model of ``client`` after the last round, by hand."""
    server = server_of(local)
    sent = [r for r in server.transcript.select(Point.UPDATE) if r.sender == client]
    last = sent[-1]
    given = clients_of(local)[client].transcript.select(Point.PARAMETERS, phases={Phase.TRAIN})
    (start,) = (r.tensors for r in given if r.exchange.round == last.exchange.round)
    assert start is not None
    assert last.tensors is not None
    weight, bias = (start[n] + last.tensors[n] for n in ("weight", "bias"))
    z = x @ weight.T + bias
    z -= z.max(axis=1, keepdims=True)
    found: Array = np.log(np.exp(z).sum(axis=1)) - z[np.arange(len(y)), y]
    return found


def test_the_client_whose_model_errs_least_is_named(trained: tuple[Path, LocalFederation]) -> None:
    folder, local = trained
    for place, client in enumerate("abc"):
        (granted,) = (r for r in server_of(local).transcript.select(Point.AUXILIARY) if r.sender == client)
        x, y = granted.tensor("candidate_features"), granted.tensor("candidate_labels")
        named = np.argmin([losses(local, other, x, y) for other in "abc"], axis=0) == place
        own = clients_of(local)[client].run
        own_rows = own.truth[own.federation.rows_of(client, Phase.TRAIN)]
        members = (x[:, None] == own_rows).all(axis=2).any(axis=1)
        assert members.sum() == ROWS // 2
        assert figure(folder, client, "source_right") == pytest.approx(named[members].mean())
        assert figure(folder, client, "source_right_others") == pytest.approx(named[~members].mean())
        assert figure(folder, client, "blind_source_right") == pytest.approx(1 / 3)


def test_rows_known_by_heart_betray_their_client_and_others_do_not(
    trained: tuple[Path, LocalFederation],
) -> None:
    (run,) = read_runs([trained[0]])
    inside, others = sites(run)
    assert inside.state is State.FOUND
    assert inside.value > 0.5
    assert others.state is not State.FOUND
    assert inside.rows == others.rows == 3 * ROWS // 2
    assert inside.blind == pytest.approx(1 / 3)
    assert "Which client a training row is from: found, source_inference names" in str(verdict([run]))


def test_a_dpia_says_which_site_a_case_is_from(trained: tuple[Path, LocalFederation]) -> None:
    """Rows that nobody trained on say nothing: who is told apart there was not betrayed."""
    (run,) = read_runs([trained[0]])
    (site,) = run.findings.only(Quantity.SITES)
    inside, _ = sites(run)
    assert (site.value, site.rows, site.adversary) == (inside.value, inside.rows, "the server")
    _, body = rows(list(measured([run.findings])))
    (cell,) = (line[1] for line in body if line[0] == "which site a case is from")
    assert cell == f"found ({100 * inside.value:.1f} %; a guess 33.3 %)"


def test_of_one_client_alone_nothing_is_said(trained: tuple[Path, LocalFederation]) -> None:
    """Who names one client always is right there, and knows nothing."""
    (run,) = read_runs([trained[0] / "a"])
    assert sites(run) == ()
    assert "from" not in " ".join(sites_told(sites(run)))


def test_noise_on_the_updates_hides_the_client(tmp_path: Path) -> None:
    defenses = [{"name": "dp_gaussian", "level": 40.0}]
    ran(tmp_path, defenses=defenses)
    (run,) = read_runs([tmp_path])
    inside, _ = sites(run)
    assert inside.state is not State.FOUND
    (words,) = sites_told(sites(run), "With noise, ")
    assert words.startswith("With noise, which client a training row is from: not ")


def test_the_words_of_an_offline_score() -> None:
    shares = {"source_right": 0.47, "source_right_others": 0.3, "blind_source_right": 1 / 3}
    words = _scored({"attack": "source_inference", "rows": 60, "blind_guess": "a guess", **shares})
    assert words == (
        "source_inference on 60 rows: 47 % of training rows, 30 % of others named as this client's; "
        "a guess 33 %"
    )
