"""Parties of a vertical run that put together what they know: one adversary, `vflens attack --with`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from laboratory import THREE, federation
from thinned import first

from vflens.config import PassiveConfig, load_party
from vflens.errors import ConfigError, KnowledgeError
from vflens.experiments.offline.attack import attack_recorded
from vflens.experiments.offline.score import score_estimate
from vflens.experiments.offline.vertical.colluders import own_model
from vflens.experiments.results.folders import read_party
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.registry import ATTACKS
from vflens.storage.journal import Reader
from vflens.storage.metrics import Name
from vflens.types import Array, Estimate, Knowledge, Phase, Point, statuses

TWO = {"passive": ["a", "b"]}
MLP = {"family": "split_network", "architecture": "mlp", "width": 4, "hidden": [5], "precision": "float64"}
ROWS = {"what": "auxiliary", "to": "active", "rows": 12}
WEIGHTS = {"what": "parameters", "to": "active"}


class SeenOfTest(Attack):
    """It keeps its view."""

    needs: ClassVar[frozenset[Knowledge]] = frozenset(Knowledge)
    phases: ClassVar[frozenset[Phase]] = frozenset(Phase)
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    views: ClassVar[list[AdversaryView]] = []

    def reconstruct(self, view: Any, *, rng: np.random.Generator) -> Estimate:
        self.views.append(view)
        return Estimate(
            view.target, view.rows, np.zeros((len(view.rows), self.width(view))), statuses(len(view.rows))
        )

    def width(self, view: AdversaryView) -> int:
        return view.widths()[view.target]


class SeenLabelsOfTest(SeenOfTest):
    """The same on labels."""

    estimates = "labels"

    def width(self, view: AdversaryView) -> int:
        return view.n_classes


def run(home: Path, **changes: Any) -> Any:
    settings: dict[str, Any] = {"parties": TWO, "attacks": [], "disclose": [WEIGHTS, ROWS]}
    made = federation(home, **settings | changes)
    made.run()
    return made.data_parties


def attacked(
    home: Path, attack: str, *names: str, target: str | None = None, rows: Phase | None = None
) -> Any:
    first, *others = [home / name for name in names]
    out = home / "estimate.npz"
    facts = attack_recorded(first, attack, target, out, together=others, scored=rows)
    with np.load(out) as found:
        return facts, found["values"], found["rows"]


def view_of(
    home: Path, *names: str, target: str | None = None, kind: type[SeenOfTest] = SeenOfTest
) -> AdversaryView:
    with ATTACKS.entered(kind) as name:
        attacked(home, name, *names, target=target)
    return kind.views.pop()


def sent(home: Path, to: str, of: str, point: Point = Point.EMBEDDING) -> list[Array]:
    """What the log of one party holds of another one's training."""
    found = Reader(home / to / "transcript").select(point, phases={Phase.TRAIN}, sender=of)
    return [r.tensor(point.value) for r in found]


def test_the_active_party_and_the_coordinator_have_an_equation_for_each_class_and_party(
    tmp_path: Path,
) -> None:
    """W_p x = z_p has 3 equations of 2 unknown columns: no rounding of scores, no sum hides a row."""
    defenses = [{"name": "round_scores", "at": "coordinator", "digits": 1}]
    parties = run(tmp_path, defenses=defenses)
    for target in ("a", "b"):
        x = parties[target].run.truth
        assert x[np.arange(1)].shape[1] < 3
        facts, alone, rows = attacked(tmp_path, "half_star", "active", target=target)
        assert np.abs(alone - x[rows]).max() > 0.1
        facts, found, rows = attacked(tmp_path, "half_star", "active", "coordinator", target=target)
        np.testing.assert_allclose(found, x[rows], rtol=0, atol=1e-9)
        assert facts["attack"] == "half_star:with-coordinator"


WIDE = {"name": "synthetic", "rows": 90, "features": 10, "classes": 3, "informative": 4}
LONG = {"epochs": 20, "batch_size": 20, "learning_rate": 0.1}


def test_the_target_scores_the_colluders_without_the_rows_that_any_of_them_was_granted(
    tmp_path: Path,
) -> None:
    granted = [WEIGHTS, ROWS, {"what": "auxiliary", "to": "coordinator", "rows": 30}]
    run(tmp_path, training=LONG, disclose=granted)
    attacked(tmp_path, "clear_columns", "active", "coordinator", target="a")
    scored = score_estimate(tmp_path / "estimate.npz", tmp_path / "a" / "config.toml")
    assert (scored["attack"], scored["rows"]) == ("clear_columns:with-coordinator", 72 - 30)
    assert scored["mse"] < 1e-18
    stated = {m.adversary for m in read_party(tmp_path / "a").metrics if m.attack == scored["attack"]}
    assert stated == {"active+coordinator"}


@pytest.mark.parametrize("other", ["b", "coordinator"])
def test_a_sum_hides_a_party_from_one_and_not_from_two(tmp_path: Path, other: str) -> None:
    """`clear_columns` of one of two summed parties: alone it cannot, and together it is exact."""
    parties = run(tmp_path, training=LONG)
    with pytest.raises(KnowledgeError, match="sums of the embeddings of a, b only"):
        attacked(tmp_path, "clear_columns", "active", target="a")
    _, found, rows = attacked(tmp_path, "clear_columns", "active", other, target="a")
    assert np.square(found - parties["a"].run.truth[rows]).mean() < 1e-18


@pytest.mark.parametrize(
    "model",
    [
        {},
        {"model": MLP},
        {"model": {**MLP, "combine": "concatenate"}},
        {"model": MLP, "aggregator": "active"},
    ],
    ids=["lr", "sum", "concatenate", "direct"],
)
@pytest.mark.parametrize(
    "noise", first([[{"name": "dp_gaussian", "at": "b", "clip": 1.0}], []]), ids=["noisy", "plain"]
)
def test_what_is_left_of_a_combination_is_what_the_target_sent(
    tmp_path: Path, model: Any, noise: Any
) -> None:
    """Another log, which these colluders do not have, says what that was; the noise of b goes too."""
    parties = run(tmp_path, defenses=noise, **model)
    view = view_of(tmp_path, "active", "b", target="a")
    found = [z for _, _, z in view.batches(Point.EMBEDDING, Phase.TRAIN)]
    truth = sent(tmp_path, "active" if "aggregator" in model else "coordinator", "a")
    assert len(found) == len(truth) == 12
    for one, other in zip(found, truth, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
    swapped = view_of(tmp_path, "active", "a", target="b").batches(Point.EMBEDDING, Phase.TRAIN)
    truth = sent(tmp_path, "active" if "aggregator" in model else "coordinator", "b")
    for (_, _, one), other in zip(swapped, truth, strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=1e-12)
    if model:  # softmax regression shows the active party scores alone
        predicted = parties["a"].run.federation.predict
        h = bottom_of(parties["a"], parties["a"].run.truth[predicted])
        np.testing.assert_allclose(view.embeddings(predicted), h, rtol=0, atol=1e-9)


@pytest.mark.parametrize("colluders", [("coordinator",), ("coordinator", "b"), ("b",)])
def test_nobody_observes_what_a_colluder_sent(tmp_path: Path, colluders: tuple[str, ...]) -> None:
    run(tmp_path, parties=THREE, model=MLP)
    view = view_of(tmp_path, "active", *colluders, target="a")
    senders = {r.sender for r in view.received(Point.EMBEDDING)}
    assert senders == ({"a", "b", "c"} - {*colluders} if "coordinator" in colluders else {"coordinator"})
    assert not list(view.received(Point.GRADIENT))


def bottom_of(party: Any, x: Array) -> Array:
    """The party's own embeddings of ``x``, by its trained module."""
    with torch.no_grad():
        found: Array = party.adversary.own_model()(torch.tensor(x)).numpy()
    return found


def test_scores_of_two_have_the_unknown_columns_of_the_third_alone(tmp_path: Path) -> None:
    """The nearest solution to one half, by hand: b's columns and the bias, which b holds, are known."""
    parties = run(tmp_path, parties={"passive": ["a_late", "a"]})
    facts, found, rows = attacked(tmp_path, "half_star", "active", "a", target="a_late")
    x = parties["a_late"].run.truth[rows]
    W = parties["a_late"].parameters()["weight"]
    D = np.diff(W, axis=0)
    np.testing.assert_allclose(found, 0.5 + (x - 0.5) @ D.T @ np.linalg.pinv(D.T), atol=1e-9)
    assert "bias" in parties["a"].parameters()
    assert facts["attack"] == "half_star:with-a"


@pytest.mark.parametrize("model", [MLP, {**MLP, "combine": "concatenate"}], ids=["sum", "concatenate"])
def test_passive_parties_put_the_gradients_of_their_embeddings_side_by_side(
    tmp_path: Path, model: Any
) -> None:
    """The coordinator's log has the gradient of all three; its first columns are those of a and b."""
    run(tmp_path, parties=THREE, model=model, disclose=[])
    view = view_of(tmp_path, "b", "a", kind=SeenLabelsOfTest)
    found = [g / len(g) for _, _, g in view.batches(Point.GRADIENT, Phase.TRAIN)]
    truth = sent(tmp_path, "coordinator", "active", Point.GRADIENT)
    assert len(found) == len(truth) == 12
    for one, other in zip(found, truth, strict=True):
        np.testing.assert_allclose(one, other[:, : 8 if "combine" in model else 4], rtol=0, atol=1e-15)
    everything = view_of(tmp_path, "b", "coordinator", kind=SeenLabelsOfTest)
    for (_, _, one), other in zip(everything.batches(Point.GRADIENT, Phase.TRAIN), truth, strict=True):
        np.testing.assert_allclose(one / len(one), other, rtol=0, atol=1e-15)


def test_their_columns_and_bottom_models_stand_side_by_side(tmp_path: Path) -> None:
    parties = run(tmp_path, parties=THREE, model=MLP, disclose=[])
    view = view_of(tmp_path, "b", "a", kind=SeenLabelsOfTest)
    x = np.concatenate([parties[n].run.truth[view.rows] for n in "ab"], axis=1)
    np.testing.assert_array_equal(view.own("features"), x)
    assert [c.name for c in view.own_columns()] == [c.name for n in "ab" for c in parties[n].table.columns]
    h = np.concatenate([bottom_of(parties[n], parties[n].run.truth[view.rows]) for n in "ab"], axis=1)
    np.testing.assert_allclose(view.own("embeddings"), h, rtol=0, atol=1e-12)
    model = view.own_model()
    with torch.no_grad():
        np.testing.assert_allclose(model(torch.tensor(x)).numpy(), h, rtol=0, atol=1e-12)


def test_a_folder_gives_the_bottom_model_again(tmp_path: Path) -> None:
    parties = run(tmp_path, model=MLP, disclose=[])
    config = load_party(tmp_path / "a" / "config.toml")
    assert isinstance(config, PassiveConfig)
    x, model = parties["a"].run.truth[:9], own_model(config, tmp_path / "a")
    with torch.no_grad():
        np.testing.assert_array_equal(model(torch.tensor(x)).numpy(), bottom_of(parties["a"], x))


def test_one_draw_of_noise_stays_one_draw(tmp_path: Path) -> None:
    """The receiver is in no key: two copies of a noisy gradient are equal, and no mean lessens the noise."""
    noise = [{"name": "dp_gaussian", "at": "active", "clip": 1.0}]
    run(tmp_path, parties=THREE, defenses=noise, disclose=[])
    _, alone, _ = attacked(tmp_path, "gradient_sign", "a")
    _, together, _ = attacked(tmp_path, "gradient_sign", "a", "b", "c")
    np.testing.assert_array_equal(together, alone)
    assert len(np.unique(alone)) > 1


def test_no_theorem_on_one_party_s_equations_is_of_several(tmp_path: Path) -> None:
    """With the coordinator there is an equation more, and half* errs by less than Theorem 2 says."""
    run(tmp_path, parties={"passive": ["a"]}, data=WIDE)
    for others in ((), ("coordinator",)):
        attacked(tmp_path, "half_star", "active", *others, target="a")
        score_estimate(tmp_path / "estimate.npz", tmp_path / "a" / "config.toml")
    figures = read_party(tmp_path / "a").metrics
    assert {m.adversary for m in figures if m.name is Name.MSE} == {"active", "active+coordinator"}
    assert {m.adversary for m in figures if m.name.startswith("theory_")} == {"active"}


def test_the_most_that_any_of_them_was_granted_counts(tmp_path: Path) -> None:
    grants = [{"what": "labels", "to": name, "rows": rows} for name, rows in (("a", 9), ("b", 21), ("c", 3))]
    run(tmp_path, parties=THREE, model=MLP, disclose=grants)
    for names in (("a", "b", "c"), ("b", "a")):
        view = view_of(tmp_path, *names, kind=SeenLabelsOfTest)
        rows, labels = view.known_labels()
        assert len(rows) == len(labels) == 21
        assert len(view.rows) == 72 - 21


@pytest.mark.parametrize(
    ("attack", "names", "text"),
    [
        ("half_star", ("coordinator", "active"), "columns are attacked from the folder of 'active'"),
        ("half_star", ("active", "a", "b"), "active and a and b hold all the data: nobody is left"),
        ("gradient_sign", ("a", "active"), "labels are no secret from 'active'"),
        ("half_star", ("active", "active"), "--with names the folder of 'active' twice"),
        (
            "half_star",
            ("active", "other/b"),
            "it is of run 'tiny/run', and 'tiny/run' or another start of it",
        ),
    ],
)
def test_what_is_no_adversary_is_refused(home: Path, attack: str, names: Any, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        attacked(home, attack, *names, target=None)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("runs")
    run(made)
    run(made / "other", seed=4)
    return made


def test_a_step_that_a_transcript_leaves_out_cannot_be_taken_out(tmp_path: Path) -> None:
    run(tmp_path, transcript={"every": 3})
    with pytest.raises(KnowledgeError, match="run it with every = 1"):
        attacked(tmp_path, "clear_columns", "active", "b", target="a")
