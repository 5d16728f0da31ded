"""A split network trained by the federation: equal bits on both links and after accidents, the same as one
network.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accidents import REBUILD, Outcome, outcome, over_grpc, rebuild, rebuild_all, train_until
from laboratory import THREE, close, estimates, experiment, federation, finish, trained, transcripts
from nonempty import nonempty
from oneprocess import LocalFederation
from splitcases import CONCATENATED, DIRECT, MODEL, PLACES, SETTINGS, STALE
from stubparty import short_folder
from thinned import first, thinned

from vflens.clients.vertical.aligned_run import AlignedRun
from vflens.clients.vertical.party import VerticalParty
from vflens.experiments.results.folders import read_party
from vflens.experiments.run.run import run
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.training import Bottom, Top
from vflens.models.part import Part
from vflens.models.softmax_regression import batches, one_hot
from vflens.randomness import stream
from vflens.storage import journal
from vflens.storage.metrics import Name
from vflens.types import Array, Phase, Point

#: Behind servers in one process two parties that compute side by side would share torch's generator: no
#: dropout.
WIRED = {
    "coordinator": SETTINGS,
    "active": DIRECT,
    "active, stale and wired": {**STALE, "model": {**MODEL, "dropout": 0.0}},
}
#: Passports at the first of three passive parties only.
SEVERAL = {
    "parties": THREE,
    "defenses": [{"name": "passport", "at": "a"}, {"name": "dp_laplace", "at": "b"}],
}


@pytest.mark.parametrize(
    "settings",
    [
        SETTINGS,
        pytest.param({**STALE, **SEVERAL}, marks=pytest.mark.facts),
        pytest.param({**DIRECT, **CONCATENATED, **SEVERAL, "aggregator": "active"}, marks=pytest.mark.facts),
        pytest.param({**CONCATENATED, **SEVERAL}, marks=pytest.mark.facts),
        pytest.param({**SETTINGS, **SEVERAL}, marks=pytest.mark.facts),
        pytest.param(CONCATENATED, marks=pytest.mark.facts),
    ],
    ids=[
        "sum",
        "three straight and stale",
        "three straight side by side",
        "three side by side",
        "sum of three",
        "side by side",
    ],
)
@pytest.mark.usefixtures("one_start")
@pytest.mark.facts
def test_processes_give_the_bits_of_one_process(tmp_path: Path, settings: dict[str, Any]) -> None:
    found = []
    for name in ("processes", "one"):
        what = experiment(tmp_path / name, network={"transport": "unix"}, **settings)
        (home,) = run(what, in_process=name == "one").scenarios
        own = (home / "active" / "own.npz").read_bytes()
        found.append((own, estimates(home), transcripts(home)))
    assert found[0] == found[1]
    summed_of_three = settings == {
        **SETTINGS,
        **SEVERAL,
    }  # not where each embedding comes to the active party
    passive = settings.get("parties", {}).get("passive", ["passive"])
    # Imputation answers for each; sums hide one party from wmi and bmi.
    assert len(found[0][1]) == (1 if summed_of_three else 3) * len(passive)


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Outcome]:
    """What a run without any accident ends with, by the place of aggregation."""

    @cache
    def run(place: str) -> Outcome:
        home = tmp_path_factory.mktemp("undisturbed")
        local = federation(home, **{**PLACES, **WIRED}[place])
        local.coordinator.prepare()
        local.coordinator.train()
        return outcome(local, home)

    return run


#: Right after a checkpoint; between two.
MOMENTS = (3, 5)


@pytest.mark.parametrize(("moment", "who", "place"), thinned(product(MOMENTS, REBUILD, PLACES), 5))
def test_a_party_rebuilt_in_training_changes_nothing(
    tmp_path: Path, undisturbed: Callable[[str], Outcome], place: str, who: str, moment: int
) -> None:
    """Optimiser, dropout and passport keys included."""
    local = federation(tmp_path, **PLACES[place])
    local.coordinator.prepare()
    train_until(local, moment)
    REBUILD[who](local)
    if who not in ("coordinator", "everybody"):
        rebuild(local, "coordinator")
    local.coordinator.train()
    assert outcome(local, tmp_path) == undisturbed(place)


@pytest.mark.parametrize("place", first(PLACES))
@pytest.mark.parametrize("moment", [5, 9])  # in an epoch that is kept; in one that is left out
def test_a_sampled_transcript_keeps_whole_epochs(
    tmp_path: Path, undisturbed: Callable[[str], Outcome], place: str, moment: int
) -> None:
    """All that came in every second epoch, at whomever it came to, one step stale and after a restart too."""
    local = federation(tmp_path, **PLACES[place], transcript={"every": 2})
    local.coordinator.prepare()
    train_until(local, moment)
    rebuild_all(local)
    local.coordinator.train()
    finish(local)
    assert trained(local) == undisturbed(place)[0]
    aligned = local.coordinator.aligned
    for member in local.members():
        arrived: dict[tuple[str, Point, int], list[Array]] = {}
        for r in member.transcript:
            if r.exchange.phase is Phase.TRAIN:
                arrived.setdefault((r.sender, r.point, r.exchange.round), []).append(r.rows)
        for rows in arrived.values():
            assert np.array_equal(np.sort(np.concatenate(rows)), aligned.train)
        sees = not (aligned.direct and member is local.coordinator)
        assert {epoch for _, _, epoch in arrived} == ({1, 3} if sees else set())
    close(local)


@pytest.mark.parametrize(("who", "place"), thinned(product(REBUILD, WIRED), 3))
def test_the_same_over_grpc(
    tmp_path: Path, undisturbed: Callable[[str], Outcome], place: str, who: str
) -> None:
    """Rebuilt between two checkpoints behind real servers: the bits of an undisturbed process."""
    with _served(tmp_path, **WIRED[place]) as local:
        train_until(local, 5)
        REBUILD[who](local)
        if who not in ("coordinator", "everybody"):
            rebuild(local, "coordinator")
        local.coordinator.train()
        finish(local)
    close(local)
    assert (trained(local), transcripts(tmp_path), estimates(tmp_path)) == undisturbed(place)


def test_a_restart_forgets_no_byte_that_a_sampled_transcript_left_out(tmp_path: Path) -> None:
    """Over gRPC, by everybody's own count, as if all of it had been kept and nobody had been rebuilt."""
    received = []
    for every in (1, 2):
        with _served(tmp_path / str(every), **SETTINGS, transcript={"every": every}) as local:
            if every > 1:
                train_until(local, 9)
                rebuild_all(local)
            local.coordinator.train()
        close(local)  # the last messages are recorded when their replies have left
        received.append({m.name: (m.transcript.received, m.transcript.nbytes) for m in local.members()})
    assert received[0] == received[1]


@contextmanager
def _served(home: Path, **settings: Any) -> Iterator[LocalFederation]:
    """A prepared federation whose parties reach each other over gRPC."""
    with short_folder() as sockets:
        local = federation(home, **settings)
        for number, member in enumerate(local.members()):
            _move(local, member.name, f"unix:{sockets}/{number}")
        with over_grpc(local):
            local.coordinator.prepare()
            yield local


def _move(local: LocalFederation, name: str, address: str) -> None:
    """Give a party another address, in its own configuration and in those of its peers."""
    for member in local.members():
        peers = tuple(
            p.model_copy(update={"address": address}) if p.name == name else p for p in member.config.peers
        )
        changes = {"peers": peers} | ({"address": address} if member.name == name else {})
        member.config = member.config.model_copy(update=changes)


@pytest.mark.parametrize("place", ["coordinator", "active"])
def test_a_row_asked_again_after_a_restart_has_the_same_scores(tmp_path: Path, place: str) -> None:
    local = federation(tmp_path, **PLACES[place])
    local.coordinator.prepare()
    local.coordinator.train()
    local.coordinator.disclose()
    local.coordinator.open_predictions()
    rows = local.active.run.federation.predict
    first = local.active.predictions.ask(rows[:7])
    REBUILD["everybody"](local)
    local.coordinator.open_predictions()
    np.testing.assert_array_equal(local.active.predictions.ask(rows[5:9])[:2], first[5:])
    np.testing.assert_array_equal(local.active.predictions.ask(rows[[6, 0]]), first[[6, 0]])
    np.testing.assert_allclose(np.exp(first).sum(axis=1), 1)
    close(local)


def test_a_passive_party_with_labels_of_its_own_guards_its_last_layer(tmp_path: Path) -> None:
    """It is treated as one without: labels alone do not make it the active party."""
    local = federation(tmp_path, **SETTINGS)
    passive = local.passive["passive"]
    passive.table = replace(passive.table, labels=np.zeros(len(passive.table.ids), np.int64))
    local.coordinator.prepare()
    guarded = [n for n, m in _modules(passive).named_modules() if hasattr(m, "rekey")]
    assert guarded == ["bottom.3"]
    close(local)


def test_embeddings_travel_in_the_precision_of_the_network(tmp_path: Path) -> None:
    for precision in ("float32", "float64"):
        home = tmp_path / precision
        federation(home, **{**SETTINGS, "model": {**MODEL, "precision": precision}}).run()
        received = [r for f in home.glob("*/transcript") for r in journal.read(f)]
        points = {Point.EMBEDDING: "embedding", Point.GRADIENT: "gradient"}
        found = {
            r.tensor(points[r.point]).dtype.name
            for r in received
            if r.point in points and r.tensor(points[r.point]).size  # requests for predictions are rows only
        }
        assert found == {precision}


def test_of_embeddings_side_by_side_each_party_gets_its_own_gradient(tmp_path: Path) -> None:
    federation(tmp_path, **{**CONCATENATED, "defenses": [], "parties": THREE}).run()

    def gradients(party: str) -> list[np.ndarray[Any, Any]]:
        received = journal.read(tmp_path / party / "transcript")
        return [r.tensor("gradient") for r in received if r.point is Point.GRADIENT]

    whole = gradients("coordinator")
    for place, party in enumerate(nonempty(THREE["passive"])):
        own = gradients(party)
        assert len(own) == len(whole) > 0
        for mine, everybodys in zip(own, whole, strict=True):
            np.testing.assert_array_equal(mine, everybodys[:, 6 * place : 6 * (place + 1)])


# -- against one network -------------------------------------------------------------------------------


def _modules(party: VerticalParty[AlignedRun[Part]]) -> torch.nn.ModuleDict:
    part = party.run.model
    assert isinstance(part, Bottom | Top)
    return part.module


def _one_network(local: LocalFederation, network: SplitNetwork) -> dict[str, torch.Tensor]:
    """All parameters after plain gradient descent on the whole network, from the same start, on the same
    batches.
    """
    active, coordinator = local.active, local.coordinator
    parties = [*local.passive.values()]
    top = _modules(active)["top"]
    bottoms = [_modules(p)["bottom"] for p in (*parties, active)]
    inputs = [torch.tensor(p.run.inputs[:]) for p in (*parties, active)]
    labels = torch.tensor(one_hot(active.run.labels, active.run.federation.n_classes))
    parameters = [p for m in (*bottoms, top) for p in m.parameters()]
    training = active.run.federation.training
    for epoch in range(training.epochs):
        for rows in batches(
            active.run.federation.train, training.batch_size, stream(coordinator.secret, "batches", epoch)
        ):
            h = [m(x[rows]) for m, x in zip(bottoms, inputs, strict=True)]
            joined = torch.stack(h).sum(0) if network.combine == "sum" else torch.cat(h, 1)
            loss = torch.nn.functional.cross_entropy(top(joined), labels[rows])
            gradients = torch.autograd.grad(loss, parameters)
            with torch.no_grad():
                for p, gradient in zip(parameters, gradients, strict=True):
                    l2 = training.l2 if training.penalise_bias or p.dim() > 1 else 0.0
                    p.sub_(training.learning_rate * (gradient + 2 * l2 * p))
    return {f"{i}": p.detach().clone() for i, p in enumerate(parameters)}


@pytest.mark.parametrize("combine", ["sum", "concatenate"])
def test_the_federation_learns_what_one_network_learns(tmp_path: Path, combine: Any) -> None:
    model = {**MODEL, "combine": combine, "dropout": 0.0, "precision": "float64"}
    training: dict[str, Any] = {"epochs": 3, "batch_size": 20, "learning_rate": 0.1}
    training |= {"optimizer": "sgd", "l2": 0.01, "penalise_bias": combine == "sum"}
    settings = {**SETTINGS, "model": model, "training": training, "defenses": [], "attacks": []}
    federated = federation(tmp_path / "federated", **settings, parties=THREE)
    federated.run()
    alone = federation(tmp_path / "alone", **settings, parties=THREE)
    alone.coordinator.prepare()
    one = _one_network(alone, SplitNetwork(**model))
    models = [_modules(p)["bottom"] for p in (*federated.passive.values(), federated.active)]
    learned = [p for m in (*models, _modules(federated.active)["top"]) for p in m.parameters()]
    assert len(learned) == len(one)
    for ours, theirs in zip(learned, one.values(), strict=True):
        np.testing.assert_allclose(ours.detach().numpy(), theirs.numpy(), rtol=0, atol=1e-10)
    close(alone)


def test_summed_logits_of_linear_bottoms_are_softmax_regression(tmp_path: Path) -> None:
    """Without a trainable top the gradient on the wire shows every label."""
    model = {"architecture": "mlp", "width": 3, "trainable_top": False}
    local = federation(tmp_path, **{**SETTINGS, "model": model, "defenses": []})
    local.run()
    assert local.active.run.model.parameters().keys() == {"bottom.0.weight", "bottom.0.bias"}
    labels = local.active.run.labels
    for received in journal.read(tmp_path / "passive" / "transcript"):
        assert received.exchange.phase is Phase.TRAIN
        np.testing.assert_array_equal(received.tensor("gradient").argmin(axis=1), labels[received.rows])


def test_a_model_that_trains_alone_stays_below_the_federation(tmp_path: Path) -> None:
    """Its accuracy is measured, not a constant: more columns help on these rows."""
    data = {"name": "synthetic", "rows": 400, "features": 8, "classes": 2, "informative": 8}
    training = {"epochs": 15, "batch_size": 20, "learning_rate": 0.02}
    local = federation(
        tmp_path, **{**SETTINGS, "data": data, "training": training, "defenses": [], "attacks": []}
    )
    local.run()
    found = {m.name: m.value for m in read_party(tmp_path / "active").metrics}
    assert found[Name.ACCURACY] > found[Name.ACCURACY_ALONE] + 0.03
    assert found[Name.ACCURACY] > 0.8
    assert trained(local)


FOUR_TILES = pytest.param(["a", "b", "c", "d"], 2, 2, marks=pytest.mark.facts)


@pytest.mark.parametrize(
    ("passive", "rows", "columns"),
    [(["p"], 1, 1), (["a", "b"], 1, 2), FOUR_TILES],
)
def test_an_active_party_with_labels_alone_trains_on_tiles(
    tmp_path: Path, passive: list[str], rows: int, columns: int
) -> None:
    """Digits wholly at passive parties; alone it can only guess."""
    changes: dict[str, Any] = {
        "data": {"name": "digits"},
        "split": {"kind": "image_tiles", "rows": rows, "columns": columns},
        "parties": {"passive": passive},
        "model": {"architecture": "cnn"},
        "training": {"epochs": 3, "batch_size": 128, "learning_rate": 0.005},
        "attacks": [{"name": "half"}],
    }
    local = federation(tmp_path, **changes)
    local.run()
    assert len(local.active.table.columns) == 0
    found = {m.name: m.value for m in read_party(tmp_path / "active").metrics}
    assert found[Name.ACCURACY] > 0.6
    assert found[Name.ACCURACY_ALONE] < 0.2
