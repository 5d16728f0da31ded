"""SplitFed: what crosses the wire, what is refused, and interrupted rounds that begin anew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accidents import Fuse, Interrupted, rebuild
from horizontal import acting, clients_of, deal, federation, learned, scaled, server_of, table
from laboratory import close, let_go_later, transcripts
from oneprocess import LocalFederation

from vflens.coordinator.horizontal.split_rounds import SplitRounds
from vflens.coordinator.horizontal.split_server import SplitServer
from vflens.errors import ConfigError, ProtocolError, StateError
from vflens.protocol.acts import Step
from vflens.types import Array, Exchange, Phase, Point, Released, sealed

TABLES = {"a": table(30, 1), "b": table(17, 2)}  # 24 and 11 rows to train: 3 and 2 batches of 8
SPLIT: dict[str, Any] = {
    "model": {"architecture": "mlp", "width": 5, "hidden": [6], "top": [4]},
    "training": {"batch_size": 8, "learning_rate": 0.01},
    "horizontal": {"method": "splitfed", "rounds": 2},
}
NO_ROWS = np.zeros(0, np.int32)


@pytest.fixture
def local(tmp_path: Path) -> Iterator[LocalFederation]:
    """A federation whose clients are prepared."""
    found = federation(deal(tmp_path, TABLES, **SPLIT))
    server_of(found).prepare()
    yield found
    close(found)


def exchange(step: int) -> Exchange:
    """The exchange of a training step; a round has four."""
    return Exchange("tiny/run", Phase.TRAIN, step // 4, step)


def parameters(local: LocalFederation, step: int = 0, shift: float = 0.0) -> Step:
    """The step that begins a round."""
    bottom = {n: v for n, v in server_of(local).parameters.items() if n.startswith("bottom.")}
    tensors = {n: sealed(v + np.float32(shift)) for n, v in bottom.items()}
    sent = Released("server", exchange(step), Point.PARAMETERS, NO_ROWS, tensors=tensors)
    return Step(exchange(step), NO_ROWS, sent)


def gradient(step: int, rows: int = 8, width: int = 5, **changed: Any) -> Step:
    """A step that brings the gradient of the embedding before."""
    values = sealed(np.full((rows, width), 0.1, np.float32))
    places = np.arange(rows, dtype=np.int32)
    sent = Released("server", exchange(step - 1), Point.GRADIENT, places, tensors={"gradient": values})
    return Step(exchange(step), NO_ROWS, replace(sent, **changed))


def test_embeddings_and_labels_go_up_without_rows_and_the_top_comes_down_at_the_end_alone(
    tmp_path: Path,
) -> None:
    local = federation(deal(tmp_path, TABLES, **SPLIT))
    local.run()
    received = list(server_of(local).transcript)
    assert {r.point for r in received} == {Point.EMBEDDING, Point.UPDATE}
    for released in received:
        if released.point is Point.EMBEDDING:
            assert set(released.tensors or ()) == {"embedding", "labels"}
            np.testing.assert_array_equal(released.rows, np.arange(len(released.rows)))
        else:
            assert all(name.startswith("bottom.") for name in released.tensors or ())
    counts = {s: sum(r.point is Point.EMBEDDING and r.sender == s for r in received) for s in TABLES}
    assert counts == {"a": 2 * 3, "b": 2 * 2}
    for client in clients_of(local).values():
        seen = list(client.transcript)
        assert {r.point for r in seen} == {Point.PARAMETERS, Point.GRADIENT}
        *rounds, last = [r for r in seen if r.point is Point.PARAMETERS]
        assert len(rounds) == 2
        assert all(n.startswith("bottom.") for r in rounds for n in r.tensors or ())
        assert set(last.tensors or ()) == set(server_of(local).parameters)
    kept = b"".join(f.read_bytes() for f in (tmp_path / "server").rglob("*") if f.is_file())
    labels = scaled(TABLES["b"])[1]
    assert any(row.tobytes() in kept for row in labels)  # the search would find what left
    for own in TABLES.values():
        for value in (*own.ids, own.features[0], scaled(own)[0][0].astype(np.float32)):
            assert np.ascontiguousarray(value).tobytes().rstrip(b"\0") not in kept


def test_a_step_of_this_round_has_one_answer(local: LocalFederation) -> None:
    client = clients_of(local)["a"]
    acts = [parameters(local), gradient(1), gradient(2), gradient(3)]
    first = [_bits(client.step(act).released) for act in acts]
    state = {n: v.tobytes() for n, v in acting(client).items()}
    assert [_bits(client.step(act).released) for act in acts] == first
    assert {n: v.tobytes() for n, v in acting(client).items()} == state
    assert len(set(first)) == 4


def test_a_gradient_is_on_disk_before_its_answer(local: LocalFederation) -> None:
    """A kept answer is given again after a restart, without the gradient that it took."""
    client = clients_of(local)["a"]
    for act in (parameters(local), gradient(1), gradient(2), gradient(3)):
        client.step(act)
    arrived = [r.exchange.step for r in client.transcript if r.point is Point.GRADIENT]
    assert arrived == [0, 1, 2]


def _bits(released: Released | None) -> tuple[Point, bytes]:
    assert released is not None
    return released.point, b"".join(tensor.tobytes() for tensor in (released.tensors or {}).values())


@pytest.mark.parametrize(
    ("act", "error", "words"),
    [
        (gradient(2), StateError, "step 2 is not due at 'a': begin round 0"),
        (gradient(1, rows=7), ProtocolError, "no gradient of the embedding before"),
        (gradient(1, width=4), ProtocolError, "shape"),
        (gradient(1, sender="b"), ProtocolError, "'b'"),
        (gradient(1, point=Point.PARAMETERS), ProtocolError, "gradient"),
        (
            gradient(1, tensors={"gradient": sealed(np.full((8, 5), np.nan, np.float32))}),
            ProtocolError,
            "NaN",
        ),
        (Step(exchange(1), NO_ROWS, None), ProtocolError, "no gradient of the embedding before"),
        (gradient(9), StateError, "is over|not due"),
    ],
)
def test_a_gradient_that_is_not_due_is_refused(
    local: LocalFederation, act: Step, error: type[Exception], words: str
) -> None:
    client = clients_of(local)["a"]
    client.step(parameters(local))
    with pytest.raises(error, match=words):
        client.step(act)
    assert client.step(gradient(1)).released is not None  # nothing was lost


def test_other_parameters_of_the_same_round_are_refused(local: LocalFederation) -> None:
    """Their embeddings would show how the first layers differ, without noise."""
    client = clients_of(local)["a"]
    first = _bits(client.step(parameters(local)).released)
    assert _bits(client.step(parameters(local, shift=0.5)).released) == first  # the answer of the log
    whole = {n: sealed(v) for n, v in server_of(local).parameters.items()}
    sent = Released("server", exchange(4), Point.PARAMETERS, NO_ROWS, tensors=whole)
    with pytest.raises(ProtocolError, match=r"top\."):
        client.step(Step(exchange(4), NO_ROWS, sent))


def test_other_gradients_after_a_restart_get_no_second_draw_of_noise(tmp_path: Path) -> None:
    noisy = [{"name": "dp_gaussian"}]
    local = federation(deal(tmp_path, TABLES, defenses=noisy, **SPLIT))
    server_of(local).prepare()
    acts = [parameters(local), gradient(1), gradient(2), gradient(3)]
    first = [_bits(clients_of(local)["a"].step(act).released) for act in acts]
    rebuild(local, "a")
    client = clients_of(local)["a"]
    assert [_bits(client.step(act).released) for act in acts[:2]] == first[:2]
    other = replace(gradient(2), received=_scaled(gradient(2).received, -30.0))
    with pytest.raises(StateError, match="left with other numbers before a restart"):
        client.step(other)
    close(local)


def _scaled(released: Released | None, factor: float) -> Released:
    assert released is not None
    return replace(released, tensors={"gradient": sealed(released.tensor("gradient") * np.float32(factor))})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"rows": np.arange(9, dtype=np.int32)}, "without an embedding"),
        ({"rows": NO_ROWS}, "without an embedding"),
        ({"exchange": exchange(1)}, "without an embedding"),
        ({"sender": "b"}, "'b'"),
        ({"point": Point.UPDATE}, "embedding"),
        ({"labels": np.full((8, 3), np.inf)}, "NaN, infinite"),
        ({"labels": np.zeros((8, 4))}, "shape"),
        ({"more": np.zeros(1)}, "sent more"),
    ],
)
def test_an_embedding_that_does_not_fit_is_refused(
    local: LocalFederation, change: dict[str, Any], words: str
) -> None:
    server = server_of(local)
    assert isinstance(server, SplitServer)
    released = clients_of(local)["a"].step(parameters(local)).released
    assert released is not None
    tensors: dict[str, Array] = dict(released.tensors or {})
    tensors |= {n: sealed(v) for n, v in change.items() if n in ("labels", "more")}
    kept = {n: v for n, v in change.items() if n not in ("labels", "more")}
    rounds = server.rounds()
    assert isinstance(rounds, SplitRounds)
    rounds._embedding(released, "a", exchange(0))
    with pytest.raises(ProtocolError, match=words):
        rounds._embedding(replace(released, tensors=tensors, **kept), "a", exchange(0))


@pytest.mark.parametrize(
    ("horizontal", "words"),
    [
        ({"participants": 1}, "horizontal.participants with method = 'splitfed'"),
        ({"absent": "leave_out"}, "horizontal.absent with method = 'splitfed'"),
        ({"secure_aggregation": True}, "horizontal.secure_aggregation with method = 'splitfed'"),
    ],
)
def test_rounds_without_some_clients_are_refused(
    tmp_path: Path, horizontal: dict[str, Any], words: str
) -> None:
    files = deal(tmp_path, TABLES, **{**SPLIT, "horizontal": {**SPLIT["horizontal"], **horizontal}})
    with pytest.raises(ConfigError, match=words):
        federation(files)


def test_a_client_that_comes_back_before_the_run_is_prepared_is_taken_back(tmp_path: Path) -> None:
    made = let_go_later(federation(deal(tmp_path, TABLES, **SPLIT)))
    assert server_of(made).federation is None
    assert server_of(made).learned_by("a", -1) == -1


def test_a_budget_is_refused_where_embeddings_leave(tmp_path: Path) -> None:
    noisy = [{"name": "dp_gaussian"}]
    local = federation(deal(tmp_path, TABLES, **SPLIT, defenses=noisy, limits={"epsilon": 1e6}))
    with pytest.raises(ConfigError, match="embeddings leave in every batch, whose cost is not counted"):
        server_of(local).prepare()
    close(local)


def test_a_restart_between_rounds_loses_nothing_that_a_defence_kept(tmp_path: Path) -> None:
    """What was not sent of the first round's update goes with the second's."""
    left = [{"name": "error_feedback", "kept": 0.2}]
    settings = {**SPLIT, "defenses": left, "limits": {"checkpoint_steps": 2}}
    whole = federation(deal(tmp_path / "whole", TABLES, **settings))
    whole.run()
    local = federation(deal(tmp_path / "cut", TABLES, **settings))
    server = server_of(local)
    server.prepare()
    server.links["b"] = fuse = Fuse(server.links["b"], 3)  # its two batches and its update
    with pytest.raises(Interrupted):
        server.train()
    server.links["b"] = fuse.inner
    rebuild(local, "b")
    server_of(local).rejoin()
    server_of(local).lead()
    local.complete()
    close(local)
    assert learned(local) == learned(whole)
    assert transcripts(tmp_path / "cut") == transcripts(tmp_path / "whole")
