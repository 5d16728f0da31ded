"""Every defence that can act on a split network, alone on real exchanges: its claim holds, and a repetition
has the same bytes.
"""

from __future__ import annotations

import math
from contextlib import nullcontext
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accidents import over_grpc, rebuild_all, train_until
from laboratory import close, federation, finish, same, trained, transcripts
from oneprocess import LocalFederation
from scipy.stats import chi2, entropy
from thinned import thinned

from vflens.clients.vertical.aligned_run import AlignedRun
from vflens.clients.vertical.party import VerticalParty
from vflens.config.compatibility import acts_among
from vflens.models.part import Part
from vflens.models.softmax_regression import one_hot
from vflens.plugins.defense import INNER_HOOKS, Defense
from vflens.protocol.acts import Begin, Forward, Step
from vflens.protocol.roles import ROLES
from vflens.registry import DEFENSES
from vflens.types import Array, Claim, Exchange, Phase, Point, Released, Role

SETTINGS: dict[str, Any] = {
    "data": {"name": "synthetic", "rows": 1000, "features": 8, "classes": 2, "informative": 4},
    "model": {"architecture": "mlp", "width": 6, "hidden": [8], "top": [7], "dropout": 0.2},
    "training": {"epochs": 1, "batch_size": 400, "learning_rate": 0.01},
    "attacks": [],
    "disclose": [],
}
EXCHANGE = Exchange("tiny/run", Phase.TRAIN, 0, 0)
#: Released tables and disclosed parameters have contract tests of their own.
TRAINING = frozenset({*INNER_HOOKS, "on_embedding", "on_gradient"}) - {"on_outputs"}


def _cases() -> list[tuple[str, Role, str]]:
    found = []
    for name in DEFENSES.names():
        kind: type[Defense] = DEFENSES.get(name)
        for role in (Role.PASSIVE, Role.ACTIVE):
            if not acts_among(ROLES[role].hooks, kind) or (role is Role.PASSIVE and kind().needs_labels):
                continue
            # At the active party with the coordinator between, on_embedding comes past no embedding that
            # leaves.
            hooks = (
                kind().hooks()
                & ROLES[role].hooks
                & TRAINING - ({"on_embedding"} if role is Role.ACTIVE else set())
            )
            if kind.bottom_only and role is Role.ACTIVE:
                hooks -= {"wrap_model"}
            if hooks and not kind().needs_weight and "on_dataset" not in kind().hooks():
                found += [(name, role, hook) for hook in sorted(hooks)]
    return found


CASES = _cases()


def _placed(name: str, role: Role) -> list[dict[str, Any]]:
    """The defence at the party of ``role``, and at the other data party if they draw it together."""
    kind: type[Defense] = DEFENSES.get(name)
    wide = {"clip": 1000.0} if "clip" in kind.model_fields else {}  # only the noise acts then
    roles = (Role.PASSIVE, Role.ACTIVE) if kind.together else (role,)
    return [{"name": name, "at": str(at), **wide} for at in roles]


def _defended(home: Path, name: str, role: Role) -> LocalFederation:
    local = federation(home, **SETTINGS, defenses=_placed(name, role))
    local.coordinator.prepare()
    return local


def _twice(party: VerticalParty[AlignedRun[Part]], act: Step) -> Released:
    first, again = party.step(act).released, party.step(act).released
    assert first is not None
    assert again is not None
    assert same(first, again)
    return first


def _exchanged(local: LocalFederation) -> tuple[Released, Released, Released]:
    """The embedding, the sum for the active party, and its gradient; every step is asked for twice."""
    passive = local.passive["passive"]
    rows = local.coordinator.aligned.train[:400]
    embedding = _twice(passive, Step(EXCHANGE, rows, None))
    values = {"embedding": embedding.tensor("embedding")}
    summed = local.coordinator.gate.release(Point.EMBEDDING, EXCHANGE, rows, values)
    return embedding, summed, _twice(local.active, Step(EXCHANGE, rows, summed))


def _undefended(local: LocalFederation, summed: Released) -> dict[str, Array]:
    """What both parties' models give before the gate."""
    passive, active, rows = local.passive["passive"], local.active, summed.rows
    _, gradient, _ = active.run.model.loss_gradient(
        summed.tensor("embedding"), active.run.inputs[rows], active.run.soft_labels[rows], EXCHANGE
    )
    return {
        "on_embedding": passive.run.model.forward(passive.run.inputs[rows], EXCHANGE),
        "on_gradient": gradient,
    }


@pytest.mark.parametrize(("name", "role", "hook"), thinned(CASES, 3))
def test_a_defence_on_a_real_exchange(tmp_path: Path, name: str, role: Role, hook: str) -> None:
    local = _defended(tmp_path, name, role)
    embedding, summed, gradient = _exchanged(local)
    nothing = np.zeros(0, np.int32)
    local.passive["passive"].step(Step(EXCHANGE._replace(step=1), nothing, gradient))  # it learns
    party: VerticalParty[AlignedRun[Part]] = local.active if role is Role.ACTIVE else local.passive["passive"]
    assert not party.chain.unfired()
    (claim,) = party.chain.claims()
    released = {"on_embedding": embedding.tensor("embedding"), "on_gradient": gradient.tensor("gradient")}
    before = _undefended(local, summed).get(hook)
    if before is not None:
        assert not np.array_equal(released[hook], before)  # it acted
        if claim.noise_std is not None:
            own = len(before) if hook == "on_gradient" else 1  # the claim is of a row's own gradient
            _is_noise_of(claim.noise_std, own * (released[hook] - before))
        assert len(np.unique(released[hook])) <= (claim.levels or math.inf)
        alike = np.unique(released[hook], axis=0, return_counts=True)[1]
        assert alike.min() >= (claim.group_rows or 1)
    if hook == "on_labels":
        _keeps_labels_as_claimed(local, claim)
    close(local)


def _trained(
    home: Path, defenses: list[dict[str, Any]], *, accident: bool
) -> tuple[dict[str, bytes], dict[str, str]]:
    """What the parties learned and received; with an accident over gRPC, all started again in between."""
    data, training = {**SETTINGS["data"], "rows": 60}, {**SETTINGS["training"], "epochs": 2, "batch_size": 12}
    model = {**SETTINGS["model"], "dropout": 0.0}  # servers in one process would share torch's generator
    settings = {**SETTINGS, "data": data, "training": training, "model": model}
    local = federation(home, **settings, defenses=defenses, limits={"checkpoint_steps": 3})
    local.coordinator.prepare()
    with over_grpc(local) if accident else nullcontext():
        if accident:
            train_until(local, 5)
            rebuild_all(local)
        local.coordinator.train()
        finish(local)
    close(local)
    return trained(local), transcripts(home)


def _beside_each_other() -> list[list[dict[str, Any]]]:
    """Each defence at each party where it acts, one at the passive and one at the active party at a time."""
    places = {
        role: [_placed(n, role) for n in sorted({n for n, r, _ in CASES if r is role})] for role in ROLES
    }
    pairs = zip_longest(places[Role.PASSIVE], places[Role.ACTIVE], fillvalue=list[dict[str, Any]]())
    return [one + [d for d in other if d not in one] for one, other in pairs]


@pytest.mark.parametrize("defenses", thinned([(defenses,) for defenses in _beside_each_other()], 3))
def test_both_links_and_a_restart_give_the_same_bits(tmp_path: Path, defenses: list[dict[str, Any]]) -> None:
    straight, broken = (_trained(tmp_path / str(a), defenses, accident=a) for a in (False, True))
    assert straight == broken


@pytest.mark.parametrize("name", sorted({n for n, role, _ in CASES if role is Role.PASSIVE}))
def test_a_predicted_row_is_drawn_once(tmp_path: Path, name: str) -> None:
    """Asked in another order and under another number."""
    local = _defended(tmp_path, name, Role.PASSIVE)
    passive, rows = local.passive["passive"], local.coordinator.aligned.predict
    passive.begin(Begin("tiny/run", 1))
    first, again = (
        passive.forward(Forward(Exchange("tiny/run", Phase.PREDICT, 1, step), asked))
        for step, asked in enumerate((rows, rows[::-1].copy()))
    )
    np.testing.assert_array_equal(first.tensor("embedding"), again.tensor("embedding")[::-1])
    close(local)


def _is_noise_of(std: float, noise: Array) -> None:
    """Chi-square test at level 1e-6: ``noise`` is N(0, std²), not two thirds or one and a half of it."""
    low, high = chi2.ppf([5e-7, 1 - 5e-7], noise.size)
    total = (noise.astype(np.float64) ** 2).sum()
    assert low < total / std**2 < high
    assert not low < total / (std * 2 / 3) ** 2 < high
    assert not low < total / (std * 3 / 2) ** 2 < high


def _keeps_labels_as_claimed(local: LocalFederation, claim: Claim) -> None:
    """Randomised response of ε keeps a label with probability e^ε/(e^ε + k − 1); a code has its class."""
    active, k = local.active, local.active.run.federation.n_classes
    if claim.decodes:
        everything = np.arange(active.run.federation.rows, dtype=np.int32)
        read = active.chain.fold("on_outputs", np.log(active.run.soft_labels), EXCHANGE, everything)
        np.testing.assert_array_equal(read.argmax(axis=1), active.run.labels)
        assert claim.label_entropy is not None
        assert entropy(active.run.soft_labels, axis=1).min() >= claim.label_entropy - 1e-9
        return
    assert claim.epsilon is not None
    kept = math.exp(claim.epsilon) / (math.exp(claim.epsilon) + k - 1)
    share = (active.run.soft_labels == one_hot(active.run.labels, k)).all(axis=1).mean()
    assert abs(share - kept) < 5 * math.sqrt(kept * (1 - kept) / len(active.run.labels))


def test_noise_by_class_goes_by_the_drawn_labels(tmp_path: Path) -> None:
    """Else Marvell's noise would tell of the true ones, which label_dp claims that nothing sent does."""
    defenses = [{"name": name, "at": "active"} for name in ("label_dp", "marvell")]
    local = federation(tmp_path, **SETTINGS, defenses=defenses)
    local.coordinator.prepare()
    active = local.active
    drawn, seen = active.run.soft_labels.argmax(axis=1), active.owner.labels
    assert seen is not None
    np.testing.assert_array_equal(seen, drawn)
    assert (drawn != active.run.labels).any()
    np.testing.assert_array_equal(
        active.adversary.own()["labels"], active.run.labels
    )  # its own attacks know them
    close(local)


def test_every_hook_of_training_is_among_them() -> None:
    assert {hook for _, _, hook in CASES} == TRAINING
