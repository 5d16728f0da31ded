"""Defences that watch the gradients that arrive: an honest run raises no alarm, a hijacked one does."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from accidents import outcome, rebuild_all, train_until
from horizontal import clients_of, server_of, table
from horizontal import deal as deal_clients
from horizontal import federation as clients_federation
from laboratory import close, deal, experiment, federation, let_go_later
from oneprocess import LocalFederation
from thinned import first

from vflens.clients.horizontal.splitfed_rounds import SplitFedRounds
from vflens.clients.vertical.clear.passive import ClearPassive
from vflens.config import load_party
from vflens.errors import ConfigError
from vflens.experiments.pages.report import render
from vflens.experiments.results.record import read_runs
from vflens.experiments.results.verdict import alarms, to_json
from vflens.experiments.run.check import check_party
from vflens.experiments.watch.page import RunsPage
from vflens.randomness import generator
from vflens.storage import journal
from vflens.storage.arrow import parquet_rows
from vflens.types import Array, Exchange, Phase, Point

HONEST: dict[str, Any] = {
    "data": {"name": "breast_cancer", "public": 150},
    "model": {"architecture": "mlp", "precision": "float64"},
    "training": {"epochs": 14, "batch_size": 32, "learning_rate": 0.005},
    "attacks": [],
    "disclose": [],
}
HIJACKED = {**HONEST, "attacks": [{"name": "fsha"}], "malicious": True}
GUARD = {"at": "passive", "name": "split_guard"}
SCRUTINIZER = 'defenses = [{ name = "gradient_scrutinizer" }]'


def _labelled(home: Path, **changes: Any) -> LocalFederation:
    """A federation whose passive party has the labels in its own table, and watches with them."""
    files = deal(experiment(home, **changes), home)
    active, passive = (pq.read_table(files[p].parent / "data.parquet") for p in ("active", "passive"))
    labels = dict(zip(active["id"].to_pylist(), active["label"].to_pylist(), strict=True))
    own = pa.array([labels[i] for i in passive["id"].to_pylist()])
    pq.write_table(passive.append_column("label", own), files["passive"].parent / "data.parquet")
    text = files["passive"].read_text(encoding="utf-8")
    text = text.replace('id_column = "id"', 'id_column = "id"\nlabel_column = "label"')
    files["passive"].write_text(text.replace("defenses = []", SCRUTINIZER), encoding="utf-8")
    return let_go_later(LocalFederation(files, lambda stage, done, total: None))


def _figures(home: Path, metric: str) -> dict[int, float]:
    rows = parquet_rows(home / "passive/metrics.parquet")
    return {r["step"]: r["value"] for r in rows if r["metric"] == metric}


def _received(home: Path) -> list[Any]:
    return [r for r in journal.read(home / "passive/transcript") if r.point is Point.GRADIENT]


@pytest.mark.parametrize("detector", first(["split_guard", "gradient_scrutinizer"]))
def test_a_hijacked_run_raises_an_alarm_and_an_honest_one_none(tmp_path: Path, detector: str) -> None:
    for name, settings in (("honest", HONEST), ("hijacked", HIJACKED)):
        home = tmp_path / name
        guarded = detector == "split_guard"
        local = federation(home, **settings, defenses=[GUARD]) if guarded else _labelled(home, **settings)
        local.run()
        close(local)
        (run,) = read_runs([home])
        words = [a for a in alarms([run]) if a.startswith("HIJACKING SUSPECTED")]
        assert _figures(home, "hijack_score")
        assert bool(words) == (name == "hijacked")
        assert bool(to_json([run])["runs"][0]["hijacking_suspected"]) == bool(words)
        logged = "hijacking suspected" in (home / "passive/events.jsonl").read_text(encoding="utf-8")
        assert logged == bool(words)
        assert all(detector in sentence and "passive" in sentence for sentence in words)
        assert ("HIJACKING SUSPECTED" in render([run])) == bool(words)
        assert ("HIJACKING SUSPECTED" in RunsPage([home]).panels({})["alarms"]) == bool(words)


@pytest.mark.facts
def test_a_hijack_with_labels_gets_past_the_guard(tmp_path: Path) -> None:
    """An honest training does so, and fsha does not."""
    hijacked = {**HIJACKED, "attacks": [{"name": "urvfl"}]}
    local = federation(tmp_path, **hijacked, defenses=[GUARD])
    local.run()
    close(local)
    scores = [*_figures(tmp_path, "hijack_score").values()]
    assert len(scores) > 10
    assert min(scores[2:]) > 0.9  # the first rest on one or two fake batches
    assert not _figures(tmp_path, "hijack_alarm")


def test_the_scrutinizers_score_follows_from_the_transcript_pair_by_pair(tmp_path: Path) -> None:
    """Another route: loops over pairs, and a parabola by the normal equations."""
    local = _labelled(tmp_path, **HONEST)
    local.run()
    labels = local.data_parties["passive"].owner.labels
    assert labels is not None
    close(local)
    steps = []
    for released in _received(tmp_path)[:50]:
        g, y = released.tensor("gradient"), labels[released.rows]
        pairs = [(i, j) for i in range(len(g)) for j in range(i)]
        cos = {(i, j): g[i] @ g[j] / np.linalg.norm(g[i]) / np.linalg.norm(g[j]) for i, j in pairs}
        same = [(1 + cos[i, j]) / 2 for i, j in pairs if y[i] == y[j]]
        other = [(1 + cos[i, j]) / 2 for i, j in pairs if y[i] != y[j]]
        steps.append((np.mean(same), np.std(same), np.mean(other), np.std(other)))
    found = np.array(steps)
    time = np.vander(np.arange(50.0), 3)
    misfits = []
    for values in (found[:, 0], found[:, 2]):
        weights = np.linalg.solve(time.T @ time, time.T @ values)
        misfits.append(np.sqrt(np.mean((time @ weights - values) ** 2)))
    s, s_std, d, d_std = found[-1]
    shared = max(0.0, min(s + s_std, d + d_std) - max(s - s_std, d - d_std))
    whole = max(s + s_std, d + d_std) - min(s - s_std, d - d_std)
    gap = (s - d) / (s + d)
    product = gap / abs(gap) ** 0.6 * np.log(7 * np.mean(misfits) + np.exp(-2.0))
    product *= np.log(shared / whole + np.exp(-1.0))
    expected = 1 / (1 + np.exp(-5 * (product - 0.7)))
    assert _figures(tmp_path, "hijack_score")[49] == pytest.approx(expected, abs=1e-8)


def test_the_guards_score_follows_from_the_transcripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fake batches are those whose embeddings arrived in another order than an unguarded model gives them;
    the score is equation 6 on lists of gradients of the one layer.
    """
    local = federation(tmp_path, **HONEST, defenses=[GUARD])
    party = local.passive["passive"]
    weights: dict[int, Any] = {}
    learn = ClearPassive.relearn

    def watched(training: ClearPassive, logged: Any) -> None:
        weights[logged[0].exchange.step] = party.run.model.parameters()
        learn(training, logged)

    monkeypatch.setattr(ClearPassive, "relearn", watched)
    local.run()
    columns = party.run.truth
    sent = {
        r.exchange.step: r.tensor("embedding")
        for r in journal.read(tmp_path / "coordinator/transcript")
        if r.point is Point.EMBEDDING and r.exchange.phase is Phase.TRAIN and r.sender == "passive"
    }
    close(local)
    groups: dict[int, list[Any]] = {0: [], 1: [], 2: []}
    scores = {}
    for released in _received(tmp_path):
        step, x, g = released.exchange.step, columns[released.rows], released.tensor("gradient")
        if step < 20:
            continue
        W, b = (weights[step][n] for n in sorted(weights[step], key=lambda n: -weights[step][n].ndim))
        order = [int(np.abs(x @ W.T + b - row).sum(axis=1).argmin()) for row in sent[step]]
        fake = order != list(range(len(x)))
        kind = 0 if fake else 1 + int(_half(party, step))
        groups[kind].append(sum(np.outer(x[j], g[i]).ravel() for i, j in enumerate(order)))
        if fake and all(groups.values()):
            scores[step] = _equation_6(groups)
    assert len(scores) > 10
    assert _figures(tmp_path, "hijack_score") == pytest.approx(scores, abs=1e-6)


def _half(party: Any, step: int) -> int:
    """In which half of the usual batches the party put ``step``: its own secret draw."""
    key = party.chain.context(0, "on_received", _exchange(party, step), np.zeros(0, np.int32)).key
    return int(generator(key("half", str(step))).integers(2))


def _exchange(party: Any, step: int) -> Any:
    return Exchange(party.config.run, Phase.TRAIN, 0, step)


def _equation_6(groups: dict[int, list[Any]]) -> float:
    mean = {k: np.mean(v, axis=0) for k, v in groups.items()}
    size = {k: np.mean([np.linalg.norm(g) for g in v]) for k, v in groups.items()}

    def angle(a: Any, b: Any) -> float:
        return float(np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))

    far, near = abs(size[0] - (size[1] + size[2]) / 2), abs(size[1] - size[2])
    S = angle(mean[0], (mean[1] + mean[2]) / 2) * far - angle(mean[1], mean[2]) * near
    return float((1 / (1 + np.exp(-5 * S / (far + near)))) ** 2)


def test_a_restart_changes_no_bit_and_no_score(tmp_path: Path) -> None:
    settings = {**HONEST, "training": {**HONEST["training"], "epochs": 4}, "limits": {"checkpoint_steps": 7}}
    found = []
    for name in ("plain", "again"):
        local = federation(tmp_path / name, **settings, defenses=[GUARD])
        local.coordinator.prepare()
        if name == "again":
            train_until(local, 40)
            rebuild_all(local)
        local.coordinator.train()
        bits = outcome(local, tmp_path / name)
        close(local)
        found.append((bits, _figures(tmp_path / name, "hijack_score")))
    assert found[0][1]
    assert found[0] == found[1]


SPLIT: dict[str, Any] = {
    "model": {"architecture": "mlp", "width": 5, "hidden": [6], "top": [4]},
    "training": {"batch_size": 8, "learning_rate": 0.01},
    "horizontal": {"method": "splitfed", "rounds": 2},
}


def _of_client(home: Path, defenses: list[dict[str, Any]]) -> tuple[dict[int, Array], dict[int, Array]]:
    """By step the labels that left, and the gradients from which the client learned."""
    local = clients_federation(deal_clients(home, {"a": table(60, 1)}, **SPLIT, defenses=defenses))
    server_of(local).prepare()
    steps, learned = clients_of(local)["a"].training, dict[int, Array]()
    assert isinstance(steps, SplitFedRounds)
    learn = steps._bottom.learn

    def watched(x: Array, g: Array, exchange: Exchange) -> None:
        learned[exchange.step] = g
        learn(x, g, exchange)

    steps._bottom.learn = watched  # type: ignore[method-assign, assignment]
    server_of(local).train()
    received = [r for r in server_of(local).transcript if r.point is Point.EMBEDDING]
    close(local)
    return {r.exchange.step: r.tensor("labels") for r in received}, learned


def test_a_client_of_splitfed_sends_other_labels_and_learns_nothing_from_them(tmp_path: Path) -> None:
    """Beside a client without the defence, which draws the same batches."""
    guard = {"name": "split_guard", "share": 0.5, "start": 2}
    labels, learned = _of_client(tmp_path / "guarded", [guard])
    true, _ = _of_client(tmp_path / "plain", [])
    fake = {step for step in true if (labels[step] != true[step]).any()}
    assert 0 < len(fake) < len(true) - 2
    assert min(fake) >= 2
    assert all((labels[step].argmax(axis=1) != true[step].argmax(axis=1)).all() for step in fake)
    assert {step for step, g in learned.items() if not g.any()} == fake


def test_where_no_gradient_arrives_it_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'split_guard' at active 'active' would never act"):
        federation(tmp_path, **HONEST, defenses=[{**GUARD, "at": "active"}])


def test_a_client_that_receives_no_gradients_is_refused(tmp_path: Path) -> None:
    guard = [{"name": "split_guard"}]
    local = clients_federation(deal_clients(tmp_path, {"a": table(30, 1)}, defenses=guard))
    with pytest.raises(ConfigError, match="choose 'splitfed'"):
        server_of(local).prepare()
    close(local)


def test_a_passive_party_without_labels_cannot_scrutinise(tmp_path: Path) -> None:
    files = deal(experiment(tmp_path, **HONEST), tmp_path)
    text = files["passive"].read_text(encoding="utf-8").replace("defenses = []", SCRUTINIZER)
    files["passive"].write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match="reads labels of its owner"):
        check_party(load_party(files["passive"]))
