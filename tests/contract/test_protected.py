"""Protected training: its bits are those of the twin without shares; only two see what is opened."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accidents import rebuild
from laboratory import THREE, close, experiment, federation
from nonempty import nonempty
from oneprocess import LocalFederation
from scipy.special import expit
from thirdfamily import importable, installed

from vflens.clients.vertical.membership import check_membership
from vflens.clients.vertical.protected.active import ActiveOnShares
from vflens.clients.vertical.protected.passive import PassiveOnShares
from vflens.coordinator.vertical.dealer import Dealer, DealingCoordinator
from vflens.defenses.transform_inputs import TransformInputs
from vflens.errors import AccessError, ConfigError, LogitRangeError, ProtocolError, StateError
from vflens.experiments.pages.report import render
from vflens.experiments.results.ledger import lines
from vflens.experiments.results.record import read_run, read_runs
from vflens.models.softmax_regression import batches, one_hot
from vflens.numerics.fixed_point import encoded
from vflens.numerics.shares.scale import FEATURE_BITS, PARAMETER_BITS
from vflens.numerics.shares.sigmoid import RESIDUAL_BITS
from vflens.numerics.shares.step import twin
from vflens.protocol.acts import Describe, Step
from vflens.protocol.mask_acts import Deal, Seed
from vflens.protocol.vertical.shares import SharedRun
from vflens.randomness import stream
from vflens.storage import journal
from vflens.storage.metrics import Name
from vflens.storage.release_digests import digests
from vflens.types import Array, Exchange, Phase, Point, Released, Role

_FIXTURES = (importable, installed)  # used by name
TRAINING = {
    "epochs": 3,
    "batch_size": 20,
    "learning_rate": 0.5,
    "l2": 0.01,
    "optimizer": "sgd",
    "protection": "shares",
}
SETTINGS: dict[str, Any] = {
    "training": TRAINING,
    "parties": THREE,
    "attacks": [{"name": "half_star"}],
    "disclose": [{"what": "parameters", "to": "active"}],
}
TWO = {"data": {"name": "synthetic", "rows": 90, "features": 7, "classes": 2, "informative": 4}}


def opened(home: Path, run: SharedRun, name: str) -> list[Array]:
    """The array ``name`` that each step opened, as the active party recorded it."""
    found = [
        r.tensor(name).view(np.uint64)
        for r in journal.read(home / "active/transcript")
        if r.point is Point.OPENING and name in (r.tensors or {})
    ]
    return nonempty(found)


def columns(local: LocalFederation, run: SharedRun) -> Array:
    """All columns as the model takes them, float64 (N, d), the bias among them."""
    parts = [local.active.run.inputs[:]]
    for number, party in enumerate(run.federation.passive):
        own = local.passive[party.name].run.inputs[:]
        parts.append(own if number else np.hstack([own, np.ones((len(own), 1))]))
    return np.hstack(parts)


def batches_of(local: LocalFederation, run: SharedRun) -> list[Array]:
    training, train = run.federation.training, run.federation.train
    return [
        rows
        for epoch in range(training.epochs)
        for rows in batches(train, training.batch_size, stream(local.coordinator.secret, "batches", epoch))
    ]


def parameters(local: LocalFederation, run: SharedRun) -> Array:
    """θ (d, k') of all parties' models."""
    parts = []
    for name in run.columns:
        own = local.data_parties[name].run.model.parameters()
        parts += [own["weight"].T, *([own["bias"][None]] if "bias" in own else [])]
    theta = np.vstack(parts)
    if run.two_classes:
        assert not theta[:, 0].any()
    return theta[:, -1:] if run.logits == 1 else theta


CASES = {
    "three classes of four parties": SETTINGS,
    "two classes": {**SETTINGS, **TWO},
    "two parties": {**SETTINGS, **TWO, "parties": {}},
    "without a penalised bias": {**SETTINGS, "training": {**TRAINING, "penalise_bias": False}},
}


@pytest.mark.parametrize("case", CASES)
def test_the_model_is_bit_for_bit_that_of_the_twin_without_shares(tmp_path: Path, case: str) -> None:
    local = federation(tmp_path, **CASES[case])
    local.run()
    run = SharedRun(local.coordinator.aligned)
    x, y = columns(local, run), one_hot(local.active.run.labels, run.federation.n_classes)
    features = encoded(x, FEATURE_BITS, 1)
    labels = encoded(y[:, 1:] if run.logits == 1 else y, RESIDUAL_BITS, 1)
    theta = np.zeros((run.width, run.logits), np.uint64)
    plain = np.zeros((run.width, run.logits))
    coins = zip(opened(tmp_path, run, "logits"), opened(tmp_path, run, "change"), strict=True)
    for rows, (logits, change) in zip(batches_of(local, run), coins, strict=True):
        data = features[rows], labels[rows]
        theta = twin(theta, data, (logits, change), run.scale, run.decayed)
        residual = expit(x[rows] @ plain) - (y[rows][:, 1:] if run.logits == 1 else y[rows])
        decay = 2 * run.federation.training.l2 * plain * run.decayed
        plain -= run.scale.learning_rate * (x[rows].T @ residual / len(rows) + decay)
    found = parameters(local, run)
    np.testing.assert_array_equal(found, theta.view(np.int64) * 2.0**-PARAMETER_BITS)
    assert np.abs(plain).max() > 0.1
    assert np.abs(found - plain).max() < 5e-3  # the sigmoid's error, and the rounding of the rate


def test_no_byte_of_what_is_opened_reaches_the_coordinator(tmp_path: Path) -> None:
    local = federation(tmp_path, **SETTINGS)
    local.run()
    run = SharedRun(local.coordinator.aligned)
    seen = b"".join(f.read_bytes() for f in sorted((tmp_path / "coordinator").rglob("*")) if f.is_file())
    arrays = [a for name in ("delta", "logits", "rho", "change") for a in opened(tmp_path, run, name)]
    shared = [
        tensor
        for r in journal.read(tmp_path / "active/transcript")
        if r.point is Point.SHARES
        for tensor in (r.tensors or {}).values()
    ]
    numbers = np.concatenate([a.ravel() for a in (*arrays, *nonempty(shared))]).tobytes()
    assert len(numbers) > 10_000
    assert sum(numbers[i : i + 8] in seen for i in range(0, len(numbers), 8)) == 0
    assert {r.point for r in journal.read(tmp_path / "coordinator/transcript")} == {Point.EMBEDDING}


def test_a_third_party_s_columns_and_parameters_are_masked_at_both_that_compute(tmp_path: Path) -> None:
    local = federation(tmp_path, **SETTINGS)
    local.run()
    other = local.passive["c"]
    truth = encoded(other.run.inputs[other.run.federation.train], FEATURE_BITS, 1)
    share = next(
        r.tensor("columns share").view(np.uint64)
        for r in journal.read(tmp_path / "active/transcript")
        if r.point is Point.SHARES and r.sender == "c"
    )
    assert isinstance(other.training, PassiveOnShares)
    np.testing.assert_array_equal(share + other.training.sharing.columns_mask("c"), truth)
    assert share.min() > 2**40  # a feature is at most 2**16
    hidden = next(
        r.tensor("parameters").view(np.uint64)
        for r in journal.read(tmp_path / "c/transcript")
        if r.point is Point.SHARES
    )
    assert (np.abs(hidden.view(np.int64)) > 2**30).all()  # a parameter is at most a few times 2**20


def test_messages_have_the_same_sizes_whatever_the_data(tmp_path: Path) -> None:
    sizes = []
    for seed in (1, 2):
        home = tmp_path / str(seed)
        federation(home, **SETTINGS, seed=seed).run()
        sizes.append(
            [
                (name, r.sender, r.exchange.step, r.nbytes)
                for name in ("active", "a", "c")
                for r in journal.read(home / name / "transcript")
                if r.exchange.phase is not Phase.PREDICT
            ]
        )
    assert len(sizes[0]) > 40
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("who", ["active", "a"])
def test_a_repeated_step_with_other_bytes_is_refused(tmp_path: Path, who: str) -> None:
    """Else a mask would hide two values, and their difference would show."""
    local = federation(tmp_path, **SETTINGS)
    local.coordinator.prepare()
    local.coordinator.train()
    party, run = local.data_parties[who], SharedRun(local.coordinator.aligned)
    tensors = {"delta share": np.zeros((run.width, run.logits), np.int64)}
    rows = run.federation.train[:20]
    for _ in range(2):
        with pytest.raises(StateError, match="its mask or noise serves once"):
            party.gate.release(Point.OPENING, run.exchange(0), rows, tensors)
        rebuild(local, who)
        party = local.data_parties[who]


def test_what_is_dealt_leaves_through_the_gate_and_never_twice_with_other_bytes(tmp_path: Path) -> None:
    """A coordinator that came back with another seed would deal other masks for steps that were opened."""
    local = federation(tmp_path, **SETTINGS)
    local.run()
    coordinator, (asked, answered) = local.coordinator, ("active", Role.ACTIVE)
    assert isinstance(coordinator, DealingCoordinator)
    (dealt,) = (d for d in digests(tmp_path / "coordinator/released") if d.point is Point.SHARES)
    shares, run = coordinator.deal(Deal(coordinator.config.run, 0)), SharedRun(coordinator.aligned)
    for step in (0, 7, 11):  # twelve small steps are dealt at once, whichever is asked for
        again = coordinator.perform(Deal(coordinator.config.run, step), asked, answered)
        np.testing.assert_array_equal(again.numbers, shares.numbers)
    assert len([d for d in digests(tmp_path / "coordinator/released") if d.point is Point.SHARES]) == 1
    assert dealt.step == 0
    (line,) = (
        x for x in lines(read_run(tmp_path)) if x.crossing.sender == "coordinator" and x.phase == "train"
    )
    assert (line.crossing.receiver, line.crossing.point, line.crossing.count) == ("active", "shares", 1)
    rebuild(local, "coordinator")
    coordinator = local.coordinator
    assert isinstance(coordinator, DealingCoordinator)
    coordinator._dealer = Dealer(run, dict.fromkeys(run.computing, b"another seed"), coordinator.order)
    with pytest.raises(StateError, match="its mask or noise serves once"):
        coordinator.deal(Deal(coordinator.config.run, 0))


def test_a_message_out_of_turn_or_malformed_is_refused(tmp_path: Path) -> None:
    local = federation(tmp_path, **SETTINGS)
    local.coordinator.prepare()
    run = SharedRun(local.coordinator.aligned)
    rows, link = run.federation.train[:20], local.active.links["a"]
    share = {"delta share": np.zeros((run.width, run.logits), np.int64)}

    def asked(number: int, tensors: dict[str, Array], rows: Array = rows) -> None:
        exchange = run.exchange(number)
        link.call(Step(exchange, rows, Released("active", exchange, Point.OPENING, rows, tensors=tensors)))

    with pytest.raises(StateError, match="the features of 'a' are not open yet"):
        asked(0, share)
    (whole,) = run.chunks
    features = {"features share": np.zeros((len(whole), run.width), np.int64)}
    chunk = Exchange(run.federation.run, Phase.DISCLOSE, 1, 0)
    link.call(Step(chunk, whole, Released("active", chunk, Point.SHARES, whole, tensors=features)))
    with pytest.raises(StateError, match="step 1 came before step 0"):
        asked(1, share)
    for wrong in (np.zeros((2, 2), np.int64), np.zeros((run.width, 3)), None):
        tensors = {} if wrong is None else {"delta share": wrong}
        with pytest.raises(ProtocolError, match=r"hold {.*}: {.*\(\d, \d\) int64'} are due$"):
            asked(0, tensors)
    with pytest.raises(ProtocolError, match="message 0 is of 3 rows: 20 are due"):
        asked(0, share, rows[:3])
    with pytest.raises(ProtocolError, match="only 'active' and 'a' compute on shares"):
        local.active.links["b"].call(Step(run.exchange(0), rows, None))


def test_who_may_ask_whom(tmp_path: Path) -> None:
    local = federation(tmp_path, **SETTINGS)
    local.coordinator.prepare()
    run = local.coordinator.config.run
    with pytest.raises(AccessError):
        local.active.links["a"].call(Seed(run))
    with pytest.raises(AccessError):
        local.passive["a"].links["coordinator"].call(Deal(run, 0))
    exchange = SharedRun(local.coordinator.aligned).exchange(0)
    with pytest.raises(AccessError):
        local.coordinator.links["a"].call(Step(exchange, np.zeros(0, np.int32), None))
    with pytest.raises(StateError, match="is not trained yet"):
        local.active.links["coordinator"].call(Deal(run, 0))
    local.coordinator.train()
    with pytest.raises(ProtocolError, match="masks of step 99 of a training of 12"):
        local.active.links["coordinator"].call(Deal(run, 99))


def test_a_key_of_masks_is_described_by_passive_parties(tmp_path: Path) -> None:
    local = federation(tmp_path, **SETTINGS)
    keys = {n: link.call(Describe("tiny/run")).mask_key for n, link in local.coordinator.links.items()}
    assert keys["active"] == ""
    assert len({keys[name] for name in "abc"} - {""}) == 3


def test_a_passive_party_that_is_configured_without_protection_is_named(tmp_path: Path) -> None:
    local = federation(tmp_path, **SETTINGS)
    local.coordinator.prepare()
    agreed, active = local.coordinator.aligned, local.active
    infos = tuple(replace(info, mask_key="") if info.name == "b" else info for info in agreed.parties)
    with pytest.raises(ProtocolError, match=r"^protection = 'none' at passive party 'b'.* at every party$"):
        check_membership(replace(agreed, parties=infos), active.config, active.table.columns)
    check_membership(agreed, active.config, active.table.columns)
    close(local)


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "optimizer": ({"training": {**TRAINING, "optimizer": "adam"}}, "take 'sgd' and a larger learning_rate"),
    "patience": ({"training": {**TRAINING, "patience": 2}}, "training.patience = 2 .*set it to 0"),
    "batch_size": ({"training": {**TRAINING, "batch_size": 60_000}}, "or a batch_size of at most"),
    "l2": ({"training": {**TRAINING, "l2": 2.0}}, "training.l2 = 2 with learning_rate = 0.5"),
    "aggregator": ({"aggregator": "active"}, "aggregator = 'active'"),
    "model": (
        {"model": {"architecture": "mlp"}},
        "train softmax or linear regression, or leave the protection out",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_has_nothing_to_act_on_is_refused_before_the_run(tmp_path: Path, case: str) -> None:
    changes, text = REFUSED[case]
    with pytest.raises(ValueError, match=text):
        experiment(tmp_path, **SETTINGS | changes)


@pytest.mark.parametrize("name", ["dp_gaussian", "grad_perturb"])
def test_a_defence_of_embeddings_or_gradients_is_refused(tmp_path: Path, name: str) -> None:
    at = {"dp_gaussian": "a", "grad_perturb": "active"}[name]
    with pytest.raises(ConfigError, match=f"defence '{name}' at .* would never act"):
        federation(tmp_path, **SETTINGS, defenses=[{"name": name, "at": at}])


def test_a_defence_whose_inputs_the_integers_do_not_hold_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(TransformInputs, "on_inputs", lambda self, x, ctx: 2.5 * x)
    local = federation(tmp_path, **SETTINGS, defenses=[{"name": "transform_inputs", "at": "a"}])
    with pytest.raises(ConfigError, match="'a': a defence makes inputs beyond ±1, for which the integers"):
        local.coordinator.prepare()


@pytest.mark.usefixtures("importable")
def test_another_linear_family_is_refused(tmp_path: Path) -> None:
    """Its parameters fit on the wire, and the sigmoid would train another model than it says."""
    with pytest.raises(ValueError, match="one-hot regression has another residual than σ"):
        experiment(tmp_path, **SETTINGS | {"model": {"family": "one_hot_regression"}})


def test_the_parts_are_those_of_protected_training(tmp_path: Path) -> None:
    local = federation(tmp_path, **SETTINGS)
    for party in local.data_parties.values():
        with pytest.raises(StateError, match="no aligned rows yet"):
            _ = party.training
    local.coordinator.prepare()
    assert isinstance(local.active.training, ActiveOnShares)
    assert {type(party.training) for party in local.passive.values()} == {PassiveOnShares}
    close(local)


def test_reports_say_what_protection_assumes_and_not_that_training_was_in_the_clear(tmp_path: Path) -> None:
    for name, changes in (
        ("two", {"parties": {}, **TWO}),
        ("four", {}),
        ("clear", {"training": {"epochs": 2}}),
    ):
        federation(tmp_path / name, **SETTINGS | changes).run()
    two, four, clear = (render(read_runs([tmp_path / name])) for name in ("two", "four", "clear"))
    for page in (two, four):
        assert "colludes with nobody" in page
        assert "semi-honest" in page
        assert "Training in the clear" not in page
        assert "Assumes secure training" not in page
    collusion = "the active party does not collude with the first passive one"
    assert (collusion in two, collusion in four) == (False, True)
    assert "Training in the clear" in clear
    assert "semi-honest" not in clear


def test_a_run_whose_logits_left_the_range_says_so_with_an_exit_code_of_its_own(tmp_path: Path) -> None:
    steep = {**TRAINING, "learning_rate": 200.0, "l2": 0.0}
    local = federation(tmp_path, **SETTINGS | TWO | {"parties": {}, "training": steep})
    with pytest.raises(
        LogitRangeError, match=r"a prediction row has a logit of \d+\.\d: .* take a larger l2"
    ):
        local.run()
    assert LogitRangeError.exit_code == 14
    figure = local.coordinator.metrics.last(Name.LARGEST_LOGIT)
    scores = [r.tensor("embedding") for r in journal.read(tmp_path / "coordinator/transcript")]
    assert figure == pytest.approx(np.abs(scores[0] + scores[1]).max())
    calm = federation(tmp_path / "calm", **SETTINGS | TWO | {"parties": {}})
    calm.run()
    assert 0 < (calm.coordinator.metrics.last(Name.LARGEST_LOGIT) or 0) < 12


WING = (
    "numerics/shares",
    "clients/vertical/protected",
    "protocol/vertical/shares.py",
    "protocol/pair_key.py",
)


def test_masks_come_from_a_cipher_alone() -> None:
    """Philox is no cipher: who sees some of its numbers could tell the others."""
    root = Path(__file__).parents[2] / "vflens"
    paths = [root / name for name in (*WING, "coordinator/vertical/dealer.py")]
    files = [f for path in paths for f in (sorted(path.glob("*.py")) if path.is_dir() else [path])]
    assert len(files) > 12
    odd = re.compile("Philox|numpy.random|np.random|default_rng|generator|stream")
    named = {(f.name, match) for f in files for match in odd.findall(f.read_text(encoding="utf-8"))}
    assert named == {("leading.py", "stream")}  # of messages
