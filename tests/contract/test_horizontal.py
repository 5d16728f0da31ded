"""A horizontal federation: the same bits over both links and after every restart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accidents import Fuse, Interrupted, over_grpc, rebuild
from horizontal import (
    acting,
    clients_of,
    deal,
    federation,
    learned,
    scaled,
    server_of,
)
from laboratory import close, figures, transcripts
from nonempty import nonempty
from oneprocess import LocalFederation
from stubparty import short_folder
from thinned import thinned
from torch.nn import Module
from twoclients import MLP, NO_ROWS, TABLES, local

from vflens.clients.horizontal.client import Client
from vflens.errors import ConfigError
from vflens.member.stage import Stage
from vflens.models.networks.passport import PassportLayer
from vflens.models.networks.training import Top
from vflens.protocol.acts import Step
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.types import Exchange, Phase, Point, Released

_FIXTURES = (local,)  # used by name
KINDS: dict[str, dict[str, Any]] = {
    "fedavg": MLP,
    "fedadob": {
        **MLP,
        "horizontal": {**MLP["horizontal"], "method": "lg_fedavg"},
        "defenses": [{"name": "passport"}],
    },
    "splitfed": {**MLP, "horizontal": {**MLP["horizontal"], "method": "splitfed"}},
}


def bits(local: LocalFederation, home: Path) -> tuple[dict[str, bytes], dict[str, str]]:
    """What every party has in the end, and what it received."""
    close(local)
    return learned(local), transcripts(home)


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The settings of a federation."""
    return KINDS[request.param]


_Whole = tuple[dict[str, bytes], dict[str, str]]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, _Whole]:
    """A run of each kind, to its end."""
    found = {}
    for name, settings in KINDS.items():
        home = tmp_path_factory.mktemp(name)
        local = federation(deal(home, TABLES, **settings))
        local.leader.lead()
        local.complete()
        found[name] = bits(local, home)
    return found


@pytest.fixture
def whole(uninterrupted: Mapping[str, _Whole], kind: dict[str, Any]) -> _Whole:
    """The end of an uninterrupted run of this kind."""
    return uninterrupted[next(name for name, settings in KINDS.items() if settings is kind)]


def test_both_links_give_the_same_bits(kind: Any, whole: Any) -> None:
    with short_folder() as home:
        local = federation(deal(home, TABLES, **kind))
        with over_grpc(local):
            local.leader.lead()
            local.complete()
        assert local.leader.finished.is_set()
        assert bits(local, home) == whole


@pytest.mark.parametrize(("steps", "who"), thinned(product((1, 2), ("a", "server", "everybody"))))
def test_a_restart_changes_no_bit(tmp_path: Path, kind: Any, whole: Any, who: str, steps: int) -> None:
    local = federation(deal(tmp_path, TABLES, **kind))
    server = server_of(local)
    server.prepare()
    server.links["b"] = fuse = Fuse(server.links["b"], steps)  # "a" has answered this round, "b" has not
    with pytest.raises(Interrupted):
        server.train()
    server.links["b"] = fuse.inner
    for name in list(local.parties) if who == "everybody" else [who]:
        rebuild(local, name)
    server_of(local).rejoin()
    server_of(local).lead()
    local.complete()
    assert bits(local, tmp_path) == whole


def test_a_client_that_did_not_learn_of_the_end_of_training_goes_on(
    tmp_path: Path, kind: Any, whole: Any
) -> None:
    local = federation(deal(tmp_path, TABLES, **kind))
    server = server_of(local)
    server.prepare()
    server.train()
    server.disclose()
    server.advance(Stage.OPEN)
    for name in ("a", "server"):
        rebuild(local, name)
    server_of(local).rejoin()
    server_of(local).lead()
    local.complete()
    assert bits(local, tmp_path) == whole


def test_a_client_that_died_after_the_last_round_still_measures_what_it_gained(tmp_path: Path) -> None:
    files = deal(tmp_path, TABLES, **{**MLP, "limits": {"checkpoint_steps": 1}})
    local = federation(files)
    local.leader.lead()
    before = clients_of(local)["a"].run.model.parameters()
    rebuild(local, "a")
    after = clients_of(local)["a"].run.model.parameters()
    assert {n: v.tobytes() for n, v in before.items()} == {n: v.tobytes() for n, v in after.items()}
    local.complete()
    close(local)
    found = figures(tmp_path / "a")
    assert 0 <= found["accuracy", "", ""] <= 1
    assert ("accuracy_alone", "", "") in found


def test_no_row_leaves_a_client(tmp_path: Path) -> None:
    local = federation(deal(tmp_path, TABLES, **{**MLP, "defenses": ()}))
    local.run()
    received = [r for party in local.parties.values() for r in party.transcript]
    assert {r.point for r in received} == {Point.PARAMETERS, Point.UPDATE}
    assert not any(len(r.rows) for r in received)
    kept = b"".join(f.read_bytes() for f in (tmp_path / "server").rglob("*") if f.is_file())
    for own in TABLES.values():
        for value in (*own.ids, own.features[0], scaled(own)[0][0]):
            assert np.ascontiguousarray(value).tobytes().rstrip(b"\0") not in kept


def test_nothing_of_a_private_bottom_leaves_its_client(tmp_path: Path) -> None:
    """Neither its weights, nor a passport's autoencoder, nor its keys; the search finds what did leave."""
    local = federation(deal(tmp_path, TABLES, **KINDS["fedadob"]))
    local.leader.lead()
    server, clients = server_of(local), clients_of(local)
    received = b"".join(t.tobytes() for r in server.transcript for t in (r.tensors or {}).values())
    sent = b"".join(
        t.tobytes() for c in clients.values() for r in c.transcript for t in (r.tensors or {}).values()
    )
    last = [value.tobytes() for value in server.parameters.values()]
    assert all(value in sent for value in last)
    for client in clients.values():
        state = acting(client)
        private = {n: v.tobytes() for n, v in state.items() if n.startswith("model/bottom.") and v.any()}
        layers = [m for m in _modules(client) if isinstance(m, PassportLayer)]
        keys = [key.numpy().tobytes() for layer in layers for key in layer._keys or ()]
        assert len(private) >= 4
        assert len(keys) == 2
        for value in (*private.values(), *keys):
            assert value not in received + sent
    names = {name for r in server.transcript for name in r.tensors or {}}
    assert names == set(server.parameters)
    assert all(name.startswith("top.") for name in names)
    close(local)


def test_a_round_repeated_in_the_same_process_changes_no_private_bottom(tmp_path: Path) -> None:
    """The answer did not arrive: the client answers from its log and does not learn twice."""
    local = federation(deal(tmp_path, TABLES, **KINDS["fedadob"]))
    server, client = server_of(local), clients_of(local)["a"]
    server.prepare()
    exchange = Exchange("tiny/run", Phase.TRAIN, 0, 0)
    received = Released("server", exchange, Point.PARAMETERS, NO_ROWS, tensors=server.parameters)
    found = []
    for _ in range(2):
        released = client.step(Step(exchange, NO_ROWS, received)).released
        assert released is not None
        assert released.tensors
        update = {name: value.tobytes() for name, value in released.tensors.items()}
        found.append((update, {n: v.tobytes() for n, v in acting(client).items()}))
    assert found[0] == found[1]
    close(local)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"horizontal": {"method": "lg_fedavg"}}, "softmax regression has none: choose 'fedavg'"),
        (
            {
                "model": {"architecture": "mlp", "width": 3, "trainable_top": False},
                "horizontal": {"method": "lg_fedavg"},
            },
            "nothing is averaged",
        ),
        ({"model": MLP["model"], "defenses": [{"name": "passport"}]}, "choose 'lg_fedavg'"),
    ],
)
def test_a_method_that_has_nothing_to_keep_or_to_share_is_refused(
    tmp_path: Path, settings: dict[str, Any], words: str
) -> None:
    files = deal(tmp_path, TABLES, **settings)
    with pytest.raises(ConfigError, match=words):
        _prepare(files)


def _prepare(files: Mapping[str, Path]) -> None:
    local = federation(files)
    try:
        server_of(local).prepare()
    finally:
        close(local)


def _modules(client: Client) -> Iterator[Module]:
    part = client.run.model._part
    assert isinstance(part, Top)
    return part.module.modules()


def test_an_update_is_sparse_as_a_whole(tmp_path: Path) -> None:
    sparse = [{"name": "sparsification", "kept": 0.2}]
    local = federation(deal(tmp_path, TABLES, **{**MLP, "defenses": sparse}))
    local.run()
    for released in nonempty(local.leader.transcript):
        numbers = np.concatenate([t.ravel() for t in (released.tensors or {}).values()])
        assert np.count_nonzero(numbers) == -(-len(numbers) // 5)


def test_the_noise_of_an_update_has_the_stated_deviation(tmp_path: Path) -> None:
    noisy = [{"name": "dp_gaussian", "clip": 1e-6, "level": 1e6}]
    model = {"architecture": "mlp", "width": 40, "hidden": [40], "top": [40]}
    local = federation(deal(tmp_path, TABLES, **{**MLP, "model": model, "defenses": noisy}))
    local.run()
    drawn = [np.concatenate([t.ravel() for t in (r.tensors or {}).values()]) for r in local.leader.transcript]
    assert len(drawn) == 6
    assert all(abs(d.std() - 1) < 4 / np.sqrt(2 * len(d)) for d in drawn)
    assert np.abs(np.corrcoef(drawn) - np.eye(6)).max() < 5 / np.sqrt(len(drawn[0]))


def test_the_run_on_disk_is_the_run(local: LocalFederation, tmp_path: Path) -> None:
    kept = HorizontalAgreement.load(tmp_path / "a")
    assert kept.digest == server_of(local).prepared.digest
    assert kept.rows_of("b", Phase.PREDICT).tolist() == list(range(11, 17))
