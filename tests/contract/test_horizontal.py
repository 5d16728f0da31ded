"""A horizontal federation: the same bits over both links and after every restart, and what it refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accidents import Fuse, Interrupted, over_grpc, rebuild
from horizontal import (
    CLASSES,
    COLUMNS,
    acting,
    clients_of,
    deal,
    federation,
    learned,
    scaled,
    server_of,
    table,
)
from laboratory import close, figures, transcripts
from stubparty import short_folder
from torch.nn import Module

from vflens.clients.horizontal.client import Client
from vflens.config import load_party
from vflens.config.compatibility import build_defenses
from vflens.errors import AccessError, ConfigError, ProtocolError, StateError, VflensError
from vflens.experiments.run.in_process import LocalFederation
from vflens.member.stage import Stage
from vflens.models.networks.passport import Passport
from vflens.models.networks.training import Top
from vflens.protocol.acts import Begin, Finished, Identify, Prepare, Step
from vflens.protocol.federation import Federation
from vflens.protocol.horizontal import HorizontalFederation, check_alike
from vflens.types import ColumnInfo, Exchange, PartyInfo, Phase, Point, Released, Role, sealed

TABLES = {"a": table(30, 1), "b": table(17, 2)}
MLP: dict[str, Any] = {
    "model": {"architecture": "mlp", "width": 5, "hidden": [6], "top": [4], "dropout": 0.3},
    "training": {"batch_size": 8, "learning_rate": 0.01},
    "horizontal": {"rounds": 3, "local_epochs": 2},
    "defenses": [{"name": "dp_gaussian", "clip": 0.5}, {"name": "label_dp"}],
    "limits": {"checkpoint_steps": 2},
}
KINDS: dict[str, dict[str, Any]] = {
    "fedavg": MLP,
    "fedadob": {
        **MLP,
        "horizontal": {**MLP["horizontal"], "method": "lg_fedavg"},
        "defenses": [{"name": "passport"}],
    },
    "splitfed": {**MLP, "horizontal": {**MLP["horizontal"], "method": "splitfed"}},
}
NO_ROWS = np.zeros(0, np.int32)


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


@pytest.mark.parametrize("who", ["a", "server", "everybody"])
@pytest.mark.parametrize("steps", [1, 2])
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
        layers = [m for m in _modules(client) if isinstance(m, Passport)]
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
    received = Released("server", exchange, Point.PARAMETERS, NO_ROWS, server.parameters)
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
    for released in local.leader.transcript:
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


STRANGE: dict[str, tuple[Any, str]] = {
    "of another party": ({"sender": "b"}, "parameters of 'b' came instead of parameters of 'server'"),
    "an update": ({"point": Point.UPDATE}, "update of 'server' came instead of parameters"),
    "another name": ({"tensors": {"strange": np.zeros(3)}}, "carries no tensor"),
    "one too many": ({"more": np.zeros(3, "<f4")}, "carries the tensor 'more': the model has none"),
    "other shapes": ({"reshaped": True}, "has shape"),
    "no numbers": ({"broken": True}, "holds NaN, infinite or huge numbers"),
}


@pytest.fixture
def local(tmp_path: Path) -> Any:
    made = federation(deal(tmp_path, TABLES, **MLP))
    server_of(made).prepare()
    yield made
    close(made)


@pytest.mark.parametrize("what", STRANGE)
def test_a_client_refuses_other_parameters(local: LocalFederation, what: str) -> None:
    changes, sentence = dict(STRANGE[what][0]), STRANGE[what][1]
    server, exchange = server_of(local), Exchange("tiny/run", Phase.TRAIN, 0, 0)
    tensors = {name: value.copy() for name, value in server.parameters.items()}
    if "more" in changes:
        tensors["more"] = changes.pop("more")
    first = next(iter(tensors))
    if changes.pop("reshaped", False):
        tensors[first] = tensors[first][:1]
    if changes.pop("broken", False):
        tensors[first][0] = np.inf
    sent = server.gate.release(Point.PARAMETERS, exchange, NO_ROWS, tensors)
    if "tensors" in changes:
        changes["tensors"] = {name: sealed(tensor) for name, tensor in changes["tensors"].items()}
    sent = replace(sent, **changes)
    with pytest.raises(ProtocolError, match=sentence):
        server.links["a"].call(Step(exchange, NO_ROWS, sent))
    assert clients_of(local)["a"].recovery.learned == -1


def test_rounds_come_in_order_and_a_repeated_one_is_answered_from_the_log(local: LocalFederation) -> None:
    server, client = server_of(local), clients_of(local)["a"]

    def asked(number: int) -> Any:
        exchange = Exchange("tiny/run", Phase.TRAIN, number, number)
        sent = server.gate.release(Point.PARAMETERS, exchange, NO_ROWS, server.parameters)
        return server.links["a"].call(Step(exchange, NO_ROWS, sent)).released

    with pytest.raises(StateError, match=r"step 1 came before step 0"):
        asked(1)
    first = asked(0)
    assert asked(0) is first
    asked(1)
    with pytest.raises(StateError, match=r"step 0 of run 'tiny/run' is over"):
        asked(0)
    with pytest.raises(StateError, match=r"round 4 of 3: training is over"):
        asked(4)
    assert client.recovery.learned == 1
    client.begin(Begin("tiny/run", 1))
    with pytest.raises(StateError, match=r"after the end of training"):
        asked(2)


def test_only_the_server_asks_and_only_in_its_own_name(local: LocalFederation) -> None:
    server, client = server_of(local), clients_of(local)["a"]
    with pytest.raises(AccessError, match=r"nobody may in this run$"):
        server.links["a"].call(Identify("tiny/run", b""))
    with pytest.raises(AccessError, match=r"in the name of 'b' came from 'a'"):
        client.links["server"].call(Finished("tiny/run", "b"))
    with pytest.raises(AccessError, match=r"only the server may$"):
        client.links["server"].call(Prepare(server.prepared, NO_ROWS))


def test_settings_do_not_mix(local: LocalFederation) -> None:
    members = (PartyInfo("p", Role.PASSIVE, COLUMNS), PartyInfo("q", Role.ACTIVE, (), 2))
    prepared = server_of(local).prepared
    vertical = Federation("tiny/run", members, 0, NO_ROWS, NO_ROWS, prepared.training, lab=True)
    with pytest.raises(ProtocolError, match=r"run 'tiny/run' is vertical: 'a' is a client"):
        server_of(local).links["a"].call(Prepare(vertical, NO_ROWS))
    other = replace(prepared, lab=False)
    with pytest.raises(StateError, match=r"client 'a' is in run 'tiny/run' with other settings"):
        server_of(local).links["a"].call(Prepare(other, NO_ROWS))


def client(name: str = "a", **changes: Any) -> PartyInfo:
    return replace(PartyInfo(name, Role.CLIENT, COLUMNS, 3, CLASSES, 5, 2), **changes)


UNLIKE = [
    ({"columns": (*COLUMNS[:3], ColumnInfo("other", -4.0, 4.0))}, "'c3' is a column of one alone"),
    ({"columns": COLUMNS[::-1]}, "their order differs, give both files the same"),
    (
        {"columns": (*COLUMNS[:3], ColumnInfo("c3", -4.0, 5.0))},
        "column 'c3' is described otherwise at 'a' and",
    ),
    ({"classes": ("no", "yes", "perhaps")}, "declare the same data.classes at every client"),
    ({"train_rows": 0}, "client 'b' has 0 training and 2 prediction rows"),
]


@pytest.mark.parametrize(("changes", "sentence"), UNLIKE)
def test_clients_that_are_not_alike_are_refused(changes: Any, sentence: str) -> None:
    check_alike([client(), client("b")])
    with pytest.raises(ConfigError, match=sentence):
        check_alike([client(), client("b", **changes)])


def test_a_column_without_bounds_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"column 'x' of 'a' has no declared bounds"):
        check_alike([client(columns=(ColumnInfo("x"),))])


REFUSED: list[tuple[str, Any, str]] = [
    ("server", {"training": {"epochs": 3}}, "training.epochs has no meaning in rounds"),
    (
        "server",
        {"horizontal": {"local_epochs": 2, "local_steps": 3}},
        "local_steps = 3 and local_epochs = 2: a round has one length",
    ),
    ("server", {"transcript": {"every": 2}}, "transcript.every = 2 of 3 rounds leaves out the last"),
    ("a", {"defenses": [{"name": "round_scores"}]}, "defence 'round_scores' at client 'a' would never act"),
]


@pytest.mark.parametrize(("who", "changes", "sentence"), REFUSED)
def test_settings_without_effect_are_refused(tmp_path: Path, who: str, changes: Any, sentence: str) -> None:
    files = deal(tmp_path, TABLES, **{**MLP, **changes})
    with pytest.raises(ConfigError, match=sentence):
        build_defenses(load_party(files[who]))


def test_a_longer_training_than_a_client_allows_is_refused(tmp_path: Path) -> None:
    local = federation(deal(tmp_path, TABLES, **{**MLP, "limits": {"epochs": 5}}))
    with pytest.raises(
        VflensError, match=r"local epochs of all rounds: 6 in run .*limits.epochs at 'a' is 5"
    ):
        local.leader.lead()
    close(local)


def test_the_run_on_disk_is_the_run(local: LocalFederation, tmp_path: Path) -> None:
    kept = HorizontalFederation.load(tmp_path / "a")
    assert kept.digest == server_of(local).prepared.digest
    assert kept.rows_of("b", Phase.PREDICT).tolist() == list(range(11, 17))
