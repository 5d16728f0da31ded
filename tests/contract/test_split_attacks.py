"""What every attack on a split network or on labels promises; a new one is held to it at once.

Two worlds where the answer is known: a linear bottom model of full rank, seen by the active party; and two
classes, seen by a passive party through the gradient of its embeddings.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch

from vflens.attacks.helpers.networks.inversion import Inversion
from vflens.errors import KnowledgeError
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.architectures import bottom, top
from vflens.models.networks.parameters import to_arrays
from vflens.plugins.attack import Attack
from vflens.plugins.malicious import breaks_protocol
from vflens.plugins.views.vertical import AdversaryView
from vflens.registry import ATTACKS
from vflens.score.labels import named
from vflens.storage.journal import Messages
from vflens.types import (
    Array,
    ColumnInfo,
    Exchange,
    Knowledge,
    PartyInfo,
    Phase,
    Point,
    Released,
    Role,
    RowStatus,
    Setting,
)

KINDS: Mapping[str, type[Attack]] = {n: ATTACKS.get(n) for n in ATTACKS.names()}
READING = {n: kind for n, kind in KINDS.items() if not breaks_protocol(kind)}
CLASSES = {n: kind for n, kind in READING.items() if Setting.VERTICAL in kind.settings}
LABELS = [
    n
    for n, c in CLASSES.items()
    if (c.estimates, c.label_kind) == ("labels", "classes") and Knowledge.OPENINGS not in c.needs
]
FEATURES = [n for n, c in CLASSES.items() if c.estimates == "features" and Knowledge.ARCHITECTURE in c.needs]
NAMES = FEATURES + LABELS
DESCENTS = [n for n in FEATURES if issubclass(CLASSES[n], Inversion)]

N, TRAIN = 12, 60  # rows to attack; training rows come first
COLUMNS = tuple(ColumnInfo(f"p{i}", 0.0, 1.0, pixel=(i // 2, i % 2)) for i in range(6))
NOTHING = np.zeros(0, np.int32)
TOP = SplitNetwork(architecture="mlp", width=2)


class World:
    """What the adversary's party received and owns."""

    def __init__(self, name: str, hidden: tuple[int, ...] = ()) -> None:
        self.labels_wanted = name in LABELS
        self.network = SplitNetwork(
            architecture="mlp",
            width=2 if self.labels_wanted else 8,
            hidden=hidden,
            trainable_top=not self.labels_wanted,
        )
        rng = np.random.default_rng(7)
        self.x = rng.random((TRAIN + N, 6))
        torch.manual_seed(3)
        model = bottom(self.network, COLUMNS)
        with torch.no_grad():
            self.h = model(torch.tensor(self.x, dtype=torch.float32)).numpy()
        self.parameters = to_arrays(dict(model.named_parameters()))
        self.y = (self.h[:, 1] > np.median(self.h[:, 1])).astype(np.int64)
        self.trained = TRAIN + N if Phase.TRAIN in CLASSES[name].estimated_rows else TRAIN
        self.transcript = self._gradients() if self.labels_wanted else self._embeddings()
        own = {"features": self.x, "embeddings": self.h}
        self.own: Mapping[str, Array] = own if self.labels_wanted else {}
        if Knowledge.PUBLIC in CLASSES[name].needs:
            self.own = self._public() | self._own_network()

    def _public(self) -> dict[str, Array]:
        rng = np.random.default_rng(11)
        return {
            "public/target": rng.random((30, 6)),
            "public/me": rng.random((30, 6)),
            "public labels": rng.integers(2, size=30),
        }

    def _own_network(self) -> dict[str, Array]:
        """Bottom and top model of the adversary's party, as they give predictions."""
        parts = {"bottom": bottom(self.network, COLUMNS), "top": top(self.network, 8, 2, [COLUMNS, COLUMNS])}
        return {
            f"network/{part}.{name}": value
            for part, model in parts.items()
            for name, value in to_arrays(dict(model.named_parameters())).items()
        }

    def _embeddings(self) -> list[Released]:
        rows = np.arange(TRAIN + N, dtype=np.int32)
        stale = self.h[:30] + 1  # of an earlier epoch: overtaken by what came later
        last = rows[: self.trained]
        granted = {"features": self.x[:40]}
        return [
            _released("coordinator", Phase.TRAIN, Point.EMBEDDING, rows[:30], embedding=stale),
            _released("coordinator", Phase.TRAIN, Point.EMBEDDING, last, embedding=self.h[last]),
            _released("target", Phase.DISCLOSE, Point.PARAMETERS, NOTHING, **self.parameters),
            _released("target", Phase.DISCLOSE, Point.AUXILIARY, rows[:40], **granted),
            _released("coordinator", Phase.PREDICT, Point.EMBEDDING, rows[TRAIN:], embedding=self.h[TRAIN:]),
        ]

    def _gradients(self) -> list[Released]:
        """Those of logits, in two batches of different length; class 1 is known less well."""
        c = np.where(self.y == 1, 0.3, 0.1) + 0.01 * np.random.default_rng(1).random(TRAIN + N)
        c = np.where(self.y == 1, c, 1 - c)  # the probability of class 0 is high for both
        g = np.stack([c, 1 - c], axis=1) - np.eye(2)[self.y]
        rows = np.arange(TRAIN + N, dtype=np.int32)
        batches = (rows[:50], rows[50:])
        known = {"labels": self.y[:20]}
        return [
            _released("target", Phase.TRAIN, Point.GRADIENT, b, gradient=(g[b] / len(b)).astype(np.float32))
            for b in batches
        ] + [_released("target", Phase.DISCLOSE, Point.AUXILIARY, rows[:20], **known)]

    def view(
        self,
        rows: Array | None = None,
        needs: frozenset[Knowledge] = frozenset(Knowledge),
        kind: type[AdversaryView] = AdversaryView,
        **changes: Any,
    ) -> AdversaryView:
        me = PartyInfo(
            "me", Role.PASSIVE if self.labels_wanted else Role.ACTIVE, columns=COLUMNS, n_classes=2
        )
        target = PartyInfo(
            "target", Role.ACTIVE if self.labels_wanted else Role.PASSIVE, columns=COLUMNS, n_classes=2
        )
        settings: dict[str, Any] = {
            "party": "me",
            "target": "target",
            "rows": np.arange(TRAIN, TRAIN + N, dtype=np.int32) if rows is None else rows,
            "n_classes": 2,
            "transcript": self.transcript,
            "own": self.own,
            "parties": [me, target],
            "needs": needs,
            "phases": frozenset(Phase),
            "model": self.network,
            # of labels the gradients of all rows arrived, as of training rows
            "training": np.arange(TRAIN + N if self.labels_wanted else TRAIN, dtype=np.int32),
        }
        settings |= changes
        settings["transcript"] = Messages(settings["transcript"])
        return kind(**settings)


def _released(sender: str, phase: Phase, point: Point, rows: Array, **tensors: Array) -> Released:
    return Released(sender, Exchange("run", phase, 0, 0), point, rows, tensors=tensors)


def _run(name: str, view: AdversaryView, **settings: Any) -> Any:
    return CLASSES[name](**settings).reconstruct(view, rng=np.random.default_rng(3))


def _begun(name: str, view: AdversaryView) -> Any:
    """What it estimates after a few steps: of what it reads, and in which shapes, they decide nothing."""
    most = {"rounds": 5, "steps": 20, "learning_steps": 20, "draws": 40}
    fields = {n: f.default for n, f in CLASSES[name].model_fields.items() if n in most}
    return _run(name, view, **{n: min(usual, most[n]) for n, usual in fields.items()})


@cache
def _usual(name: str) -> Any:
    """What it has estimated of the usual world so far, which several tests look at."""
    return _begun(name, World(name).view())


def test_there_are_some() -> None:
    assert len(FEATURES) >= 2
    assert len(LABELS) >= 4


@pytest.mark.parametrize("name", NAMES)
def test_shapes_dtypes_and_finite_values(name: str) -> None:
    world, estimate = World(name), _usual(name)
    width = 2 if name in LABELS else 6
    assert estimate.target == "target"
    assert estimate.values.shape == (N, width)
    assert estimate.values.dtype == np.float64
    if getattr(CLASSES[name](), "box", True):  # FedAdOb's own inversion has none
        assert (estimate.values >= 0).all()
        assert (estimate.values <= 1).all()
    if name in LABELS:
        np.testing.assert_allclose(estimate.values.sum(axis=1), 1)
    assert set(estimate.status) <= {str(s) for s in RowStatus}
    assert all(len(extra) == N for extra in estimate.extras.values())
    assert _begun(name, world.view(NOTHING)).values.shape == (0, width)


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_answer_and_the_view_is_left_unchanged(name: str) -> None:
    world = World(name)
    before = [t.tobytes() for r in world.transcript for t in (r.rows, *(r.tensors or {}).values())]
    first = _usual(name)
    torch.manual_seed(99)  # what another party left behind does not matter
    assert first.values.tobytes() == _begun(name, world.view()).values.tobytes()
    assert before == [t.tobytes() for r in world.transcript for t in (r.rows, *(r.tensors or {}).values())]


class SpyingView(AdversaryView):
    """Grants everything and remembers what was asked for."""

    def _check(self, knowledge: Knowledge) -> None:
        vars(self).setdefault("read", set()).add(knowledge)


@pytest.mark.parametrize("name", NAMES)
def test_reads_nothing_that_it_does_not_declare(name: str) -> None:
    world = World(name)
    read = set()
    # Some read other data of training rows than of prediction rows.
    lengths = [{Phase.PREDICT: TRAIN, Phase.TRAIN: TRAIN + N}[p] for p in CLASSES[name].estimated_rows]
    for training in lengths:
        spy = world.view(needs=frozenset(), kind=SpyingView, training=np.arange(training, dtype=np.int32))
        _begun(name, spy)
        read |= vars(spy)["read"]
    assert read == CLASSES[name].needs
    for knowledge in read:
        needs = CLASSES[name].needs - {knowledge}
        views = [world.view(needs=needs, training=np.arange(n, dtype=np.int32)) for n in lengths]
        with pytest.raises(KnowledgeError, match=f"read '{knowledge}' without declaring it"):
            [_begun(name, view) for view in views]


@pytest.mark.parametrize("name", [n for n in NAMES if CLASSES[n].rowwise])
def test_rows_are_estimated_one_by_one(name: str) -> None:
    world, whole = World(name), _usual(name).values
    order = np.random.default_rng(0).permutation(N).astype(np.int32)
    shuffled = _begun(name, world.view(order + np.int32(TRAIN))).values
    np.testing.assert_allclose(shuffled, whole[order], rtol=0, atol=1e-6)  # sums in another order


@pytest.mark.parametrize("name", [n for n in FEATURES if CLASSES[n].exact])
def test_a_linear_bottom_of_full_rank_is_inverted(name: str) -> None:
    """To what float32 embeddings and a few hundred steps of Adam leave."""
    world = World(name)
    settings = {"smoothness": 0.0, "steps": 1500}
    known = {s: value for s, value in settings.items() if s in CLASSES[name].model_fields}
    estimate = _run(name, world.view(), **known)
    assert np.abs(estimate.values - world.x[TRAIN:]).max() < 5e-3
    if name in DESCENTS:
        assert estimate.extras["residual"].max() < 5e-3


@pytest.mark.skipif(not torch.cuda.is_available(), reason="torch finds no GPU on this machine")
@pytest.mark.parametrize("name", FEATURES)
def test_a_gpu_finds_what_the_processor_finds(name: str) -> None:
    """Not to the bit: sums are in another order, and Adam carries that on."""
    world = World(name)
    near = _run(name, world.view(device="cuda")).values
    np.testing.assert_allclose(near, _run(name, world.view()).values, rtol=0, atol=1e-3)


@pytest.mark.parametrize("name", DESCENTS)
def test_total_variation_smooths_images(name: str) -> None:
    quick = {"steps": 100, "learning_steps": 30, "draws": 40}
    settings = {s: value for s, value in quick.items() if s in CLASSES[name].model_fields}

    def roughness(smoothness: float) -> float:
        view = World(name, hidden=(8,)).view()
        images = _run(name, view, smoothness=smoothness, **settings).values.reshape(-1, 3, 2)
        return float(np.abs(np.diff(images, axis=1)).sum() + np.abs(np.diff(images, axis=2)).sum())

    assert roughness(1.0) < 0.9 * roughness(0.0)


@pytest.mark.parametrize("name", LABELS)
def test_labels_are_read_where_the_gradient_or_the_embedding_shows_them(name: str) -> None:
    world = World(name)
    beliefs, truth = _run(name, world.view()).values, world.y[TRAIN:]
    if CLASSES[name].up_to_renaming:
        beliefs = named(beliefs, truth)
    assert 0 < truth.sum() < N
    assert beliefs[truth == 1, 1].min() > beliefs[truth == 0, 1].max()  # leak AUC 1


def test_rounding_of_gradients_ranks_nobody() -> None:
    """Gradients of two logits have one direction per class: two beliefs, whatever float32 makes of the last
    digits.
    """
    beliefs = _run("direction_scoring", World("direction_scoring").view()).values
    assert len(np.unique(beliefs[:, 1])) == 2


def test_gradient_sign_and_the_completed_model_name_the_class() -> None:
    for name in ("gradient_sign", "pmc"):
        world = World(name)
        np.testing.assert_array_equal(_run(name, world.view()).values.argmax(axis=1), world.y[TRAIN:])


def test_a_unit_that_granted_rows_leave_silent_does_not_drown_the_others() -> None:
    """One of two numbers says the label; the other is 0 in every granted row, and noise in the rest."""
    world, rng = World("pmc"), np.random.default_rng(5)
    h = np.zeros_like(world.h)
    h[:, 0] = 0.2 + 0.6 * world.y + 0.05 * rng.random(len(h))
    h[20:, 1] = rng.random(len(h) - 20)
    own = {"embeddings": h}
    beliefs = _run("pmc", world.view(np.arange(20, TRAIN + N, dtype=np.int32), own=own)).values
    np.testing.assert_array_equal(beliefs.argmax(axis=1), world.y[20:])


@pytest.mark.parametrize(
    ("name", "changes", "message"),
    [
        ("wmi", {"model": SOFTMAX_REGRESSION}, "the federation trains softmax regression"),
        ("wmi", {"transcript": ()}, "never disclosed its parameters to 'me'"),
        ("bmi", {"transcript": ()}, "never disclosed its auxiliary to 'me'"),
        ("gradient_sign", {"transcript": ()}, "gradients of 12 rows .first: 60. never reached 'me'"),
        ("gradient_sign", {"n_classes": 3}, "gradients of width 2 are not those of 3 logits"),
        (
            "gradient_sign",
            {"model": TOP},
            "gradients of width 2 behind a top model are not those of 2 logits",
        ),
        ("norm_scoring", {"n_classes": 3}, "tells two classes apart, the federation has 3"),
        ("direction_scoring", {"transcript": ()}, "'target' granted no labels to 'me'"),
        ("pmc", {"transcript": ()}, "'target' granted no labels to 'me'"),
        ("similarity", {"transcript": ()}, "'target' granted no labels to 'me'"),
        ("gradient_clustering", {"transcript": ()}, "gradients of 12 rows .first: 60. never reached 'me'"),
        ("exploit", {"transcript": ()}, "gradients of 12 rows .first: 60. never reached 'me'"),
    ],
)
def test_what_is_missing_is_named(name: str, changes: Any, message: str) -> None:
    with pytest.raises(KnowledgeError, match=message):
        _run(name, World(name).view(**changes))


def test_embeddings_of_several_parties_are_told_apart_only_where_they_are_not_summed() -> None:
    world = World("wmi")
    other = PartyInfo("another", Role.PASSIVE, columns=COLUMNS)
    parties = [other, PartyInfo("me", Role.ACTIVE), PartyInfo("target", Role.PASSIVE, columns=COLUMNS)]
    with pytest.raises(KnowledgeError, match="saw sums of the embeddings of another, target only"):
        world.view(parties=parties).embeddings()
    both = np.concatenate([world.h[TRAIN:] + 9, world.h[TRAIN:]], axis=1)
    rows = np.arange(TRAIN, TRAIN + N, dtype=np.int32)
    transcript = [_released("coordinator", Phase.PREDICT, Point.EMBEDDING, rows, embedding=both)]
    concatenating = world.network.model_copy(update={"combine": "concatenate"})
    view = world.view(parties=parties, transcript=transcript, model=concatenating)
    np.testing.assert_array_equal(view.embeddings(), world.h[TRAIN:])


def test_messages_are_read_exchange_by_exchange() -> None:
    """A row that came in two exchanges has a value of each, beside the key of the exchange."""
    world = World("wmi")
    rows = np.arange(3, dtype=np.int32)
    both = [
        Released(
            "coordinator", Exchange("run", Phase.TRAIN, 0, step), point, rows[:n], tensors={str(point): h[:n]}
        )
        for point, h in ((Point.EMBEDDING, world.h), (Point.GRADIENT, world.h[:, :2]))
        for step, n in ((0, 3), (1, 2))
    ]
    view = world.view(transcript=both)
    for point, width, lengths in ((Point.EMBEDDING, 8, (1, 1)), (Point.GRADIENT, 2, (3, 2))):
        found = list(view.batches(point, Phase.TRAIN))
        assert [(e.step, r.tolist()) for e, r, _ in found] == [(0, [0, 1, 2]), (1, [0, 1])]
        for (_, arrived, values), length in zip(found, lengths, strict=True):
            np.testing.assert_array_equal(values, length * world.h[arrived, :width])
        assert not list(view.batches(point, Phase.PREDICT))
