"""A server whose first model sorts rows into bins: what sums without terms still give away."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accidents import over_grpc
from alone import alone_in_bins
from horizontal import COLUMNS, clients_of, deal, federation, scaled, server_of, table
from laboratory import close, estimates, figures, transcripts
from stubparty import short_folder

from vflens.config import load_party
from vflens.config.compatibility import build_attacks
from vflens.errors import ConfigError, ProtocolError
from vflens.experiments.pages.report import render
from vflens.experiments.results.ledger import notes
from vflens.experiments.results.record import read_runs
from vflens.experiments.results.verdict import alarms
from vflens.experiments.run.check import check_party
from vflens.protocol.acts import SUMS, Guess, Submission
from vflens.storage.files import load_arrays
from vflens.storage.journal import Reader
from vflens.types import Array, Point

TABLES = {name: table(rows, seed) for seed, (name, rows) in enumerate({"a": 21, "b": 16, "c": 18}.items())}
MLP = {"family": "split_network", "architecture": "mlp", "width": 64, "top": [8], "precision": "float64"}
#: Columns are normal of deviation 1/8, four of them: so is their mean, of half the deviation.
IMPRINT = {"name": "imprint", "mean": 0.5, "deviation": 1 / 16}
SECURE: dict[str, Any] = {
    "model": MLP,
    "training": {"optimizer": "sgd", "learning_rate": 0.1, "batch_size": 16},
    "horizontal": {"rounds": 2, "local_steps": 1, "secure_aggregation": True},
    "secure_aggregation": True,  # at the clients
    "attacks": [IMPRINT],
    "malicious": True,
}


def run(home: Path, **changes: Any) -> None:
    federation(deal(home, TABLES, **{**SECURE, **changes})).run()


def skipped(home: Path) -> set[str]:
    return {reason for metric, _, reason in figures(home / "server") if metric == "skipped"}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("whole")
    run(home)
    return home


def alone_of(home: Path) -> dict[str, Array]:
    """Client → its training rows of the first round that share no bin with any other client's.

    Each client has one batch of all its training rows, so all rows are in the round.
    """
    start = load_arrays(home / "server/own.npz")
    rows = {name: scaled(of)[0] for name, of in TABLES.items()}
    x = np.concatenate([*rows.values()])
    alone = alone_in_bins(x @ start["start/bottom.0.weight"][0], -start["start/bottom.0.bias"])
    owner = np.repeat([*rows], [len(r) for r in rows.values()])
    return {name: x[alone][owner[alone] == name] for name in rows}


def test_the_sum_shows_each_row_that_is_alone_in_its_bin(whole: Path) -> None:
    """The server received masked updates only; the clients score which of the rows are theirs."""
    points = {r.point for r in Reader(whole / "server/transcript").select(*Point)}
    assert points == {Point.MASKED_UPDATE}
    for name, alone in alone_of(whole).items():
        found = load_arrays(whole / f"server/estimates/{name}.imprint.sums.npz")
        ok = found["values"][found["status"] == "ok"]
        assert len(alone) >= 4
        assert max(np.abs(ok - row).max(axis=1).min() for row in alone) < 1e-6
        own = figures(whole / name)
        assert 0.1 < own["rows_found", "imprint", ""] < 1
        assert own["matched_mse", "imprint", ""] < own["blind_matched_mse", "column_means", ""]
    assert len(ok) == sum(map(len, alone_of(whole).values()))


def test_updates_in_the_clear_give_the_same(tmp_path: Path, whole: Path) -> None:
    """It reads their sum alone."""
    run(tmp_path, horizontal={"rounds": 2, "local_steps": 1}, secure_aggregation=False)
    for name in TABLES:
        clear, masked = (
            load_arrays(home / f"server/estimates/{name}.imprint.sums.npz") for home in (tmp_path, whole)
        )
        np.testing.assert_array_equal(clear["status"], masked["status"])
        np.testing.assert_allclose(clear["values"], masked["values"], atol=1e-6)


def test_both_links_give_the_same(whole: Path) -> None:
    with short_folder() as home:
        local = federation(deal(home, TABLES, **SECURE))
        with over_grpc(local):
            local.leader.lead()
            local.complete()
        close(local)
        assert (transcripts(home), estimates(home)) == (transcripts(whole), estimates(whole))


def test_it_is_marked_everywhere(tmp_path: Path, whole: Path) -> None:
    files = deal(tmp_path, TABLES, **SECURE)
    files["server"].parent.chmod(0o700)
    assert "MALICIOUS: it sends a first model" in check_party(load_party(files["server"]))["summary"]
    (found,) = read_runs([whole])
    assert any(a.startswith("MALICIOUS") and "server sent a first model" in a for a in alarms([found]))
    assert any(n.startswith("MALICIOUS") for n in notes(found, []))
    assert "rows of all clients in round 0" in render([found])
    assert "malicious" in (whole / "server/events.jsonl").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"malicious": False}, "sends a first model that is made for its attack: set malicious = true"),
        ({"attacks": []}, "exactly one attack that breaks the protocol"),
        ({"horizontal": {"method": "lg_fedavg"}, "secure_aggregation": False}, "choose 'fedavg'"),
    ],
)
def test_what_is_no_such_server_is_refused(tmp_path: Path, changes: Mapping[str, Any], reason: str) -> None:
    files = deal(tmp_path, TABLES, **{**SECURE, **changes})
    with pytest.raises(ConfigError, match=reason):
        build_attacks(load_party(files["server"]))


def test_several_local_steps_leave_no_gradient(tmp_path: Path) -> None:
    run(tmp_path, horizontal={**SECURE["horizontal"], "local_steps": 2})
    assert any("is 2 local step(s) of sgd" in reason for reason in skipped(tmp_path))


@pytest.mark.parametrize(("rows", "estimates"), [(3, "features"), (99, "features"), (49, "labels")])
def test_a_client_scores_the_rows_of_all_clients_and_no_others(
    tmp_path: Path, rows: int, estimates: str
) -> None:
    local = federation(deal(tmp_path, TABLES, **SECURE))
    server_of(local).prepare()
    server_of(local).train()
    server_of(local).disclose()
    server_of(local).open_predictions()
    values = np.zeros((rows, len(COLUMNS) if estimates == "features" else 3))
    guess = Guess("imprint", values, np.zeros(rows, np.uint8))
    given = "tiny/run", "server", SUMS, np.arange(rows, dtype=np.int32), (guess,)
    with pytest.raises(ProtocolError, match="estimate columns of the rows of all clients, from 15 to 37"):
        clients_of(local)["a"].score(Submission(*given, estimates=estimates, step=0))
    close(local)
