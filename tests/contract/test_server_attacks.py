"""The adversary in a server: what it sees, what clients score, and what they refuse."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from accidents import Around, Interrupted, over_grpc, rebuild
from horizontal import clients_of, deal, federation, scaled, server_of, table
from laboratory import close, figures, transcripts
from stubparty import short_folder

from vflens.config.writing import toml_text
from vflens.errors import ConfigError, ProtocolError, StateError, VflensError
from vflens.experiments.offline.attack import attack_recorded
from vflens.experiments.offline.score import score_estimate
from vflens.experiments.results.record import read_runs
from vflens.experiments.results.results import final
from vflens.experiments.results.verdict import result_table
from vflens.plugins.attack import Attack
from vflens.plugins.views.horizontal import ServerView
from vflens.protocol.acts import Act, Disclose, Guess, Submission
from vflens.registry import Registry
from vflens.storage.files import load_arrays
from vflens.types import Estimate, Knowledge, Phase, Point, Setting, statuses

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
        assert found["rows_found", "softmax_inversion", ""] == 1
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
    "neither columns nor labels": (
        {"estimates": ""},
        "scores features, labels, membership and source of train rows",
    ),
    "prediction rows": (
        {"scored_set": "predict"},
        "scores features, labels, membership and source of train rows",
    ),
    "rows that were not granted": ({"step": None}, "must name the first rows that were released"),
    "labels of the wrong width": ({"estimates": "labels"}, r"\(1, 3\) is needed"),
    "another number of rows": ({"rows": np.arange(2, dtype=np.int32)}, "submission of 2 rows of round 0"),
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


def test_what_was_scored_stays_known_whatever_else_is_scored_and_after_a_restart(trained: Any) -> None:
    """Columns and labels have services of their own, and one memory."""
    link = server_of(trained).links["a"]
    link.call(submission())
    labels = Guess("mine", np.full((1, 3), 0.5), np.zeros(1, np.uint8))
    link.call(submission(estimates="labels", guesses=(labels,)))
    rebuild(trained, "a")
    other = Guess("mine", np.zeros((1, 4)), np.zeros(1, np.uint8))
    with pytest.raises(StateError, match="were scored before"):
        server_of(trained).links["a"].call(submission(guesses=(other,)))


def test_rows_whose_assignment_takes_long_are_refused(trained: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vflens.clients.horizontal.scoring._MOST_MATCHED", 0)
    with pytest.raises(ProtocolError, match="at most 0 are matched with the truth"):
        server_of(trained).links["a"].call(submission())


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
        (row,) = client.scoring.rows_of(released.exchange.round)
        gradient, x = released.tensor("weight"), client.run.truth[np.array([row])][0]
        if released.exchange.round == 0:  # the penalty has no part at 0
            assert abs(np.corrcoef(gradient[0], x)[0, 1]) > 1 - 1e-9
    assert client.run.federation.rows_of("a", Phase.TRAIN).tolist() == list(range(24))


class Reader(Attack):
    """Reads all that a client grants, and answers with the input that a row's own gradient shows."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {
            *(Knowledge.EMBEDDINGS, Knowledge.GRADIENTS, Knowledge.PARAMETERS, Knowledge.AUXILIARY),
            *(Knowledge.KNOWN_LABELS, Knowledge.MOMENTS, Knowledge.METADATA),
        }
    )
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.DISCLOSE, Phase.TRAIN})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    settings: ClassVar[frozenset[Setting]] = frozenset({Setting.HORIZONTAL})

    def reconstruct(self, view: ServerView, *, rng: np.random.Generator) -> Estimate:
        """X = the first class's row of the weight's gradient over that of the bias."""
        gradient, last = view.gradients(), view.parameters(view.rounds)
        x = gradient["weight"][:, 0] / gradient["bias"][:, :1]
        assert np.allclose(view.embeddings(), x @ last["weight"].T + last["bias"])  # the logits
        rows, features = view.auxiliary()
        assert not np.isin(rows, view.rows).any()
        assert np.allclose(
            view.gradients(rows)["weight"][:, 0], features * view.gradients(rows)["bias"][:, :1]
        )
        assert view.known_labels()[0].tolist() == rows[np.isin(rows, view.known_labels()[0])].tolist()
        assert view.moments().mean.shape == (len(view.metadata()),) == (view.widths()[view.target],)
        assert len(list(view.updates())) == 3
        return Estimate(view.target, view.rows, x, statuses(len(x)))


GRANTS = [
    *({"what": what, "to": "server", "rows": 4} for what in ("embeddings", "gradients", "auxiliary")),
    *({"what": "labels", "to": "server", "rows": 2}, {"what": "moments", "to": "server"}),
]


def granting(home: Path, **changes: Any) -> dict[str, Path]:
    """The files of a federation whose client "a" grants everything."""
    files = deal(home, TABLES, **{**ONE_ROW, "attacks": [{"name": "reader"}], **changes})
    settings = tomllib.loads(files["a"].read_text(encoding="utf-8"))
    files["a"].write_text(toml_text({**settings, "disclose": GRANTS}), encoding="utf-8")
    return files


@pytest.fixture
def reader(monkeypatch: pytest.MonkeyPatch) -> None:
    """An attack of another package."""
    get = Registry.get
    found: Any = lambda registry, name: Reader if name == "reader" else get(registry, name)  # noqa: E731
    monkeypatch.setattr(Registry, "get", found)


def test_a_registered_attack_reads_what_was_granted_and_is_marked(tmp_path: Path, reader: None) -> None:
    local = federation(granting(tmp_path))
    local.run()
    assert figures(tmp_path / "a")["mse", "reader", ""] < 1e-24
    noted = {key: value for key, value in figures(tmp_path / "server").items() if key[1] == "reader"}
    assert ("granted", "reader", "embedding, gradient") in noted
    assert any(key[0] == "skipped" for key in noted)  # "b" grants nothing
    (run,) = read_runs([tmp_path])
    (result,) = final(run)
    assert (result.target, result.rows, result.granted) == ("a", 4, "embedding, gradient")
    _, (row, _) = result_table([run])
    assert row[-1].endswith("granted, not on the wire")


def test_a_defence_of_gradients_acts_on_what_is_granted(tmp_path: Path, reader: None) -> None:
    files = granting(tmp_path)
    settings = tomllib.loads(files["a"].read_text(encoding="utf-8"))
    settings["defenses"] = [{"name": "sparsification", "kept": 0.2}]
    files["a"].write_text(toml_text(settings), encoding="utf-8")
    local = federation(files)
    local.run()
    (shown,) = local.leader.transcript.select(Point.GRADIENT, phases={Phase.DISCLOSE})
    numbers = np.concatenate([t.reshape(8, -1) for t in (shown.tensors or {}).values()], axis=1)
    assert (np.count_nonzero(numbers, axis=1) == 3).all()  # a fifth of 15 numbers of a row


def test_an_attack_made_for_vertical_federations_is_refused(tmp_path: Path) -> None:
    files = deal(tmp_path, TABLES, **{**ONE_ROW, "attacks": [{"name": "half_star"}]})
    with pytest.raises(ConfigError, match="is made for vertical federations, this one is horizontal"):
        federation(files)


GRANTED = {
    "another receiver": ({"what": "moments", "to": "b"}, "is not the server: name 'server'"),
    "a shared parameter": ({"what": "parameters", "to": "server"}, "the server has all of them"),
    "more rows than train": (
        {"what": "labels", "to": "server", "rows": 25},
        "more than its 24 training rows",
    ),
}


@pytest.mark.parametrize("what", GRANTED)
def test_a_client_refuses_to_grant(tmp_path: Path, what: str) -> None:
    grant, sentence = GRANTED[what]
    files = deal(tmp_path, TABLES, **ONE_ROW)
    settings = tomllib.loads(files["a"].read_text(encoding="utf-8"))
    files["a"].write_text(toml_text({**settings, "disclose": [grant]}), encoding="utf-8")
    with pytest.raises(VflensError, match=sentence):
        federation(files).run()


def test_attack_and_score_on_the_folders_give_the_run_s_figures(whole: Any, tmp_path: Path) -> None:
    home, _ = whole
    out = tmp_path / "guess.npz"
    (home / "a").chmod(0o700)
    found = attack_recorded(home / "server", "softmax_inversion", "a", out)
    assert (found["target"], found["scored_set"], found["rows"]) == ("a", "round-0", 1)
    kept = load_arrays(home / "server/estimates/a.softmax_inversion.train.npz")
    assert load_arrays(out)["values"].tobytes() == kept["values"].tobytes()
    scored = score_estimate(out, home / "a/config.toml")
    assert scored["matched_mse"] == figures(home / "a")["matched_mse", "softmax_inversion", ""]
    assert scored["blind_matched_mse"] > scored["matched_mse"]
    with pytest.raises(ConfigError, match="--target is missing: name a or b"):
        attack_recorded(home / "server", "softmax_inversion", None, out)
    with pytest.raises(ConfigError, match="is made for vertical federations: this folder is of a horizontal"):
        attack_recorded(home / "server", "half_star", "a", out)


def test_a_client_is_no_target_of_its_own(whole: Any, tmp_path: Path) -> None:
    home, *_ = whole
    with pytest.raises(ConfigError, match="--target 'a' is no target of this attack: name b"):
        attack_recorded(home / "a", "first_layer", "a", tmp_path / "guess.npz")
