"""The adversary in a server: what it sees, what clients score, and what they refuse."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from accidents import Around, Interrupted, over_grpc, rebuild
from horizontal import clients_of, deal, federation, scaled, server_of, table
from laboratory import close, figures, transcripts
from stubparty import short_folder

from vflens.errors import ProtocolError, StateError
from vflens.protocol.acts import Act, Disclose, Guess, Submission
from vflens.storage.files import load_arrays
from vflens.types import Phase

TABLES = {"a": table(30, 1), "b": table(17, 2)}
ONE_ROW: dict[str, Any] = {
    "training": {"batch_size": 1, "learning_rate": 0.5, "optimizer": "sgd"},
    "horizontal": {"rounds": 3, "local_steps": 1},
    "attacks": [{"name": "softmax_inversion"}, {"name": "random_guess"}],
}


class Unscored(Around):
    """Lets no submission through."""

    def submit(self, act: Act[Any]) -> Any:
        if isinstance(act, Submission):
            raise Interrupted
        return super().submit(act)


def outcome(home: Path) -> tuple[dict[str, str], Mapping[str, bytes], dict[Any, float]]:
    """Transcripts, the estimates of both clients, and the errors at one of them."""
    estimates = {n: load_arrays(home / f"server/estimates/{n}.softmax_inversion.train.npz") for n in TABLES}
    values = {name: arrays["values"].tobytes() for name, arrays in estimates.items()}
    scored = {key: value for key, value in figures(home / "a").items() if "matched" in key[0]}
    return transcripts(home), values, scored


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """An uninterrupted run."""
    home = tmp_path_factory.mktemp("whole")
    federation(deal(home, TABLES, **ONE_ROW)).run()
    return home, outcome(home)


def test_the_row_of_a_round_is_recovered(whole: Any) -> None:
    home, _ = whole
    for name, own in TABLES.items():
        x = load_arrays(home / f"server/estimates/{name}.softmax_inversion.train.npz")["values"]
        assert np.abs(scaled(own)[0] - x).max(axis=1).min() < 1e-12  # it is a training row
        found = figures(home / name)
        assert found["matched_mse", "softmax_inversion", ""] < 1e-24
        assert found["blind_matched_mse", "half", ""] > 1e-3
    skipped = [column for metric, _, column in figures(home / "server") if metric == "skipped"]
    assert any("granted neither embeddings nor gradients" in reason for reason in skipped)


def test_both_links_give_the_same_attack(whole: Any) -> None:
    with short_folder() as home:
        local = federation(deal(home, TABLES, **ONE_ROW))
        with over_grpc(local):
            local.leader.lead()
            local.complete()
        close(local)
        assert outcome(home) == whole[1]


@pytest.mark.parametrize("who", ["a", "server"])
def test_a_restart_between_attack_and_end_changes_nothing(tmp_path: Path, whole: Any, who: str) -> None:
    local = federation(deal(tmp_path, TABLES, **ONE_ROW))
    server = server_of(local)
    server.prepare()
    server.train()
    server.disclose()
    server.open_predictions()
    server.links["b"] = unscored = Unscored(server.links["b"])  # "a" has scored
    with pytest.raises(Interrupted):
        server.attack()
    server.links["b"] = unscored.inner
    rebuild(local, who)
    server_of(local).rejoin()
    server_of(local).lead()
    local.complete()
    assert server_of(local).finished.is_set()
    close(local)
    assert outcome(tmp_path) == whole[1]


def test_a_run_is_over_when_the_server_has_attacked_too(tmp_path: Path) -> None:
    local = federation(deal(tmp_path, TABLES, **ONE_ROW))
    server = server_of(local)
    server.prepare()
    server.train()
    server.disclose()
    server.open_predictions()
    local.complete()
    assert not server.finished.is_set()
    server.attack()
    assert server.finished.is_set()
    close(local)


@pytest.fixture
def trained(tmp_path: Path) -> Any:
    """A federation whose clients accept submissions."""
    local = federation(deal(tmp_path, TABLES, **ONE_ROW))
    server = server_of(local)
    server.prepare()
    server.train()
    server.disclose()
    server.open_predictions()
    yield local
    close(local)


def submission(**changes: Any) -> Submission:
    """One guess of the row of round 0."""
    guess = Guess("mine", np.full((1, 4), 0.5), np.zeros(1, np.uint8))
    facts: dict[str, Any] = {
        "run": "tiny/run",
        "sender": "server",
        "scored_set": "train",
        "rows": np.zeros(1, np.int32),
    }
    return Submission(**{**facts, "guesses": (guess,), "estimates": "features", "step": 0, **changes})


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "a round that is not there": ({"step": 3}, "has no record of training in it"),
    "neither columns nor labels": ({"estimates": ""}, "scores features and labels of train rows"),
    "prediction rows": ({"scored_set": "predict"}, "scores features and labels of train rows"),
    "rows that were not granted": ({"step": None}, "must name the first rows that were released"),
    "labels of the wrong width": ({"estimates": "labels"}, r"\(1, 3\) is needed"),
    "another number of rows": ({"rows": np.arange(2, dtype=np.int32)}, "submission of 2 train rows"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_client_refuses_to_score(trained: Any, what: str) -> None:
    changes, sentence = REFUSED[what]
    with pytest.raises(ProtocolError, match=sentence):
        server_of(trained).links["a"].call(submission(**changes))


def test_guesses_of_a_round_are_scored_once(trained: Any) -> None:
    link = server_of(trained).links["a"]
    assert link.call(submission()).errors == link.call(submission()).errors
    other = Guess("mine", np.zeros((1, 4)), np.zeros(1, np.uint8))
    with pytest.raises(StateError, match="were scored before"):
        link.call(submission(guesses=(other,)))
    link.call(submission(step=1, guesses=(other,)))  # another round


def test_disclosures_wait_for_the_last_round_and_go_to_the_server(tmp_path: Path) -> None:
    local = federation(deal(tmp_path, TABLES, **ONE_ROW))
    server = server_of(local)
    server.prepare()
    with pytest.raises(StateError, match="disclosures after round -1 of 3"):
        server.links["a"].call(Disclose("tiny/run", 1, "server"))
    with pytest.raises(ProtocolError, match="grants to its server alone"):
        server.links["a"].call(Disclose("tiny/run", 1, "b"))
    close(local)


def test_no_submission_before_training_is_over(tmp_path: Path) -> None:
    local = federation(deal(tmp_path, TABLES, **ONE_ROW))
    server_of(local).prepare()
    with pytest.raises(StateError, match="still training"):
        server_of(local).links["a"].call(submission())
    close(local)


def test_a_round_s_rows_are_those_that_the_client_trained_on(trained: Any) -> None:
    """The update of one step of one row is a multiple of that row."""
    client = clients_of(trained)["a"]
    for released in trained.leader.transcript.select(sender="a"):
        (row,) = client._scoring.rows_of(released.exchange.round)
        gradient, x = released.tensor("weight"), client.run.truth[np.array([row])][0]
        if released.exchange.round == 0:  # the penalty has no part at 0
            assert abs(np.corrcoef(gradient[0], x)[0, 1]) > 1 - 1e-9
    assert client.run.federation.rows_of("a", Phase.TRAIN).tolist() == list(range(24))
