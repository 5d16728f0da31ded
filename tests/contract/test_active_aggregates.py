"""Where the active party aggregates: the same model, another view; who may ask whom changes with it."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tomli_w
from aggregating import MODEL, SETTINGS, local
from laboratory import close, deal, experiment, federation, finish, transcripts
from oneprocess import LocalFederation
from thinned import first

from vflens.config import load_party
from vflens.errors import AccessError, ConfigError, ProtocolError, StateError
from vflens.experiments.pages.report import render
from vflens.experiments.results.record import read_runs
from vflens.protocol.acts import Act, Epoch, Forward, Predict, Step, Train
from vflens.protocol.link import Link
from vflens.storage import journal
from vflens.types import Array, Exchange, Phase, Point, Released

_FIXTURES = (local,)  # used by name
STALE = {"epochs": 3, "batch_size": 20, "learning_rate": 0.01, "staleness": 1}
TRAIN = Exchange("tiny/run", Phase.TRAIN, 0, 0)
PREDICT = Exchange("tiny/run", Phase.PREDICT, 1, 0)


def models(local: LocalFederation) -> dict[str, dict[str, bytes]]:
    """All that training changed in every party's model."""
    return {
        name: {n: a.tobytes() for n, a in party.run.model.state().items()}
        for name, party in local.data_parties.items()
    }


def received(home: Path, party: str, point: Point) -> list[Released]:
    return [r for r in journal.read(home / party / "transcript") if r.point is point]


@pytest.mark.parametrize("combine", first(["sum", "concatenate"]))
def test_both_places_learn_the_same_bits_and_see_different_things(tmp_path: Path, combine: str) -> None:
    settings = {**SETTINGS, "model": {**MODEL, "combine": combine}}
    found, scores = [], []
    for place in ("coordinator", "active"):
        home = tmp_path / place
        run = federation(home, **settings, aggregator=place)
        run.run()
        found.append(models(run))
        rows = run.active.run.federation.predict
        scores.append(run.active.predictions.received(rows))
    assert found[0] == found[1]
    np.testing.assert_array_equal(scores[0], scores[1])
    hub, direct = tmp_path / "coordinator", tmp_path / "active"
    assert not received(direct, "coordinator", Point.EMBEDDING) + received(
        direct, "coordinator", Point.GRADIENT
    )
    assert {r.sender for r in received(hub, "active", Point.EMBEDDING)} == {"coordinator"}
    assert {r.sender for r in received(direct, "active", Point.EMBEDDING)} == {"a", "b", "c"}
    for party in "abc":
        assert transcripts(hub)[party] == transcripts(direct)[party]  # nothing changes for them
        own = [r for r in received(direct, "active", Point.EMBEDDING) if r.sender == party]
        relayed = [r for r in received(hub, "coordinator", Point.EMBEDDING) if r.sender == party]
        assert [r.rows.tolist() for r in own] == [r.rows.tolist() for r in relayed]
        for a, b in zip(own, relayed, strict=True):
            assert a.tensor("embedding").tobytes() == b.tensor("embedding").tobytes()


def test_an_attack_has_its_target_s_own_embedding(tmp_path: Path) -> None:
    """Sums of three parties hide each of them; direct embeddings hide none, and reports say so."""
    pages = []
    for place in ("coordinator", "active"):
        federation(tmp_path / place, **SETTINGS, aggregator=place).run()
        pages.append(render(read_runs([tmp_path / place])))
    kept = [
        sorted(f.name for f in (tmp_path / p / "active/estimates").glob("*"))
        for p in ("coordinator", "active")
    ]
    assert kept == [[], ["a.wmi.npz", "b.wmi.npz", "c.wmi.npz"]]
    assert "saw sums of the embeddings of a, b, c only: this attack needs those of" in pages[0]
    assert "saw sums" not in pages[1]
    assert "the coordinator sees each passive party&#39;s own embedding of every row" in pages[0]
    assert "the coordinator sees neither embeddings nor gradients" in pages[1]


def test_stale_training_has_bits_of_its_own_twice(tmp_path: Path) -> None:
    """An embedding lacks one update; the first two steps of a run have none to lack."""
    embeddings = []
    for name, training in (("exact", SETTINGS["training"]), ("stale", STALE), ("again", STALE)):
        home = tmp_path / name
        federation(home, **{**SETTINGS, "defenses": [], "training": training}, aggregator="active").run()
        embeddings.append(
            [r.tensor("embedding").tobytes() for r in received(home, "active", Point.EMBEDDING)]
        )
    exact, stale, again = embeddings
    assert stale == again
    assert len(stale) == len(exact)
    same = [a == b for a, b in zip(exact, stale, strict=True)]
    assert same[:3] == [True] * 3
    assert not any(same[3:])


def test_a_stale_embedding_lacks_exactly_the_last_update(tmp_path: Path) -> None:
    """Against a plain replay of one party: embedding t after the gradients up to t − 2."""
    model = {**MODEL, "dropout": 0.0}
    settings = {**SETTINGS, "defenses": [], "model": model, "training": STALE, "parties": {"passive": ["a"]}}
    run = federation(tmp_path, **settings, aggregator="active")
    run.run()
    twin = federation(tmp_path / "twin", **settings, aggregator="active")
    twin.coordinator.prepare()
    party = twin.passive["a"].run
    gradients = received(tmp_path, "a", Point.GRADIENT)
    embeddings = [r for r in received(tmp_path, "active", Point.EMBEDDING) if r.exchange.phase is Phase.TRAIN]
    assert len(gradients) == len(embeddings) == 12
    for step, sent in enumerate(embeddings):
        if step >= 2:
            learned = gradients[step - 2]
            party.model.learn(party.inputs[learned.rows], learned.tensor("gradient"), learned.exchange)
        computed = party.model.forward(party.inputs[sent.rows], sent.exchange)
        np.testing.assert_array_equal(computed, sent.tensor("embedding"))
    close(twin)


# -- who may ask whom ----------------------------------------------------------------------------------


def test_only_the_active_party_asks_for_embeddings(local: LocalFederation) -> None:
    rows = local.coordinator.aligned.train[:4]
    acts: tuple[Act[Any], ...] = (Step(TRAIN, rows, None), Forward(PREDICT, rows))
    for act in acts:
        with pytest.raises(
            AccessError,
            match=r"^coordinator 'coordinator' may not ask passive 'a' to .*: only the active may$",
        ):
            local.coordinator.links["a"].call(act)
    with pytest.raises(
        AccessError, match=r"may not ask coordinator 'coordinator' to Predict: nobody may in this"
    ):
        local.active.links["coordinator"].call(
            Predict(Released("active", PREDICT, Point.EMBEDDING, rows, tensors={}))
        )
    with pytest.raises(AccessError, match=r"to Step: only the active may$"):
        local.coordinator.links["active"].call(Step(TRAIN, rows, None))


def test_only_where_it_aggregates(tmp_path: Path) -> None:
    hub = federation(tmp_path, **SETTINGS)
    hub.coordinator.prepare()
    rows = hub.coordinator.aligned.train[:4]
    acts: tuple[Act[Any], ...] = (Step(TRAIN, rows, None), Forward(PREDICT, rows))
    for act in acts:
        with pytest.raises(
            AccessError, match=r"^active 'active' may not ask passive 'a' to .*: only the coordinator may$"
        ):
            hub.active.links["a"].call(act)
    asked: list[tuple[Link, Act[Any]]] = [
        (hub.coordinator.links["active"], Train("tiny/run")),
        (hub.active.links["coordinator"], Epoch("tiny/run", 0)),
    ]
    for link, asking in asked:
        with pytest.raises(AccessError, match=r"nobody may in this run$"):
            link.call(asking)
    close(hub)


def test_no_row_is_released_half_trained(local: LocalFederation) -> None:
    rows = local.coordinator.aligned.predict[:3]
    passive = local.active.links["a"]
    with pytest.raises(
        StateError, match=r"^run 'tiny/run' is still training: predictions begin when the coordinator"
    ):
        passive.call(Forward(PREDICT, rows))
    local.coordinator.train()
    with pytest.raises(StateError, match="is still training"):
        passive.call(Forward(PREDICT, rows))
    finish(local)
    assert passive.call(Forward(PREDICT._replace(step=99), rows)).rows.tolist() == rows.tolist()


def _batch(local: LocalFederation, step: int) -> Array:
    rows: Array = local.coordinator.aligned.train[20 * (step % 4) :][:20]
    return rows


def _zeros(rows: Array, step: int) -> Released:
    """A gradient from which nothing is learned."""
    nothing = {"gradient": np.zeros((len(rows), 6), np.float32)}
    return Released("active", TRAIN._replace(step=step), Point.GRADIENT, rows, tensors=nothing)


def test_noise_is_not_averaged_away_by_asking_a_row_again_and_again(local: LocalFederation) -> None:
    """A cheating active party gets as many embeddings of a row as there are epochs."""
    passive = local.active.links["b"]
    rows = _batch(local, 0)
    again = (
        r"asks for a row twice, or for one that this epoch asked for before: "
        r"ask for each training row once an epoch$"
    )
    with pytest.raises(ProtocolError, match=rf"^step 0 {again}"):
        passive.call(Step(TRAIN, np.repeat(rows[:1], 20), None))
    passive.call(Step(TRAIN, rows, None))
    mixed = np.append(_batch(local, 1)[:-1], rows[:1])
    with pytest.raises(ProtocolError, match=rf"^step 1 {again}"):
        passive.call(Step(TRAIN._replace(step=1), mixed, _zeros(rows, 0)))
    for step in range(1, 5):  # the fifth begins another epoch
        before = _zeros(_batch(local, step - 1), step - 1)
        reply = passive.call(Step(TRAIN._replace(round=step // 4, step=step), _batch(local, step), before))
        assert reply.released is not None


def test_a_stale_gradient_is_that_of_the_rows_sent(tmp_path: Path) -> None:
    local = federation(tmp_path, **{**SETTINGS, "training": STALE}, aggregator="active")
    local.coordinator.prepare()
    passive = local.active.links["a"]
    for step in range(2):
        passive.call(Step(TRAIN._replace(step=step), _batch(local, step), None))
    with pytest.raises(ProtocolError, match=
        r"^the gradient of step 0 is not that of the rows whose embeddings 'a' sent"):  # fmt: skip
        passive.call(Step(TRAIN._replace(step=2), _batch(local, 2), _zeros(_batch(local, 1), 0)))
    close(local)


def test_rows_asked_again_are_neither_sent_nor_recorded_again(local: LocalFederation) -> None:
    local.coordinator.train()
    local.coordinator.disclose()
    local.coordinator.open_predictions()
    rows = local.active.run.federation.predict
    first = local.active.predictions.ask(rows[:6])
    again = local.active.predictions.ask(rows[[7, 5, 0]])
    np.testing.assert_array_equal(again[1:], first[[5, 0]])
    np.testing.assert_array_equal(local.active.predictions.ask(rows[:6]), first)
    asked = [r.rows.tolist() for r in local.active.transcript if r.exchange.phase is Phase.PREDICT]
    assert asked == [rows[:6].tolist()] * 3 + [rows[[7]].tolist()] * 3
    for party in local.passive.values():
        assert party.gate.released_rows(Point.EMBEDDING, 1).tolist() == rows[[*range(6), 7]].tolist()


# -- what cannot be ------------------------------------------------------------------------------------


def altered(configs: dict[str, Path], party: str, **changes: Any) -> None:
    settings = tomllib.loads(configs[party].read_text(encoding="utf-8"))
    configs[party].write_text(tomli_w.dumps(settings | changes), encoding="utf-8")


@pytest.mark.parametrize("party", ["a", "active"])
def test_every_party_says_who_aggregates(tmp_path: Path, party: str) -> None:
    configs = deal(experiment(tmp_path, **SETTINGS, aggregator="active"), tmp_path)
    altered(configs, party, aggregator="coordinator")
    local = LocalFederation(configs, lambda stage, done, total: None)
    words = (
        f"^aggregator = 'coordinator' at '{party}' and 'active' at the coordinator: "
        "set it alike at every party$"
    )
    with pytest.raises(ConfigError, match=words):
        local.coordinator.prepare()
    close(local)


def test_a_passive_party_knows_who_may_ask_it(tmp_path: Path) -> None:
    configs = deal(experiment(tmp_path, **SETTINGS, aggregator="active"), tmp_path)
    peers = tomllib.loads(configs["a"].read_text(encoding="utf-8"))["peers"]
    altered(configs, "a", peers=[p for p in peers if p["role"] != "active"])
    with pytest.raises(ConfigError, match="peers name 0 parties with role 'active': exactly one is needed"):
        load_party(configs["a"])


def test_the_active_party_reaches_everybody(tmp_path: Path) -> None:
    configs = deal(experiment(tmp_path, **SETTINGS, aggregator="active"), tmp_path)
    peers = tomllib.loads(configs["active"].read_text(encoding="utf-8"))["peers"]
    altered(configs, "active", peers=[p for p in peers if p["name"] != "c"])
    local = LocalFederation(configs, lambda stage, done, total: None)
    with pytest.raises(
        ConfigError, match=r"^peers of 'active' lack passive party 'c', whose embeddings it asks for: name it"
    ):
        local.coordinator.prepare()
    close(local)


def test_a_defence_of_embeddings_belongs_to_who_sends_them(tmp_path: Path) -> None:
    defenses = [{"name": "dp_laplace", "at": "coordinator"}]
    federation(tmp_path / "hub", **{**SETTINGS, "defenses": defenses})
    with pytest.raises(ConfigError, match="'dp_laplace' at coordinator 'coordinator' would never act"):
        federation(tmp_path / "direct", **{**SETTINGS, "defenses": defenses}, aggregator="active")
