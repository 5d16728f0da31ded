"""A passive party whose model learns with another optimiser: it must say so, and all else holds as ever."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from accidents import outcome, restarted
from labelthieves import LABELS, TWO_CLASSES
from laboratory import close, deal, estimates, experiment, federation, figures, transcripts

from vflens.attacks.amc import ActiveModelCompletion
from vflens.config import load_party
from vflens.errors import ConfigError, KnowledgeError
from vflens.experiments.offline.attack import attack_recorded
from vflens.experiments.pages.report import render
from vflens.experiments.results.ledger import notes
from vflens.experiments.results.record import read_runs
from vflens.experiments.results.verdict import alarms, verdict
from vflens.experiments.run.check import check_party
from vflens.experiments.run.run import run
from vflens.experiments.watch.panels import summary
from vflens.models.networks.architectures import bottom
from vflens.models.networks.training import Bottom
from vflens.numerics.optimizer import Sgd
from vflens.storage import journal
from vflens.types import Array, Point

HONEST: dict[str, Any] = {
    "data": TWO_CLASSES,
    "model": {"architecture": "mlp", "width": 4, "combine": "concatenate", "precision": "float64"},
    "training": {"epochs": 3, "batch_size": 40, "learning_rate": 0.3, "optimizer": "sgd", "l2": 0.0},
    "disclose": [LABELS],
    "attacks": [{"name": "pmc", "at": "passive", "steps": 20}],
}
AMC: dict[str, Any] = {
    **HONEST,
    "malicious": True,
    "attacks": [{"name": "amc", "at": "passive", "steps": 20, "momentum": 0.5}],
}


def trained(home: Path, **settings: Any) -> Any:
    local = federation(home, **settings)
    local.coordinator.prepare()
    local.coordinator.train()
    return local


def test_the_party_must_say_that_it_breaks_the_protocol(tmp_path: Path) -> None:
    config = load_party(deal(experiment(tmp_path, **{**AMC, "malicious": False}), tmp_path)["passive"])
    with pytest.raises(ConfigError, match="optimiser trains: set malicious = true, or leave it out"):
        check_party(config)


def test_a_party_that_only_says_so_is_refused(tmp_path: Path) -> None:
    files = deal(experiment(tmp_path, **HONEST), tmp_path)
    text = files["passive"].read_text(encoding="utf-8")
    files["passive"].write_text("malicious = true\n" + text, encoding="utf-8")
    with pytest.raises(ConfigError, match="exactly one attack that breaks the protocol"):
        check_party(load_party(files["passive"]))


def test_with_colluders_it_would_begin_too_late(tmp_path: Path) -> None:
    attack = {**AMC["attacks"][0], "colluders": ["coordinator"]}
    config = load_party(deal(experiment(tmp_path, **{**AMC, "attacks": [attack]}), tmp_path)["passive"])
    with pytest.raises(ConfigError, match="begins after the run: leave colluders out"):
        check_party(config)


def test_a_model_without_layers_is_refused(tmp_path: Path) -> None:
    local = federation(tmp_path, **{**AMC, "model": {"family": "softmax_regression"}})
    with pytest.raises(KnowledgeError, match="made for split networks"):
        local.coordinator.prepare()
    close(local)


def test_it_is_marked_everywhere_and_scored_as_any_attack(tmp_path: Path) -> None:
    files = deal(experiment(tmp_path, **AMC), tmp_path)
    assert "MALICIOUS: it sends embeddings of a model" in check_party(load_party(files["passive"]))["summary"]
    assert "MALICIOUS" not in check_party(load_party(files["active"]))["summary"]
    federation(tmp_path / "run", **AMC).run()
    (found,) = read_runs([tmp_path / "run"])
    assert [a for a in alarms([found]) if a.startswith("MALICIOUS")] == [
        "MALICIOUS, with no defence: passive sent embeddings of a model that its attack's optimiser trains"
    ]
    sent = "passive sent embeddings of a model that its attack's optimiser trains."
    assert f"MALICIOUS: {sent}" in notes(found, [])
    assert ("malicious", sent) in summary(found)["banners"]
    assert "MALICIOUS" in render([found])
    assert "Trained in the clear, amc at passive names" in str(verdict([found]))
    log = (tmp_path / "run/passive/events.jsonl").read_text(encoding="utf-8")
    assert "its model learns with another optimiser than was agreed" in log
    assert figures(tmp_path / "run/active")["label_accuracy", "amc", ""] > 0


def scalar_path(x: Array, sent: list[tuple[Array, Array]], module: torch.nn.Module) -> dict[str, Array]:
    """The parameters after the gradients of ``sent``, number by number; plain descent, r as printed."""
    of, rate = ActiveModelCompletion(**{"momentum": 0.5}), HONEST["training"]["learning_rate"]
    velocity = {name: np.zeros(p.shape) for name, p in module.named_parameters()}
    for rows, gradient in sent:
        module.zero_grad()
        torch.autograd.backward((module(torch.tensor(x[rows])) * torch.tensor(gradient)).sum())
        for name, p in module.named_parameters():
            assert p.grad is not None
            for place in np.ndindex(*p.shape):
                before, g = velocity[name][place], p.grad[place].item()
                v = velocity[name][place] = 0.5 * before + 0.5 * g
                r = min(max(1 + of.gain * v / before, 1), of.most) if before else 1
                p.data[place] -= rate * r * g
    return {name: p.detach().numpy() for name, p in module.named_parameters()}


def test_the_model_is_that_of_the_printed_steps_and_not_the_honest_one(tmp_path: Path) -> None:
    """From the gradients that arrived, with torch's own derivatives and a loop over numbers."""
    local, honest = trained(tmp_path / "amc", **AMC), trained(tmp_path / "honest", **HONEST)
    party = local.passive["passive"]
    start = federation(tmp_path / "start", **HONEST)
    start.coordinator.prepare()
    module = bottom(party.run.federation.model, party.table.columns).double()
    first = start.passive["passive"].parameters()
    module.load_state_dict({name: torch.tensor(a) for name, a in first.items()})
    sent = [
        (r.rows, r.tensor("gradient"))
        for r in journal.read(tmp_path / "amc/passive/transcript")
        if r.point is Point.GRADIENT
    ]
    assert len(sent) == 18
    found, expected = party.parameters(), scalar_path(party.run.inputs.kept, sent, module)
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-9, atol=1e-12)
    plain = honest.passive["passive"].parameters()
    moved = {n: np.linalg.norm(found[n] - first[n]) / np.linalg.norm(plain[n] - first[n]) for n in found}
    assert moved["0.weight"] > 1.3, moved
    for one in (local, honest, start):
        close(one)


def test_a_factor_of_1_and_an_honest_party_are_the_agreed_training_bit_for_bit(tmp_path: Path) -> None:
    """An honest party's part has the agreed optimiser itself, so its step costs what it did."""
    same = {**AMC, "attacks": [{"name": "amc", "at": "passive", "most": 1.0}]}
    locals_ = [trained(tmp_path / name, **s) for name, s in (("honest", HONEST), ("same", same))]
    honest, found = (local.passive["passive"] for local in locals_)
    for name, array in honest.parameters().items():
        assert array.tobytes() == found.parameters()[name].tobytes()
    part = honest.run.model
    assert isinstance(part, Bottom)
    assert type(part._optimizer) is Sgd
    assert not any("velocity" in name for name in honest.state())
    for local in locals_:
        close(local)


@pytest.mark.parametrize("place", ["coordinator", "active"])
def test_grpc_and_restarts_change_no_bit(tmp_path: Path, place: str) -> None:
    training = {**HONEST["training"], "optimizer": "adam", "learning_rate": 0.01}
    settings = {**AMC, "training": training, "aggregator": place, "limits": {"checkpoint_steps": 3}}
    plain = trained(tmp_path / "plain", **settings)
    expected = outcome(plain, tmp_path / "plain")
    assert (plain.passive["passive"].state()["optimizer/velocity"] != 0).any()
    again = federation(tmp_path / "again", **settings)
    assert restarted(again, tmp_path / "again", steps=5) == expected


@pytest.mark.facts
@pytest.mark.usefixtures("one_start")
def test_processes_give_the_bits_of_one_process(tmp_path: Path) -> None:
    found = []
    for name in ("processes", "one"):
        what = experiment(tmp_path / name, **AMC, network={"transport": "unix"})
        (home,) = run(what, in_process=name == "one").scenarios
        facts = figures(home / "active")["label_accuracy", "amc", ""]
        found.append((estimates(home), transcripts(home), facts))
    assert found[0] == found[1]
    assert {"active.amc.npz", "active.amc.train.npz"} == set(found[0][0])


def test_the_folder_gives_the_same_answer(tmp_path: Path) -> None:
    federation(tmp_path / "run", **AMC).run()
    home, again = tmp_path / "run/passive", tmp_path / "again.npz"
    attack_recorded(home, "amc", None, again)
    with np.load(again) as one, np.load(home / "estimates/active.amc.npz") as other:
        assert one["values"].tobytes() == other["values"].tobytes()
    tuned = {"fine_tune": True, "fine_tune_steps": 2}
    attack_recorded(home, "amc", None, tmp_path / "tuned.npz", parameters=tuned)


def test_the_folder_of_an_honest_run_is_refused(tmp_path: Path) -> None:
    federation(tmp_path, **HONEST).run()
    with pytest.raises(KnowledgeError, match=r"^party 'passive' followed the protocol: run the federation"):
        attack_recorded(tmp_path / "passive", "amc", None, tmp_path / "estimate.npz")


def test_it_sits_in_one_of_several_passive_parties(tmp_path: Path) -> None:
    settings = {
        **AMC,
        "parties": {"passive": ["a", "b"]},
        "disclose": [{**LABELS, "to": "b"}],
        "attacks": [{"name": "amc", "at": "b", "steps": 20}],
    }
    local = federation(tmp_path, **settings)
    local.run()
    kept = {name: any("velocity" in n for n in party.state()) for name, party in local.passive.items()}
    assert kept == {"a": False, "b": True}
    facts = {name: (tmp_path / name / "events.jsonl").read_text(encoding="utf-8") for name in ("a", "b")}
    assert ["malicious" in facts[name] for name in ("a", "b")] == [False, True]


def test_what_it_sent_follows_from_what_it_received(tmp_path: Path) -> None:
    """Parties that collude take its part out of a sum so: with the optimiser of its attack."""
    party = trained(tmp_path, **AMC).passive["passive"]
    sent = [
        r.tensor("embedding")
        for r in journal.read(tmp_path / "coordinator/transcript")
        if (r.point, r.sender) == (Point.EMBEDDING, "passive")
    ]
    received = [r for r in journal.read(tmp_path / "passive/transcript") if r.point is Point.GRADIENT]
    again = [r.tensor("embedding") for r in party.sent_again(received)]
    assert len(again) == 18
    assert b"".join(h.tobytes() for h in again) == b"".join(h.tobytes() for h in sent)
