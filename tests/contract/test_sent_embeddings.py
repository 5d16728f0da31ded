"""Attacks in a server of SplitFed on the embeddings and labels of a round, scored row by row."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from horizontal import clients_of, deal, federation, scaled, server_of, table
from laboratory import close, figures
from pydantic import ValidationError

from vflens.attacks.wmi import WhiteBoxInversion
from vflens.config import build_plugins
from vflens.config.settings import Plugin
from vflens.errors import ProtocolError
from vflens.experiments.offline.attack import attack_recorded
from vflens.experiments.offline.score import score_estimate
from vflens.experiments.results.folders import read_party
from vflens.models.families.split_network import SplitNetwork
from vflens.models.settings import Horizontal, Training
from vflens.plugins.views.horizontal import ServerView
from vflens.protocol.acts import Guess, Submission
from vflens.registry import ATTACKS
from vflens.storage.files import load_arrays
from vflens.storage.journal import Messages
from vflens.types import Array, ColumnInfo, Exchange, PartyInfo, Phase, Point, Released, Role, Setting

TABLES = {"a": table(30, 1), "b": table(17, 2)}  # 24 and 11 rows to train: 3 and 2 batches of 8
GRANTS = [{"what": "auxiliary", "to": "server", "rows": 8}, {"what": "embeddings", "to": "server", "rows": 1}]
SENT = {"embeddings": "sent"}
ATTACKED: dict[str, Any] = {
    "model": {"architecture": "mlp", "width": 6, "hidden": [], "top": [4]},
    "training": {"batch_size": 8, "learning_rate": 1e-4, "optimizer": "sgd"},
    "horizontal": {"method": "splitfed", "rounds": 2},
    "disclose": GRANTS,
    "attacks": [
        {"name": "wmi", "steps": 300, "starts": 1, **SENT},
        {"name": "inverse_network", "learning_steps": 1, **SENT},
        {"name": "bmi", "steps": 200, "starts": 1, **SENT},
        {"name": "sent_labels"},
        {"name": "random_guess"},  # of granted rows
    ],
}


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folders of a run whose bottom models are linear and hardly move."""
    folder = tmp_path_factory.mktemp("run")
    federation(deal(folder, TABLES, **ATTACKED)).run()
    return folder


@pytest.mark.parametrize("attack", ["wmi", "inverse_network", "bmi"])
@pytest.mark.parametrize("client", TABLES)
def test_every_row_of_a_round_is_recovered_and_scored_as_itself(home: Path, client: str, attack: str) -> None:
    x = load_arrays(home / f"server/estimates/{client}.{attack}.batches.npz")["values"]
    truth = scaled(TABLES[client])[0]
    nearest = np.linalg.norm(x[:, None] - truth, axis=2).argmin(axis=1)
    assert sorted(nearest) == list(range(len(truth)))  # each row once
    assert nearest.tolist() != sorted(nearest)  # in the order of the batches
    found = figures(home / client)
    assert found["mse", attack, ""] == pytest.approx(((x - truth[nearest]) ** 2).mean(), rel=1e-9)
    assert found["mse", attack, ""] < 1e-3 < found["blind_mse", "column_means", ""]


def test_labels_are_read_row_by_row(home: Path) -> None:
    assert figures(home / "a")["label_accuracy", "sent_labels", ""] == 1
    assert figures(home / "a")["blind_label_accuracy", "", ""] < 1


def test_a_defence_of_labels_leaves_what_it_drew(tmp_path: Path) -> None:
    settings = {**ATTACKED, "attacks": [{"name": "sent_labels"}], "disclose": []}
    noisy = [{"name": "label_dp", "epsilon": 0.5}]
    local = federation(deal(tmp_path, TABLES, **settings, defenses=noisy))
    local.run()
    run = clients_of(local)["a"].run
    rows = run.federation.rows_of("a", Phase.TRAIN)
    kept = (run.soft_labels[rows].argmax(axis=1) == run.labels[rows]).mean()
    assert kept < 1
    assert figures(tmp_path / "a")["label_accuracy", "sent_labels", ""] == pytest.approx(kept)


def test_no_figure_of_a_round_s_rows_counts_as_granted(home: Path) -> None:
    noted = [key for key in figures(home / "server") if key[0] in ("granted", "skipped", "failed")]
    assert noted == []


def test_attack_and_score_on_the_folders_give_the_run_s_figures(home: Path, tmp_path: Path) -> None:
    (home / "a").chmod(0o700)
    out = tmp_path / "guess.npz"
    found = attack_recorded(home / "server", "inverse_network", "a", out)
    assert (found["scored_set"], found["rows"]) == ("batches-1", 24)  # the granted pairs are those of the end
    scored = score_estimate(out, home / "a/config.toml")
    assert scored["mse"] == figures(home / "a")["mse", "inverse_network", ""]
    assert scored["blind_mse"] > scored["mse"]


def test_pictures_of_granted_rows_and_of_every_round_are_kept(home: Path) -> None:
    pictures = read_party(home / "a").pictures()
    attacks = {of: {n for n in found if ":" in n} for of, found in pictures.items()}
    assert attacks == {
        "": {"estimate:random_guess"},
        "batches-0": {"estimate:wmi"},
        "batches-1": {"estimate:bmi", "estimate:inverse_network"},
    }
    truth = scaled(TABLES["a"])[0]
    for found in pictures.values():
        np.testing.assert_allclose(found["original"], truth[found["rows"]])


COLUMNS = tuple(ColumnInfo(f"c{j}", 0.0, 1.0) for j in range(4))


def test_each_batch_is_inverted_through_the_model_that_it_met() -> None:
    """The parameters move by equal parts; those of the round's start would miss the second batch."""
    rng = np.random.default_rng(1)
    start = {"bottom.0.weight": rng.normal(size=(6, 4)), "bottom.0.bias": rng.normal(size=6)}
    update = {name: rng.normal(size=value.shape) for name, value in start.items()}
    x = rng.random((2, 5, 4))

    def sent(place: int) -> Array:
        weight, bias = (start[n] + place / 2 * update[n] for n in start)
        return np.asarray(x[place] @ weight.T + bias)

    def released(place: int, point: Point, rows: int, **tensors: Array) -> Released:
        exchange = Exchange("tiny/run", Phase.TRAIN, 0, place)
        return Released("a", exchange, point, np.arange(rows, dtype=np.int32), tensors=tensors)

    labels = np.zeros((5, 2))
    log = [released(p, Point.EMBEDDING, 5, embedding=sent(p), labels=labels) for p in range(2)]
    attack = WhiteBoxInversion(embeddings="sent", steps=500, starts=1)
    agreed: Any = SimpleNamespace(
        parties=[PartyInfo("a", Role.CLIENT, columns=COLUMNS, n_classes=2)],
        n_classes=2,
        model=SplitNetwork(architecture="mlp", width=6, precision="float64"),
        training=Training(batch_size=5),
        horizontal=Horizontal(method="splitfed", rounds=1),
        steps_of=lambda client: 2,
    )
    view = ServerView(
        federation=agreed,
        number=0,
        parameters=lambda number: start,
        target="a",
        party="server",
        rows=np.arange(10, dtype=np.int32),
        log=Messages([*log, released(2, Point.UPDATE, 0, **update)]),
        needs=attack.declared().needs,
        phases=attack.declared().phases,
        every=1,
        device="cpu",
        joint=None,
        progress=lambda stage, done, total: None,
    )
    found: Any = attack.reconstruct(view, rng=rng)  # type: ignore[arg-type]
    assert np.abs(found.values - x.reshape(10, 4)).max() < 1e-2


REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no round": ({"step": None}, "of batches of round None"),
    "membership": ({"estimates": "membership"}, "of batches of round 0"),
    "a round that is not there": ({"step": 2}, "has no record of training in it"),
    "some of the rows": ({"rows": np.arange(3, dtype=np.int32)}, "estimate all of them"),
    "rows by number": ({"rows": np.arange(1, 25, dtype=np.int32)}, "estimate all of them"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_a_client_refuses_to_score_batches(open_run: Any, what: str) -> None:
    changes, sentence = REFUSED[what]
    with pytest.raises(ProtocolError, match=sentence):
        server_of(open_run).links["a"].call(_submission(**changes))


@pytest.fixture(scope="module")
def open_run(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A federation whose clients accept submissions."""
    local = federation(deal(tmp_path_factory.mktemp("open"), TABLES, **{**ATTACKED, "attacks": []}))
    server = server_of(local)
    for scoring in ("prepare", "train", "disclose", "open_predictions"):
        getattr(server, scoring)()
    yield local
    close(local)


def _submission(**changes: Any) -> Submission:
    guess = Guess("mine", np.full((24, 4), 0.5), np.zeros(24, np.uint8))
    facts: dict[str, Any] = {"run": "tiny/run", "sender": "server", "scored_set": "batches"}
    facts |= {"rows": np.arange(24, dtype=np.int32), "guesses": (guess,), "estimates": "features", "step": 0}
    return Submission(**{**facts, **changes})


def test_fedavg_sends_no_batches(tmp_path: Path) -> None:
    settings: Mapping[str, Any] = {
        **ATTACKED,
        "horizontal": {"rounds": 1},
        "disclose": [],
        "attacks": [{"name": "wmi", **SENT}],
    }
    local = federation(deal(tmp_path, TABLES, **settings))
    local.run()
    skipped = [column for metric, _, column in figures(tmp_path / "server") if metric == "skipped"]
    assert skipped
    assert all("method = 'fedavg' sends no embeddings in a round" in reason for reason in skipped)
    close(local)
    link = clients_of(local)["a"]
    with pytest.raises(ProtocolError, match="only SplitFed sends rows in an order"):
        link.score(_submission())


def test_a_round_is_of_horizontal_federations_alone() -> None:
    ((_, sent),) = build_plugins(ATTACKS, [Plugin.model_validate({"name": "wmi", **SENT})])
    assert sent.made_for() == {Setting.HORIZONTAL}
    with pytest.raises(ValidationError, match="SplitFed averages bottom models"):
        WhiteBoxInversion(embeddings="sent", passport="random")
