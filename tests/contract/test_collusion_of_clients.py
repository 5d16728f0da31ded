"""A server and clients that collude: what masked updates still hide from them, and what not."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from horizontal import deal, federation, scaled
from summing import FOUR, SECURE, TABLES

from vflens.errors import ConfigError, KnowledgeError
from vflens.experiments.offline.attack import attack_recorded
from vflens.experiments.offline.score import score_estimate
from vflens.experiments.results.folders import read_party
from vflens.plugins.attack import Attack
from vflens.plugins.views.horizontal import ServerView
from vflens.registry import ATTACKS
from vflens.storage.files import load_arrays
from vflens.storage.journal import Reader
from vflens.types import Array, Estimate, Knowledge, Phase, Point, Setting, statuses

ONE_ROW: dict[str, Any] = {
    "training": {"batch_size": 1, "learning_rate": 0.5, "optimizer": "sgd"},
    "horizontal": {"local_steps": 1},
}
MLP = {"architecture": "mlp", "width": 5, "hidden": [6], "top": [4], "precision": "float64"}


class SeenOfClients(Attack):
    """It keeps its view."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset(Knowledge)
    phases: ClassVar[frozenset[Phase]] = frozenset(Phase)
    settings: ClassVar[frozenset[Setting]] = frozenset({Setting.HORIZONTAL})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    views: ClassVar[list[ServerView]] = []

    @property
    def unordered(self) -> bool:
        return True

    def reconstruct(self, view: Any, *, rng: np.random.Generator) -> Estimate:
        self.views.append(view)
        values = np.zeros((len(view.rows), view.widths()[view.target]))
        return Estimate(view.target, view.rows, values, statuses(len(values)))


def run(home: Path, tables: Any, *, secure: bool = True, **changes: Any) -> None:
    horizontal = {**SECURE["horizontal"], "secure_aggregation": secure, **changes.pop("horizontal", {})}
    settings = {**SECURE, "secure_aggregation": secure, "horizontal": horizontal}
    federation(deal(home, tables, **settings | changes)).run()


def view_of(home: Path, target: str, *clients: str) -> ServerView:
    with ATTACKS.entered(SeenOfClients) as name:
        together = [home / client for client in clients]
        attack_recorded(home / "server", name, target, home / "e.npz", together=together)
    return SeenOfClients.views.pop()


def in_the_clear(home: Path, of: str) -> dict[int, dict[str, Array]]:
    """Round → the updates of a client, in a run without masks."""
    sent = Reader(home / "server/transcript").select(Point.UPDATE, phases={Phase.TRAIN}, sender=of)
    return {r.exchange.round: dict(r.tensors or {}) for r in sent}


@pytest.mark.parametrize("model", [{}, {"model": MLP}], ids=["lr", "mlp"])
@pytest.mark.parametrize("weights", ["rows", "equal"])
def test_all_other_clients_take_their_own_from_the_sum(tmp_path: Path, model: Any, weights: str) -> None:
    """Another run of the same seeds without masks says what the update was."""
    for secure in (True, False):
        run(tmp_path / str(secure), TABLES, secure=secure, horizontal={"weights": weights}, **model)
    truth = in_the_clear(tmp_path / "False", "a")
    found = {e.round: delta for e, delta in view_of(tmp_path / "True", "a", "b", "c").updates()}
    assert sorted(found) == sorted(truth) == [0, 1, 2]
    for number, updates in truth.items():
        assert list(found[number]) == list(updates)
        for name, value in updates.items():
            assert np.abs(value).max() > 1e-4
            np.testing.assert_allclose(found[number][name], value, rtol=0, atol=1e-10)


def test_of_two_clients_who_do_not_collude_the_sum_is_known(tmp_path: Path) -> None:
    run(tmp_path, FOUR)
    with pytest.raises(KnowledgeError, match="knows the sum of the updates of 'a' and of b, and no more"):
        view_of(tmp_path, "a", "c", "d")
    with pytest.raises(KnowledgeError, match="the server saw masked updates only"):
        view_of(tmp_path, "a")
    assert view_of(tmp_path, "a", "b", "c", "d").updates()


def test_a_round_that_draws_the_target_and_colluders_alone_is_uncovered(tmp_path: Path) -> None:
    run(tmp_path, FOUR, horizontal={"rounds": 9, "participants": 3})
    sent: dict[int, set[str]] = {}
    for r in Reader(tmp_path / "server/transcript").select(Point.MASKED_UPDATE):
        sent.setdefault(r.exchange.round, set()).add(r.sender)
    alone = [number for number, names in sent.items() if names == {"a", "b", "c"}]
    assert 0 < len(alone) < sum("a" in names for names in sent.values())
    assert [e.round for e, _ in view_of(tmp_path, "a", "b", "c").updates()] == alone


def test_an_attack_on_updates_runs_on_what_is_uncovered_and_its_target_scores_it(tmp_path: Path) -> None:
    run(tmp_path, TABLES, **ONE_ROW)
    others, out = [tmp_path / "b", tmp_path / "c"], tmp_path / "e.npz"
    facts = attack_recorded(tmp_path / "server", "softmax_inversion", "a", out, together=others)
    x = load_arrays(out)["values"]
    assert np.abs(scaled(TABLES["a"])[0] - x).max(axis=1).min() < 1e-8  # it is a training row
    (tmp_path / "a").chmod(0o700)
    scored = score_estimate(out, tmp_path / "a/config.toml")
    assert scored["attack"] == facts["attack"] == "softmax_inversion:with-b-c"
    assert scored["matched_mse"] < 1e-16
    stated = {m.adversary for m in read_party(tmp_path / "a").metrics if m.attack == scored["attack"]}
    assert stated == {"server+b+c"}


def test_what_is_no_adversary_is_refused(tmp_path: Path) -> None:
    run(tmp_path, TABLES)
    everybody = ("a", "b", "c")
    with pytest.raises(ConfigError, match="hold all the data: nobody is left to attack"):
        view_of(tmp_path, "a", *everybody)
    with pytest.raises(ConfigError, match="--target 'b' is no target of this attack"):
        view_of(tmp_path, "b", "b")


# -- clients without their server -------------------------------------------------------------------------


def view_without_server(home: Path, target: str, *clients: str) -> ServerView:
    with ATTACKS.entered(SeenOfClients) as name:
        first, *others = [home / client for client in clients]
        attack_recorded(first, name, target, home / "e.npz", together=others)
    return SeenOfClients.views.pop()


SPARSE = {"name": "error_feedback", "kept": 0.3}
PRIVATE: dict[str, Any] = {"model": MLP, "horizontal": {"method": "lg_fedavg"}}


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"model": MLP, "horizontal": {"weights": "equal"}},
        {"defenses": [SPARSE]},
        {"secure": False},
        {**PRIVATE, "secure": False},
    ],
    ids=["lr", "mlp", "error feedback", "in the clear", "private bottom"],
)
def test_without_their_server_all_other_clients_have_the_update_of_the_last(
    tmp_path: Path, settings: dict[str, Any]
) -> None:
    """What its server would see without masks, in a run of the same seeds."""
    run(tmp_path / "run", TABLES, **settings)
    run(tmp_path / "clear", TABLES, **{**settings, "secure": False})
    truth = in_the_clear(tmp_path / "clear", "a")
    view = view_without_server(tmp_path / "run", "a", "b", "c")
    found = {e.round: delta for e, delta in view.updates()}
    assert sorted(found) == sorted(truth) == [0, 1, 2]
    for number, updates in truth.items():
        assert list(found[number]) == list(updates)
        assert max(np.abs(value).max() for value in updates.values()) > 1e-4
        for name, value in updates.items():
            np.testing.assert_allclose(found[number][name], value, rtol=0, atol=1e-10)


def test_of_two_clients_each_has_the_update_of_the_other(tmp_path: Path) -> None:
    run(tmp_path, {name: TABLES[name] for name in ("a", "b")}, secure=False)
    truth = np.stack([update["weight"] for update in in_the_clear(tmp_path, "a").values()])
    found = [delta["weight"] for _, delta in view_without_server(tmp_path, "a", "b").updates()]
    np.testing.assert_allclose(found, truth, rtol=0, atol=1e-10)


def test_of_two_others_and_of_rounds_of_some_they_know_no_update(tmp_path: Path) -> None:
    run(tmp_path / "four", FOUR)
    with pytest.raises(KnowledgeError, match="c, d know the sum of the updates of a, b, and no more"):
        view_without_server(tmp_path / "four", "a", "c", "d")
    run(tmp_path / "some", FOUR, horizontal={"participants": 3})
    with pytest.raises(KnowledgeError, match="do not know who trained in a round"):
        view_without_server(tmp_path / "some", "a", "b", "c", "d")


def test_an_attack_of_clients_on_an_update_is_exact_and_scored(tmp_path: Path) -> None:
    run(tmp_path, TABLES, **ONE_ROW)
    out = tmp_path / "e.npz"
    facts = attack_recorded(tmp_path / "b", "softmax_inversion", "a", out, together=[tmp_path / "c"])
    x = load_arrays(out)["values"]
    assert np.abs(scaled(TABLES["a"])[0] - x).max(axis=1).min() < 1e-8  # it is a training row
    (tmp_path / "a").chmod(0o700)
    scored = score_estimate(out, tmp_path / "a/config.toml")
    assert scored["attack"] == facts["attack"] == "softmax_inversion:with-c"
    assert scored["matched_mse"] < 1e-16
    stated = {m.adversary for m in read_party(tmp_path / "a").metrics if m.attack == scored["attack"]}
    assert stated == {"b+c"}


def test_what_one_client_drops_its_coalition_lacks(tmp_path: Path) -> None:
    run(tmp_path, TABLES, transcript={"every": 3})
    with pytest.raises(KnowledgeError, match=r"transcript\.every = 3 at 'b' drops parameters"):
        view_without_server(tmp_path, "a", "b", "c")


def test_a_server_among_them_comes_first(tmp_path: Path) -> None:
    run(tmp_path, TABLES)
    with pytest.raises(ConfigError, match="give the folder of 'server' first"):
        view_without_server(tmp_path, "a", "b", "server")


@pytest.mark.parametrize("first", ["server", "b"])
def test_rows_of_those_who_collude_are_known_rows(tmp_path: Path, first: str) -> None:
    """No row is the target's own; what it grants goes before."""
    run(tmp_path / "none", TABLES)
    view = view_without_server(tmp_path / "none", "a", *dict.fromkeys([first, "b", "c"]))
    positions, features = view.auxiliary()
    expected = np.concatenate([scaled(TABLES[name])[0] for name in ("b", "c")])
    np.testing.assert_allclose(features, expected, atol=1e-12)
    assert positions.tolist() == list(range(30, 30 + len(expected)))
    np.testing.assert_array_equal(
        np.eye(3)[view.known_labels()[1]], np.concatenate([scaled(TABLES[n])[1] for n in ("b", "c")])
    )
    run(tmp_path / "some", TABLES, disclose=[{"what": "auxiliary", "to": "server", "rows": 4}])
    together = [first, "b", "c"] if first == "server" else ["b", "c"]
    granted = len(view_without_server(tmp_path / "some", "a", *together).auxiliary()[0])
    assert granted == (4 if first == "server" else len(expected))  # a grant is to the server alone
