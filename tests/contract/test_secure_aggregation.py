"""Secure aggregation: the server sees masked updates, and averages as it would without."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accidents import Fuse, Interrupted, over_grpc, rebuild
from horizontal import clients_of, deal, federation, server_of, table
from laboratory import close, figures, transcripts
from oneprocess import LocalFederation
from scipy.stats import chisquare, kstest
from stubparty import short_folder
from summing import FOUR, NO_ROWS, SECURE, TABLES, local, masked, numbers

from vflens.errors import ProtocolError, StateError
from vflens.numerics.fixed_point import decoded
from vflens.protocol.acts import Step
from vflens.protocol.horizontal.masked_update import FRACTION_BITS, MaskedRound
from vflens.recorded.horizontal.parameters import averaged, owned, parameters_of
from vflens.types import Exchange, Phase, Point, Released

_FIXTURES = (local,)  # used by name
MLP = {"architecture": "mlp", "width": 5, "hidden": [6], "top": [4], "precision": "float64"}


def bits(local: LocalFederation, home: Path) -> tuple[dict[str, bytes], dict[str, str]]:
    """The parameters at every party in the end, and what it received."""
    close(local)
    held = {"server": server_of(local).parameters}
    held |= {name: party.run.model.parameters() for name, party in clients_of(local).items()}
    return {who: b"".join(v.tobytes() for v in of.values()) for who, of in held.items()}, transcripts(home)


#: The whole model is summed, or the top models: every client keeps a bottom model of its own.
METHODS: dict[str, dict[str, Any]] = {
    "fedavg": SECURE,
    "lg_fedavg": {
        **SECURE,
        "model": MLP,
        "horizontal": {**SECURE["horizontal"], "method": "lg_fedavg"},
    },
}


@dataclass(frozen=True)
class Whole:
    """Settings, and what an uninterrupted run of them ends with."""

    settings: dict[str, Any]
    bits: tuple[dict[str, bytes], dict[str, str]]


@pytest.fixture(scope="module", params=METHODS)
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """An uninterrupted run of each method."""
    home, settings = tmp_path_factory.mktemp("whole"), METHODS[request.param]
    local = federation(deal(home, TABLES, **settings))
    local.run()
    return Whole(settings, bits(local, home))


@pytest.mark.parametrize("weights", ["rows", "equal"])
@pytest.mark.parametrize("participants", [None, 3])
def test_the_mean_is_the_plain_one_up_to_steps_of_the_fixed_point(
    tmp_path: Path, weights: str, participants: int | None
) -> None:
    """One round: later ones would begin from other parameters. Its defences act before the masks."""
    horizontal = {"rounds": 1, "weights": weights, "participants": participants}
    horizontal = {k: v for k, v in horizontal.items() if v is not None}
    defenses = [{"name": "dp_gaussian", "clip": 0.5}]
    found = {}
    for secure in (True, False):
        settings = {**SECURE, "secure_aggregation": secure, "model": MLP, "defenses": defenses}
        settings["horizontal"] = {**horizontal, "secure_aggregation": secure}
        local = federation(deal(tmp_path / str(secure), FOUR, **settings))
        local.run()
        found[secure] = server_of(local).parameters
        points = {r.point for r in server_of(local).transcript}
        assert points == {Point.MASKED_UPDATE if secure else Point.UPDATE}
    for name, value in found[False].items():
        np.testing.assert_allclose(found[True][name], value, rtol=0, atol=4 * 2.0**-FRACTION_BITS)


def test_what_the_server_receives_looks_uniform(tmp_path: Path) -> None:
    wide = {**MLP, "width": 40, "hidden": [40], "top": [40]}
    local = federation(deal(tmp_path, TABLES, **{**SECURE, "model": wide}))
    local.run()
    received = masked(local)
    assert len(received) == 9
    for released in received:
        drawn = numbers(released)
        assert kstest(drawn / 2.0**64, "uniform").pvalue > 1e-5
        assert chisquare(np.bincount(drawn.view(np.uint8), minlength=256)).pvalue > 1e-5
    together = np.corrcoef([numbers(r) / 2.0**64 for r in received]) - np.eye(9)
    assert np.abs(together).max() < 5 / np.sqrt(len(numbers(received[0])))


def test_two_truths_differ_for_the_server_through_the_sum_only(tmp_path: Path) -> None:
    """Other rows at "a", the same masks: its message differs by the change of its update alone, as the sum
    does; the messages of the others stay. So no message tells more than the sum.
    """
    received, sums = [], []
    for place, tables in enumerate((TABLES, {**TABLES, "a": table(30, 77)})):
        local = federation(deal(tmp_path / str(place), tables, **{**SECURE, "model": MLP}))
        server = server_of(local)
        server.prepare()
        server.train()
        received.append({r.sender: numbers(r) for r in masked(local) if not r.exchange.round})
        sums.append(np.sum(list(received[-1].values()), axis=0))
        close(local)
    changes = {name: received[1][name] - received[0][name] for name in TABLES}
    assert changes["a"].any()
    assert not changes["b"].any()
    assert not changes["c"].any()
    np.testing.assert_array_equal(changes["a"], sums[1] - sums[0])


def test_both_links_give_the_same_bits(whole: Whole) -> None:
    with short_folder() as home:
        local = federation(deal(home, TABLES, **whole.settings))
        with over_grpc(local):
            local.leader.lead()
            local.complete()
        assert bits(local, home) == whole.bits


@pytest.mark.parametrize("who", ["a", "server", "everybody"])
def test_a_restart_changes_no_bit(tmp_path: Path, whole: Whole, who: str) -> None:
    local = federation(deal(tmp_path, TABLES, **whole.settings))
    server = server_of(local)
    server.prepare()
    server.links["b"] = fuse = Fuse(server.links["b"], 1)  # "a" has answered the second round, "b" has not
    with pytest.raises(Interrupted):
        server.train()
    server.links["b"] = fuse.inner
    for name in list(local.parties) if who == "everybody" else [who]:
        rebuild(local, name)
    server_of(local).rejoin()
    server_of(local).lead()
    local.complete()
    assert bits(local, tmp_path) == whole.bits


def asked(local: LocalFederation, participants: tuple[str, ...], shift: float = 0.0) -> Any:
    """What "a" answers to the first round with ``participants``, from parameters moved by ``shift``."""
    server, exchange = server_of(local), Exchange("tiny/run", Phase.TRAIN, 0, 0)
    parameters = {name: value + shift for name, value in server.parameters.items()}
    sent = server.gate.release(Point.PARAMETERS, exchange, NO_ROWS, parameters)
    return server.links["a"].call(Step(exchange, NO_ROWS, sent, participants)).released


@pytest.mark.parametrize(
    "participants", [(), ("a", "b"), ("b", "c", "d"), ("a", "b", "x"), ("a", "a", "b"), ("a", "b", "c", "d")]
)
def test_a_client_masks_for_the_clients_of_a_round_only(local: Any, participants: tuple[str, ...]) -> None:
    sentence = (
        rf"round 0 names {len(participants)} participants to 'a': 3 different clients of the run are due"
    )
    with pytest.raises(ProtocolError, match=sentence):
        asked(local, participants)


@pytest.mark.parametrize(("others", "shift"), [(("a", "b", "d"), 0.0), (("a", "b", "c"), 1.0)])
def test_a_mask_hides_one_update_even_after_a_restart(
    local: Any, others: tuple[str, ...], shift: float
) -> None:
    """A server that asks anew with other participants or parameters gets no second number under a mask."""
    first = asked(local, ("a", "b", "c"))
    assert asked(local, others, shift) is first
    rebuild(local, "a")
    sentence = "came before with other parameters" if shift else "left with other numbers before a restart"
    with pytest.raises(StateError, match=rf"round 0 {sentence}"):
        asked(local, others, shift)
    assert numbers(asked(local, ("a", "b", "c"))).tobytes() == numbers(first).tobytes()


def test_other_parameters_give_other_masks(tmp_path: Path) -> None:
    """Two clients that get different parameters in one round: the server learns no sum of the two."""
    local = federation(deal(tmp_path, TABLES, **SECURE))
    server_of(local).prepare()
    masking, names = clients_of(local)["a"].masking, server_of(local).prepared.mask_keys
    assert masking is not None
    zero = np.zeros(1000, np.uint64)
    one, other = (masking.masked(zero, names, 0, given) for given in (b"one", b"other"))
    assert not np.isin(one, other).any()
    close(local)


def test_clients_that_are_told_different_weights_mask_differently(tmp_path: Path) -> None:
    """Else a server could tell all but one that their updates weigh nothing, and read that one's."""
    local = federation(deal(tmp_path, TABLES, **SECURE))
    server, clients = server_of(local), clients_of(local)
    server.prepare()
    heavy = [
        replace(p, train_rows=10**13 if p.name == "a" else p.train_rows) for p in server.prepared.parties
    ]
    changed = replace(server.prepared, parties=tuple(heavy))
    exchange = Exchange("tiny/run", Phase.TRAIN, 0, 0)
    received = Released("server", exchange, Point.PARAMETERS, NO_ROWS, tensors=dict(server.parameters))
    update = {name: np.ones_like(value) for name, value in server.parameters.items()}
    sums = []
    for others in (server.prepared, changed):
        total = np.zeros(15, np.uint64)
        for name, client in clients.items():
            assert client.masking is not None
            known = server.prepared if name == "a" else others
            sent = MaskedRound(known, client.masking, name, tuple(TABLES), received=received)(update)
            total += sent["masked"].view(np.uint64)
        sums.append(decoded(total, FRACTION_BITS))
    np.testing.assert_allclose(sums[0], 1, rtol=0, atol=1e-11)  # the weights sum to 1
    assert np.abs(sums[1]).min() > 10  # masks that did not cancel
    close(local)


def test_an_attack_on_one_update_is_skipped_in_words_and_the_sum_gives_all_parameters(tmp_path: Path) -> None:
    """In the clear this attack recovers a row of every client exactly."""
    settings = {
        **SECURE,
        "training": {"batch_size": 1, "learning_rate": 0.5, "optimizer": "sgd"},
        "horizontal": {**SECURE["horizontal"], "local_steps": 1},
        "attacks": [{"name": "softmax_inversion"}],
    }
    local = federation(deal(tmp_path, TABLES, **settings))
    server = server_of(local)
    server.prepare()
    start = dict(server.parameters)
    local.run()
    skipped = [column for metric, _, column in figures(tmp_path / "server") if metric == "skipped"]
    assert len(skipped) == 3
    assert all("the server saw masked updates only" in reason for reason in skipped)
    assert not (tmp_path / "server/estimates").exists()
    view = parameters_of(server.prepared, owned(start, server.parameters), server.transcript)
    last = [r for r in masked(local) if r.exchange.round == 2]
    for name, value in averaged(server.prepared, view(2), last).items():
        np.testing.assert_array_equal(value, server.parameters[name])
