"""Defences of a client's updates and batches, each held to what it says, in whole runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accidents import Fuse, Interrupted, rebuild
from horizontal import clients_of, deal, federation, scaled, server_of, table
from laboratory import close, figures, transcripts
from nonempty import nonempty
from oneprocess import LocalFederation

from vflens.clients.horizontal.local_run import local_batches
from vflens.defenses.error_feedback import ErrorFeedback
from vflens.errors import ConfigError, DefenseError
from vflens.experiments.pages.report import render
from vflens.experiments.results.record import read_run
from vflens.experiments.results.titles import labels
from vflens.experiments.results.verdict import to_json
from vflens.experiments.watch import panels
from vflens.numerics.measures.ranking import accuracy
from vflens.numerics.updates import largest_numbers
from vflens.plugins.defense import Context
from vflens.plugins.memory import Memory
from vflens.types import Array, Exchange, Phase, Point

TABLES = {"a": table(30, 1), "b": table(17, 2)}
FEEDBACK = {"name": "error_feedback", "kept": 0.2}
BATCHES: dict[str, Any] = {
    "training": {"optimizer": "sgd", "learning_rate": 0.5, "batch_size": 8},
    "horizontal": {"rounds": 4},
    "limits": {"checkpoint_steps": 3},
}
Bits = tuple[dict[str, bytes], dict[str, str]]


def made(folder: Path, *defenses: Mapping[str, Any], **settings: Any) -> LocalFederation:
    return federation(deal(folder, TABLES, defenses=defenses, **{**BATCHES, **settings}))


def flat(tensors: Mapping[str, Array] | None) -> Array:
    return np.concatenate([tensor.ravel() for tensor in (tensors or {}).values()])


def updates(local: LocalFederation, client: str) -> list[Array]:
    found = server_of(local).transcript.select(Point.UPDATE)
    return [flat(released.tensors) for released in found if released.sender == client]


def bits(local: LocalFederation, home: Path) -> Bits:
    close(local)
    return {"server": flat(server_of(local).parameters).tobytes()}, transcripts(home)


# -- error_feedback


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Bits:
    """An uninterrupted run."""
    home = tmp_path_factory.mktemp("whole")
    local = made(home, FEEDBACK)
    local.run()
    return bits(local, home)


@pytest.mark.parametrize("who", ["a", "b", "everybody"])
@pytest.mark.parametrize("steps", [1, 2, 3])
def test_what_was_not_sent_survives_a_restart(tmp_path: Path, whole: Bits, who: str, steps: int) -> None:
    """ "a" has answered this round, "b" has not; the next one needs what either left of it."""
    local = made(tmp_path, FEEDBACK)
    server = server_of(local)
    server.prepare()
    server.links["b"] = fuse = Fuse(server.links["b"], steps)
    with pytest.raises(Interrupted):
        server.train()
    server.links["b"] = fuse.inner
    for name in list(local.parties) if who == "everybody" else [who]:
        rebuild(local, name)
    server_of(local).rejoin()
    server_of(local).lead()
    local.complete()
    assert bits(local, tmp_path) == whole


def test_a_restart_changes_no_bit_beside_a_private_bottom_model(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "model": {"architecture": "mlp", "width": 5, "hidden": [6], "top": [4]},
        "horizontal": {"rounds": 3, "method": "lg_fedavg"},
    }
    found = []
    for accident in (False, True):
        home = tmp_path / str(accident)
        local = made(home, FEEDBACK, **settings)
        server = server_of(local)
        server.prepare()
        if accident:
            server.links["b"] = fuse = Fuse(server.links["b"], 2)
            with pytest.raises(Interrupted):
                server.train()
            server.links["b"] = fuse.inner
            for name in list(local.parties):
                rebuild(local, name)
            server_of(local).rejoin()
        server_of(local).lead()
        local.complete()
        found.append(bits(local, home))
    assert found[0] == found[1]


def test_over_all_rounds_no_number_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the client computed is what it sent and what it still holds."""
    computed: list[Array] = []
    left: dict[str, Array] = {}
    original = ErrorFeedback.on_update

    def watched(self: ErrorFeedback, u: Array, ctx: Context) -> Array:
        computed.append(u[0])
        sent = original(self, u, ctx)
        left.update(ctx.memory)
        return sent

    monkeypatch.setattr(ErrorFeedback, "on_update", watched)
    local = federation(deal(tmp_path, {"a": TABLES["a"]}, defenses=[FEEDBACK], **BATCHES))
    local.run()
    sent = updates(local, "a")
    assert [np.count_nonzero(u) for u in sent] == [3] * 4  # ⌈.2·15⌉ of 4·3 weights and 3 biases
    np.testing.assert_allclose(sum(sent) + left["left"][0], sum(computed), rtol=0, atol=1e-12)
    assert np.linalg.norm(sum(sent) - sum(computed)) < np.linalg.norm(
        sum(largest_numbers(u[None], 0.2)[0] for u in computed) - sum(computed)
    )


def test_all_of_an_update_is_the_update(tmp_path: Path) -> None:
    found = []
    for name, defenses in (("all", [{**FEEDBACK, "kept": 1.0}]), ("none", [])):
        local = made(tmp_path / name, *defenses)
        local.run()
        found.append(flat(server_of(local).parameters))
    np.testing.assert_array_equal(found[0], found[1])


def test_a_memory_holds_two_rounds_and_a_repeated_one_reads_the_one_before() -> None:
    memory = Memory()
    assert not memory
    for number in (0, 3, 4):
        memory.keep(1, number, {"left": np.array([number])})
    again = Memory()
    again.load({**memory.state(), "weight": np.zeros(1)})
    assert sorted(again.state()) == ["memory 1 3 left", "memory 1 4 left"]
    assert again.before(1, 4)["left"] == [3]
    assert again.before(1, 9)["left"] == [4]
    assert again.before(0, 9) == {}


# -- discretisation, instahide, grad_perturb


def test_an_update_has_so_many_different_numbers(tmp_path: Path) -> None:
    model = {"architecture": "mlp", "width": 8, "hidden": [8]}
    local = made(tmp_path, {"name": "discretisation", "levels": 5}, model=model)
    local.run()
    different = [len(np.unique(u)) for name in TABLES for u in nonempty(updates(local, name))]
    assert 2 <= min(different) <= max(different) <= 5


def test_a_client_mixes_rows_and_their_labels_alike(tmp_path: Path) -> None:
    local = made(tmp_path, {"name": "instahide", "mixed": 2})
    server_of(local).prepare()
    batch, exchange = np.arange(8, dtype=np.int32), Exchange("tiny/run", Phase.TRAIN, 0, 0)
    weights = {}
    for name, client in clients_of(local).items():
        weights[name] = client.chain.fold("on_batch_labels", np.eye(8), exchange, batch)
        x = client.run.inputs[batch]
        masked = client.chain.fold("on_batch", x, exchange, batch)
        mean = client.run.inputs[np.arange(len(TABLES[name].ids))].mean()
        np.testing.assert_allclose(np.abs(masked), np.abs(weights[name] @ x - mean), atol=1e-12)
        assert {-1.0, 1.0} <= set(np.sign(masked * (weights[name] @ x - mean)).ravel())
    assert not np.array_equal(weights["a"], weights["b"])
    close(local)


def test_predictions_of_a_client_are_centred_as_its_batches_were(tmp_path: Path) -> None:
    local = made(tmp_path, {"name": "instahide", "mixed": 1, "mask_predictions": False})
    local.run()
    client = clients_of(local)["a"]
    run = client.run
    rows = run.federation.rows_of("a", Phase.PREDICT)
    centred = run.inputs[rows] - run.inputs[np.arange(len(TABLES["a"].ids))].mean()
    scores = run.model.log_scores(centred, Exchange("tiny/run", Phase.PREDICT, 1, 0))
    found = figures(tmp_path / "a")
    assert found["accuracy", "", ""] == accuracy(scores, run.labels[rows])


def test_an_update_is_that_of_noisy_labels(tmp_path: Path) -> None:
    """One step of softmax regression from zero: a row's −∂/∂z of −Σ_c ỹ_c ln p_c is ỹ − (Σ_c ỹ_c)/k."""
    settings = {
        "training": {"optimizer": "sgd", "learning_rate": 1.0, "batch_size": 64, "l2": 0.0},
        "horizontal": {"rounds": 1},
    }
    local = made(tmp_path, {"name": "grad_perturb", "epsilon": 1.0}, **settings)
    server = server_of(local)
    server.prepare()
    assert not flat(server.parameters).any()
    client = clients_of(local)["a"]
    rows = client.run.federation.rows_of("a", Phase.TRAIN)
    (batch,) = local_batches(client.run.federation, rows, client.secret, 0)
    drawn = client.chain.fold(
        "on_batch_labels", client.run.soft_labels[batch], Exchange("tiny/run", Phase.TRAIN, 0, 0), batch
    )
    server.train()
    x, y = scaled(TABLES["a"])
    (sent,) = (r for r in server.transcript.select(Point.UPDATE) if r.sender == "a")
    weight = (drawn - drawn.mean(axis=1, keepdims=True)).T @ x[batch] / len(batch)
    np.testing.assert_allclose(sent.tensor("weight"), weight, atol=1e-12)
    assert np.abs(sent.tensor("weight") - (y - 1 / 3).T @ x / len(x)).max() > 0.05
    close(local)


# -- defences of grants


GRANTED: dict[str, Any] = {
    "disclose": [{"what": "gradients", "to": "server", "rows": 4}],
    "attacks": [{"name": "softmax_inversion"}],
}


@pytest.mark.parametrize(
    ("name", "only"), [("averaging", True), ("max_norm", True), ("sparsification", False)]
)
def test_a_defence_that_protects_grants_alone_is_named_so_wherever_the_run_is_read(
    tmp_path: Path, name: str, only: bool
) -> None:
    """The gradients of single rows are granted; no round sends any."""
    local = made(tmp_path / "run", {"name": name}, **GRANTED)
    local.run()
    run = read_run(tmp_path / "run")
    words = f"{name} (acts on what is granted only)"
    assert run.on_grants_only == ((("a", name), ("b", name)) if only else ())
    assert (labels([run])[0].startswith(words)) == only
    document = to_json([run])["runs"][0]
    assert document["on_grants_only"] == [{"party": p, "defense": name} for p in "ab" if only]
    assert (words in render([run])) == only
    assert (words in panels.summary(run)["defenses"]) == only


def test_a_defence_of_grants_without_a_grant_ends_the_run(tmp_path: Path) -> None:
    with pytest.raises((ConfigError, DefenseError), match="'averaging'"):
        made(tmp_path, {"name": "averaging"}).run()
