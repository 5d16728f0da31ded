"""A party that dies in the middle of a run and comes back: the run ends as if nothing had happened."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accidents import (
    REBUILD,
    Fuse,
    Interrupted,
    Outcome,
    anew,
    outcome,
    rebuild,
    rebuild_all,
    train_until,
)
from laboratory import (
    THREE,
    close,
    deal,
    experiment,
    federation,
    same,
    trained,
)
from oneprocess import LocalFederation
from thinned import thinned

from vflens.clients.vertical.passive import PassiveParty
from vflens.config import PassiveConfig, load_party
from vflens.errors import StateError, StorageError
from vflens.experiments.results.record import read_runs
from vflens.experiments.run.in_process import Joined
from vflens.member.recovery import checkpoint_digests
from vflens.member.suspicions import check_defenses
from vflens.protocol.acts import Act, Step
from vflens.randomness import stream
from vflens.storage.files import load_arrays, save_arrays
from vflens.storage.metrics import Name
from vflens.tables.order import save_order
from vflens.types import Array, Exchange, Phase, Point

EPOCHS, STEPS, CHECKPOINT = 4, 16, 3  # 72 training rows in batches of 20: four steps an epoch
SETTINGS: dict[str, Any] = {
    "training": {"epochs": EPOCHS, "batch_size": 20, "learning_rate": 0.1},
    "limits": {"checkpoint_steps": CHECKPOINT},
    "defenses": [{"name": "gaussian_scores", "at": "coordinator"}],
    "attacks": [{"name": "half_star"}],
}
# Right after a checkpoint, just before one, before anything, in the middle of an epoch, in the last step.
MOMENTS = [0, 1, CHECKPOINT - 1, CHECKPOINT, CHECKPOINT + 1, 2 * CHECKPOINT, STEPS - 1, STEPS]


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """What a run without any accident ends with."""
    home = tmp_path_factory.mktemp("undisturbed")
    local = federation(home, **SETTINGS)
    local.coordinator.prepare()
    local.coordinator.train()
    return outcome(local, home)


@pytest.mark.parametrize(("moment", "who"), thinned(product(MOMENTS, REBUILD), 3))
def test_a_party_rebuilt_in_training_changes_nothing(
    tmp_path: Path, undisturbed: Outcome, who: str, moment: int
) -> None:
    local = federation(tmp_path, **SETTINGS)
    local.coordinator.prepare()
    train_until(local, moment)
    REBUILD[who](local)
    if who not in ("coordinator", "everybody"):  # this one remembers how far it came only when it resumes
        rebuild(local, "coordinator")
    local.coordinator.train()
    assert outcome(local, tmp_path) == undisturbed


@pytest.mark.parametrize("who", ["passive", "active"])
@pytest.mark.parametrize("moment", [2, CHECKPOINT, STEPS - 1])
def test_a_data_party_rebuilt_behind_a_living_coordinator_changes_nothing(
    tmp_path: Path, undisturbed: Outcome, who: str, moment: int
) -> None:
    local = federation(tmp_path, **SETTINGS)
    local.coordinator.prepare()

    class Accident(Fuse):
        def submit(self, act: Act[Any]) -> Any:
            if isinstance(act, Step) and act.exchange.step == moment:
                REBUILD[who](local)
            return self.inner.submit(act)

    links = local.coordinator.links
    links["passive"] = Accident(links["passive"], 0)
    local.coordinator.train()
    assert outcome(local, tmp_path) == undisturbed


def test_a_party_rebuilt_again_and_again(tmp_path: Path, undisturbed: Outcome) -> None:
    local = federation(tmp_path, **SETTINGS)
    local.coordinator.prepare()
    for _ in range(5):
        train_until(local, 3)
        rebuild_all(local)
    local.coordinator.train()
    assert outcome(local, tmp_path) == undisturbed


def test_one_of_three_passive_parties_received_a_step_that_the_others_did_not(tmp_path: Path) -> None:
    """The coordinator dies between two sends of one step."""
    outcomes = []
    for accident in (False, True):
        home = tmp_path / str(accident)
        local = federation(home, **SETTINGS, parties=THREE)
        local.coordinator.prepare()
        if accident:
            links = local.coordinator.links
            links["b"] = fuse = Fuse(links["b"], 6)
            with pytest.raises(Interrupted):
                local.coordinator.train()
            assert [p.recovery.learned for p in local.passive.values()] == [5, 4, 4]
            rebuild(local, "coordinator")
            local.coordinator.links["b"] = fuse.inner
        local.coordinator.train()
        outcomes.append(outcome(local, home))
    assert outcomes[0] == outcomes[1]


def test_a_reply_that_was_lost_is_given_again_after_a_restart(tmp_path: Path) -> None:
    """Asked for a step that it learned from before it died, the active party neither redraws nor relearns."""
    for moment in (CHECKPOINT, CHECKPOINT + 2):
        local = federation(tmp_path / str(moment), **SETTINGS)
        local.coordinator.prepare()
        train_until(local, moment)
        last = local.active.gate.answered(Point.GRADIENT, _exchange(moment - 1))
        assert last is not None
        rebuild(local, "active")
        before = trained(local)
        (received,) = (
            r
            for r in local.active.transcript
            if r.exchange.phase is Phase.TRAIN and r.exchange.step == moment - 1
        )
        again = local.active.step(Step(received.exchange, received.rows, received))
        assert again.released is not None
        assert same(again.released, last)
        local.active.settle()
        assert trained(local) == before
        with pytest.raises(StateError, match=rf"^step {moment - 2} of run 'tiny/run' is over"):
            local.active.step(Step(_exchange(moment - 2), received.rows, received))
        close(local)


def _exchange(step: int) -> Exchange:
    return Exchange("tiny/run", Phase.TRAIN, step // 4, step)


def test_early_stopping_remembers_across_a_restart(tmp_path: Path) -> None:
    """Stopped after the same epoch, whichever step the restart falls on."""
    settings = {
        **SETTINGS,
        "training": {"epochs": 40, "batch_size": 20, "learning_rate": 0.5, "patience": 2, "tolerance": 0.02},
    }

    def run(home: Path, moment: int | None) -> tuple[int, Outcome]:
        local = federation(home, **settings)
        local.coordinator.prepare()
        if moment is not None:
            train_until(local, moment)
            rebuild_all(local)
        local.coordinator.train()
        return local.active.recovery.learned, outcome(local, home)

    undisturbed = run(tmp_path / "undisturbed", None)
    last = undisturbed[0]
    assert 12 < last < 159, "it does stop, and early"
    for moment in (3, last - 2, last):  # the last epoch without progress among them
        assert run(tmp_path / str(moment), moment) == undisturbed


def test_a_party_rebuilt_between_predictions_releases_the_same_rows(
    tmp_path: Path, undisturbed: Outcome
) -> None:
    local = federation(tmp_path, **SETTINGS)
    local.coordinator.prepare()
    local.coordinator.train()
    local.coordinator.disclose()
    local.coordinator.open_predictions()
    rows = local.active.run.federation.predict
    first = local.active.predictions.ask(rows[:7])
    rebuild_all(local)
    local.coordinator.open_predictions()
    again = local.active.predictions.ask(rows[[6, 0]])
    np.testing.assert_array_equal(again, first[[6, 0]])
    fresh = local.active.predictions.ask(rows[5:9])
    np.testing.assert_array_equal(fresh[:2], first[5:])
    assert trained(local) == undisturbed[0]
    local.active.predict_and_attack()
    for member in local.members():
        check_defenses(member)
    close(local)


@pytest.mark.parametrize("who", ["passive", "active", "coordinator"])
@pytest.mark.parametrize("damaged", ["log", "checkpoint", "empty checkpoint"])
def test_a_damaged_log_or_checkpoint_is_refused_in_words(tmp_path: Path, who: str, damaged: str) -> None:
    local = federation(tmp_path, **SETTINGS)
    local.coordinator.prepare()
    train_until(local, 5)
    close(local)
    folder = tmp_path / who
    file = folder / "recovery" / "checkpoint.npz"
    if damaged == "log":
        payload = folder / "transcript" / "payload.bin"
        payload.write_bytes(b"\x7f" * payload.stat().st_size)  # every row position among them
    elif damaged == "checkpoint":
        gone = ("moments", "exchange")
        put_in_place(file, {n: a for n, a in load_arrays(file).items() if not n.endswith(gone)})
    else:
        put_in_place(file, {})
    with (
        _started_again(local, who) as party,
        pytest.raises(
            StorageError,
            match=rf"^checkpoint or log of .*{who} do not continue its run \(.*: use a "
            r"folder that",
        ),
    ):
        party.resume()


def put_in_place(file: Path, arrays: Mapping[str, Array]) -> None:
    """Another checkpoint, which ``state.json`` names: a forged one, or one of a defect."""
    save_arrays(file, arrays)
    state = file.parent.parent / "state.json"
    named = {"checkpoints": [next(checkpoint_digests(arrays))]}
    state.write_text(json.dumps(json.loads(state.read_text(encoding="utf-8")) | named), encoding="utf-8")


@contextmanager
def _started_again(local: LocalFederation, who: str) -> Iterator[Joined]:
    """A new one in the folder of the party ``who``, not resumed yet; only its logs are closed in the end."""
    again = anew(local.parties[who], local.parties[who].links)
    yield again
    for log in (again.transcript, again.recovery, again.gate):
        log.close()


@pytest.mark.parametrize("who", ["passive", "active", "coordinator"])
def test_an_array_of_another_shape_in_a_checkpoint_is_refused_in_words(tmp_path: Path, who: str) -> None:
    local = federation(tmp_path, **SETTINGS)
    local.coordinator.prepare()
    train_until(local, 5)
    close(local)
    file = tmp_path / who / "recovery" / "checkpoint.npz"
    saved = load_arrays(file)
    assert len(saved) > 3
    for name, array in saved.items():
        put_in_place(file, {**saved, name: np.zeros((2, *array.shape), array.dtype)})
        with (
            _started_again(local, who) as party,
            pytest.raises(StorageError, match=rf"the checkpoint holds '{name}' of shape \(2,"),
        ):
            party.resume()


@pytest.mark.parametrize("defect", ["load", "relearn"])
def test_a_defect_of_ours_is_not_told_as_a_changed_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, defect: str
) -> None:
    local = federation(tmp_path, **SETTINGS)
    local.coordinator.prepare()
    train_until(local, 5)
    close(local)

    def defective(*_: object) -> None:
        raise ValueError("ours")

    monkeypatch.setattr(PassiveParty, defect, defective)
    with _started_again(local, "passive") as party, pytest.raises(ValueError, match=r"^ours$"):
        party.resume()


@pytest.mark.parametrize("who", ["passive", "active", "coordinator"])
def test_a_run_goes_on_with_no_other_settings(tmp_path: Path, who: str) -> None:
    local = federation(tmp_path, **SETTINGS)
    local.coordinator.prepare()
    train_until(local, 5)
    close(local)
    file = tmp_path / who / "federation.json"
    text = file.read_text(encoding="utf-8")
    changed = text.replace('"optimizer": "adam"', '"optimizer": "sgd"')
    assert changed != text
    file.write_text(changed, encoding="utf-8")
    with (
        _started_again(local, who) as party,
        pytest.raises(StorageError, match=r"federation.json was changed after its run began: bring back"),
    ):
        party.resume()
    assert file.read_text(encoding="utf-8") == changed, "what is refused is not written over"


def test_a_checkpoint_of_another_table_is_refused(tmp_path: Path) -> None:
    local = federation(tmp_path, **SETTINGS)
    local.coordinator.prepare()
    train_until(local, 5)
    close(local)
    other = experiment(tmp_path, **SETTINGS, split={"kind": "fraction", "fraction": 0.3})
    config = load_party(deal(other, tmp_path)["passive"])
    assert isinstance(config, PassiveConfig)
    party = PassiveParty(config, {})
    with pytest.raises(
        StorageError, match=r"^the party's table is no longer that of the run in .*: bring back"
    ):
        party.resume()
    order = load_arrays(party.folder / "order.npz")["order"]
    save_order(party.folder, order, party.table.digest())  # a folder put together from two runs
    with pytest.raises(
        StorageError,
        match=r"the checkpoint holds 'theta' of shape \(15,\) float64: \(9,\) float64 is "
        r"due\): use a folder that nobody changed$",
    ):
        party.resume()
    party.transcript.close()
    party.recovery.close()
    party.gate.close()


def test_batches_do_not_depend_on_what_was_drawn_before(tmp_path: Path) -> None:
    """What a resumed coordinator relies on."""
    local = federation(tmp_path)
    secret = local.coordinator.secret
    stream(secret, "batches", 0).random(1000)
    a, b = stream(secret, "batches", 1).permutation(50), stream(secret, "batches", 1).permutation(50)
    np.testing.assert_array_equal(a, b)
    close(local)


def test_a_sampled_transcript_changes_nothing_that_is_learned_or_recovered(tmp_path: Path) -> None:
    """The recovery log is whole: parties rebuilt in the middle of epochs that are left out go on as if
    nothing had been.
    """
    whole = federation(tmp_path / "whole", **SETTINGS)
    whole.coordinator.prepare()
    whole.coordinator.train()
    epochs = whole.coordinator.aligned.training.epochs
    sampled = federation(tmp_path / "sampled", **SETTINGS, transcript={"every": epochs})
    sampled.coordinator.prepare()
    train_until(sampled, 5)
    rebuild_all(sampled)
    sampled.coordinator.train()
    assert trained(sampled) == trained(whole)
    for member in sampled.members():
        assert {r.exchange.round for r in member.transcript} == {epochs - 1}
        log = member.folder / "recovery" / "payload.bin"
        assert log.stat().st_size < sum(r.nbytes for r in member.transcript)
    received = [
        {m.name: (m.transcript.received, m.transcript.nbytes) for m in each.members()}
        for each in (whole, sampled)
    ]
    assert received[0] == received[1]
    close(whole)
    close(sampled)
    reported = [read_runs([tmp_path / name])[0].value(Name.BYTES_RECEIVED) for name in ("whole", "sampled")]
    assert reported == [received[0]["coordinator"][1]] * 2, "not what came before the restart alone"


def test_an_attack_that_needs_what_was_not_kept_says_so(tmp_path: Path) -> None:
    early = {"epochs": 4, "batch_size": 20, "patience": 1, "tolerance": 10}  # it stops after the second epoch
    attacks = [{"name": "clear_features"}]
    local = federation(tmp_path, attacks=attacks, training=early, transcript={"every": 4})
    local.run()
    (reason,) = [m["detail"] for m in local.active.metrics._rows if m["metric"] == "skipped"]
    assert "no logits of 72 rows" in reason
    assert "its transcript leaves out (transcript.every = 4)" in reason


@pytest.mark.parametrize("who", ["passive", "active"])
def test_a_party_killed_right_after_its_reply_changes_nothing(
    tmp_path: Path, undisturbed: Outcome, who: str
) -> None:
    """What it puts off until the reply has left is never done."""
    local = federation(tmp_path, **SETTINGS)
    local.coordinator.prepare()
    train_until(local, CHECKPOINT + 1)
    rebuild(local, "coordinator")
    local.data_parties[who].defer = lambda work: None  # type: ignore[method-assign]
    train_until(local, 1)
    REBUILD[who](local)
    rebuild(local, "coordinator")
    local.coordinator.train()
    assert outcome(local, tmp_path) == undisturbed
