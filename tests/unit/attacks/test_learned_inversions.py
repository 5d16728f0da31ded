"""Attacks that learn from granted rows, or key by key, where the answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from inversionview import recorded_view
from pydantic import ValidationError
from thinned import first
from torch import nn

from vflens.attacks.bmi import BlackBoxInversion
from vflens.attacks.helpers.networks.decoder import decoder
from vflens.attacks.helpers.networks.own_top import own_top
from vflens.attacks.inverse_network import InverseNetwork
from vflens.attacks.moments_only import MomentsOnly
from vflens.attacks.pcat import Pcat
from vflens.attacks.wmi import WhiteBoxInversion
from vflens.attacks.wmi_moments import MomentInversion
from vflens.config import Plugin, build_plugins
from vflens.defenses.passport import Passport
from vflens.errors import ConfigError, KnowledgeError
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.architectures import bottom
from vflens.models.networks.layers import AsImage
from vflens.models.networks.parameters import to_arrays
from vflens.models.networks.passport import PassportLayer, passport_place, with_passport
from vflens.models.networks.training import Top
from vflens.models.part import Keys
from vflens.models.settings import Training
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.registry import ATTACKS
from vflens.types import Array, ColumnInfo, Exchange, Knowledge, PartyInfo, Phase, Point, Role

D, BATCH, EPOCHS, TRAINED = 6, 100, 2, 300
COLUMNS = tuple(ColumnInfo(f"c{i}", 0.0, 1.0) for i in range(D))
LINEAR = SplitNetwork(architecture="mlp", width=12, precision="float64")
TRAIN = np.arange(TRAINED, dtype=np.int32)
PREDICT = np.arange(TRAINED, 2 * TRAINED, dtype=np.int32)
GRANTED = TRAIN[:60]


#: The passport as its authors' code has it.
AUTHORS: dict[str, Any] = {"normalise": "authors", "order": "pool_first"}


class Keyed:
    """Skewed rows behind a linear bottom whose every exchange has a γ and a β of its own: drawn, or those of
    an ``authors``' layer.
    """

    def __init__(self, *, passport: bool = True, **authors: Any) -> None:
        rng = np.random.default_rng(7)
        self.x = rng.random((2 * TRAINED, D)) ** 3
        torch.manual_seed(3)
        model: Any = bottom(LINEAR, COLUMNS)
        self.parameters = to_arrays(dict(model.named_parameters()))
        weight = self.parameters["0.weight"]
        means: dict[str, Any] = {"largest_mean": 3.0, "sigma": 0.5, "redraw_means": False}
        layer = PassportLayer(model[0], **means, **AUTHORS, **authors, rng=np.random.default_rng(8))

        def sent(rows: Array) -> tuple[Array, Array]:
            if authors:
                layer.rekey(rng)
                return rows, layer(torch.tensor(self.x[rows])).detach().numpy()
            scale, shift = (rng.normal(0, 2, 12), rng.normal(0, 2, 12)) if passport else (1.0, 0.0)
            return rows, self.x[rows] @ weight.T * scale + shift

        orders = [rng.permutation(TRAIN) for _ in range(EPOCHS)]
        self.trained = [sent(o[i : i + BATCH]) for o in orders for i in range(0, TRAINED, BATCH)]
        self.predicted = [sent(PREDICT)]

    def error(self, attack: Attack, rows: Array) -> float:
        disclosed: Any = {
            Point.PARAMETERS: (TRAIN[:0], self.parameters),
            Point.AUXILIARY: (GRANTED, {"features": self.x[GRANTED]}),
        }
        view = recorded_view(
            LINEAR,
            COLUMNS,
            rows,
            trained=self.trained,
            epochs=EPOCHS,
            predicted=self.predicted,
            disclosed=disclosed,
        )
        found = attack.reconstruct(view, rng=np.random.default_rng(1)).values
        return float(((found - self.x[rows]) ** 2).mean())

    @property
    def blind(self) -> float:
        return float(self.x.var(axis=0).mean())


ADAM: dict[str, Any] = {"learner": "adam", "learning_batch": 20, "learning_steps": 200, "learning_rate": 0.02}


@pytest.mark.parametrize("settings", [{}, ADAM], ids=["lbfgs", "adam"])
def test_both_learners_find_a_linear_bottom(settings: dict[str, Any]) -> None:
    world = Keyed(passport=False)
    assert world.error(BlackBoxInversion(**settings), PREDICT) < 1e-4


def test_an_inverse_network_learns_from_one_row_at_least() -> None:
    world = Keyed(passport=False)
    assert world.error(InverseNetwork(held_out=0.9999), PREDICT) < 1


@pytest.mark.parametrize("authors", first([{}, {"keys": "redrawn"}]), ids=["drawn", "authors"])
@pytest.mark.parametrize("kind", [BlackBoxInversion, InverseNetwork])
def test_embeddings_without_scale_and_shift_of_their_exchange_are_one_model(
    kind: Any, authors: dict[str, Any]
) -> None:
    """Under a new key for each batch the embeddings as they are fit no one model."""
    world = Keyed(**authors)
    assert world.error(kind(passport="moments"), PREDICT) < 0.1 * world.blind
    assert world.error(kind(), PREDICT) > (0.8 if not authors else 0.15) * world.blind


@pytest.mark.parametrize("attack", [BlackBoxInversion(), InverseNetwork(learning_steps=0)])
def test_fixed_keys_are_one_model_as_they_are(attack: Attack) -> None:
    """The linear map alone inverts the authors' linear layer, tanh and all: scale and shift are constants."""
    assert Keyed(keys="fixed").error(attack, PREDICT) < 1e-3


@pytest.mark.parametrize("keys", ["redrawn", "fixed"])
def test_moments_alone_undo_the_authors_layer(keys: str) -> None:
    world = Keyed(keys=keys)
    assert world.error(MomentsOnly(), PREDICT) < 0.05 * world.blind


@pytest.mark.parametrize("authors", [{}, {"keys": "redrawn"}], ids=["drawn", "authors"])
def test_training_rows_fall_exchange_by_exchange_and_epochs_average(authors: dict[str, Any]) -> None:
    """Each key is estimated from a batch; what two epochs give of a row errs less than what one gives."""
    world, rows = Keyed(**authors), np.setdiff1d(TRAIN, GRANTED)
    one, two = (world.error(MomentsOnly(training_epochs=n), rows) for n in (1, 2))
    assert two < one < 0.2 * world.blind
    fitted = MomentInversion(training_epochs=1, smoothness=0.0, starts=1, steps=40, learning_steps=15)
    assert world.error(fitted, rows) < 0.3 * world.blind


def test_a_row_that_the_last_epochs_lack_is_not_estimated_as_0() -> None:
    """Training was interrupted in its second epoch."""
    world = Keyed()
    world.trained = world.trained[:-1]
    lacking = np.setdiff1d(TRAIN, np.concatenate([rows for rows, _ in world.trained[3:]]))
    assert len(lacking) == BATCH
    with pytest.raises(KnowledgeError, match=rf"^{BATCH} rows \(first: {lacking[0]}\) stand in none of the"):
        world.error(MomentsOnly(training_epochs=1), TRAIN)
    assert world.error(MomentsOnly(training_epochs=2), TRAIN) < 0.2 * world.blind


@pytest.mark.parametrize(
    "attack",
    [MomentInversion(learning_steps=30, steps=100), BlackBoxInversion(passport="moments", steps=100)],
    ids=lambda a: type(a).__name__,
)
def test_a_few_rows_are_estimated_with_what_all_predictions_show_of_the_key(attack: Attack) -> None:
    world = Keyed()
    assert world.error(attack, PREDICT[:3]) < 0.2 * world.blind


@pytest.mark.parametrize(
    ("plugin", "more"),
    [(MomentInversion, {}), (WhiteBoxInversion, {"passport": "joint"}), (Passport, {})],
)
def test_a_layer_s_name_may_be_written_as_a_number(plugin: Any, more: dict[str, Any]) -> None:
    """So that `--set layer=4` names the layer that messages call '4'."""
    assert plugin.model_validate({"layer": 4, **more}).layer == "4"


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"layer": "4"},
            r"layer = '4': passport = 'none' does not read it, leave it out, or set passport = '",
        ),
        ({"sigma": 2}, r"sigma = 2\.0: passport = 'none' does not read it, .* passport = 'random'$"),
        ({"passport": "joint", "largest_mean": 3}, r"largest_mean = 3\.0: passport = 'joint' does not read"),
    ],
)
def test_a_setting_of_a_passport_that_is_not_guessed_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        build_plugins(ATTACKS, [Plugin.model_validate({"name": "wmi", **settings})])
    build_plugins(ATTACKS, [Plugin.model_validate({"name": "wmi", **settings, "passport": "random"})])


def test_rows_of_training_are_estimated_only_if_their_epochs_are_named() -> None:
    assert MomentInversion().declared().rows == {Phase.PREDICT}
    assert Phase.TRAIN not in MomentInversion().declared().phases
    declared = MomentInversion(training_epochs=1).declared()
    assert declared.rows == {Phase.PREDICT, Phase.TRAIN}
    assert Phase.TRAIN in declared.phases


# -- through the own top model ---------------------------------------------------------------------------


def _image_columns(height: int, width: int) -> tuple[ColumnInfo, ...]:
    return tuple(ColumnInfo(f"p{i}", 0.0, 1.0, pixel=divmod(i, width)) for i in range(height * width))


@pytest.mark.parametrize("combine", ["sum", "concatenate"])
@pytest.mark.parametrize("own", [0, 4])
def test_the_own_top_gives_what_it_gave_in_predictions(combine: Any, own: int) -> None:
    """Its passport's key included, and the own embeddings beside those received."""
    network = SplitNetwork(architecture="mlp", width=5, top=(7,), combine=combine, precision="float64")
    columns, rng = COLUMNS[:own], np.random.default_rng(3)

    def passports(module: torch.nn.Module) -> torch.nn.Module:
        place = passport_place(module, at_top=True)
        assert place is not None
        settings: Any = {"largest_mean": 3.0, "sigma": 1.0, "redraw_means": False, "order": "paper"}
        layer: Any = module.get_submodule(place)
        return with_passport(module, place, PassportLayer(layer, **settings, rng=rng))

    top = Top(
        network, columns, width=5, classes=3, training=Training(), keys=Keys.under(b"s"), wrap=passports
    )
    exchange = Exchange("run", Phase.PREDICT, 0, 0)
    rows, x, h = PREDICT[:9], rng.random((2 * TRAINED, own)), rng.normal(size=(9, 5))
    expected = top.log_scores(h, x[rows], exchange)
    view = recorded_view(
        network,
        COLUMNS,
        rows,
        disclosed={},
        n_classes=3,
        own={"features": x, **{f"network/{n}": a for n, a in top.predicting(exchange).items()}},
        parties=[
            PartyInfo("me", Role.ACTIVE, columns=columns),
            PartyInfo("target", Role.PASSIVE, columns=COLUMNS),
        ],
    )
    places = rng.permutation(9)
    logits = own_top(view, rows)(torch.tensor(h[places]), places)
    np.testing.assert_allclose(torch.log_softmax(logits, dim=1).numpy(), expected[places], atol=1e-12)
    assert any(np.abs(a).max() > 0 for n, a in view.own_network().items() if n.endswith("bias"))


SIDE = 7
GRID = SplitNetwork(architecture="mlp", width=2, top=(), precision="float64")


def _cells(epochs: int = 0) -> tuple[AdversaryView, Array]:
    """A top that names the cell of a 7 by 7 grid that an embedding lies in, and rows with their cells; of so
    many ``epochs`` of training the embeddings.
    """
    rng = np.random.default_rng(5)
    centers = np.stack(np.meshgrid(*[(np.arange(SIDE) + 0.5) / SIDE * 1.2] * 2), axis=-1).reshape(-1, 2)
    x = rng.random((800, 2))
    h = x @ np.array([[1.0, 0.2], [0.1, 1.0]]).T
    cells = ((h[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
    sharpness = 200
    own = {
        "labels": cells,
        "features": np.zeros((800, 0)),
        "network/top.1.weight": 2 * sharpness * centers,
        "network/top.1.bias": -sharpness * (centers**2).sum(axis=1),
        "public/target": x[:600],
        "public labels": cells[:600],
    }
    rows = np.arange(800, dtype=np.int32)
    view = recorded_view(
        GRID,
        COLUMNS[:2],
        rows[600:],
        trained=[(rows[i : i + 60], h[i : i + 60]) for _ in range(epochs) for i in range(0, 600, 60)],
        epochs=max(epochs, 1),
        predicted=[(rows[600:], h[600:])],
        disclosed={Point.AUXILIARY: (rows[:600], {"features": x[:600]})},
        n_classes=SIDE**2,
        own=own,
    )
    return view, x[600:]


def test_labels_that_say_enough_through_the_own_top_give_the_bottom_model_away() -> None:
    """No embedding of a granted row is read: each label places its row in a cell of side .17."""
    view, x = _cells()
    found = BlackBoxInversion(learn="top", steps=200).reconstruct(view, rng=np.random.default_rng(1)).values
    assert ((found - x) ** 2).mean() < 1e-3


@pytest.mark.facts
def test_so_they_do_with_other_peoples_rows() -> None:
    view, x = _cells()
    attack = Pcat(pseudo_clients=1, learner="lbfgs", learning_steps=200)
    found = attack.reconstruct(view, rng=np.random.default_rng(1)).values
    assert ((found - x) ** 2).mean() < 3e-3


@pytest.mark.facts
def test_a_pseudo_client_moves_along_with_a_top_that_learns_from_the_messages() -> None:
    """No model of the party is read: its top is learned again, from the embeddings and the own labels."""
    view, x = _cells(epochs=150)
    attack = Pcat(pseudo_clients=1, along=True, learning_rate=0.02)
    found = attack.reconstruct(view, rng=np.random.default_rng(1)).values
    assert ((found - x) ** 2).mean() < 0.02
    assert {Knowledge.OWN_LABELS} == attack.declared().needs - Pcat().declared().needs
    with pytest.raises(ValidationError, match=r"learning_steps = 9: along = true does not read it"):
        Pcat(along=True, learning_steps=9)


@pytest.mark.facts
def test_many_pseudo_clients_need_no_lucky_start() -> None:
    """A start may end in a mirror image."""
    view, x = _cells()
    alone, many = (
        ((Pcat(pseudo_clients=n).reconstruct(view, rng=np.random.default_rng(2)).values - x) ** 2).mean()
        for n in (1, 10)
    )
    blind = ((x - x.mean(axis=0)) ** 2).mean()
    assert many < 0.7 * blind < 2 * blind < alone


def test_without_a_top_of_its_own_the_attack_says_so() -> None:
    world = Keyed()
    disclosed: Any = {Point.AUXILIARY: (GRANTED, {"features": world.x[GRANTED]})}
    settings: Any = {"trained": world.trained, "predicted": world.predicted, "disclosed": disclosed}
    view = recorded_view(LINEAR, COLUMNS, PREDICT, **settings)
    with pytest.raises(KnowledgeError, match="'me' has no top model of its own"):
        BlackBoxInversion(learn="top").reconstruct(view, rng=np.random.default_rng(1))
    others = [
        PartyInfo("other", Role.PASSIVE, columns=COLUMNS),
        PartyInfo("target", Role.PASSIVE, columns=COLUMNS),
    ]
    concatenated = LINEAR.model_copy(update={"combine": "concatenate"})
    view = recorded_view(
        concatenated, COLUMNS, PREDICT, parties=[PartyInfo("me", Role.ACTIVE), *others], disclosed={}
    )
    with pytest.raises(KnowledgeError, match="takes one passive party, there are other, target"):
        own_top(view, GRANTED)


def test_standardised_embeddings_are_not_what_the_top_learns_from() -> None:
    with pytest.raises(ValidationError, match="leave one of them out"):
        BlackBoxInversion(learn="top", passport="moments")


# -- the inverse network ---------------------------------------------------------------------------------


def test_a_decoder_learns_what_a_linear_map_misses() -> None:
    """Images are discs whose place decides."""
    columns, rng, rows = _image_columns(8, 8), np.random.default_rng(4), np.arange(260, dtype=np.int32)
    across, down = np.meshgrid(np.linspace(0, 1, 8), np.linspace(0, 1, 8))
    at = rng.random((260, 2, 1, 1))
    x = ((across - at[:, 0]) ** 2 + (down - at[:, 1]) ** 2 < 0.035).astype(float).reshape(260, -1)
    network = SplitNetwork(architecture="cnn", precision="float64")
    torch.manual_seed(3)
    with torch.no_grad():
        h = bottom(network, columns)(torch.tensor(x)).numpy()
    view = recorded_view(
        network,
        columns,
        rows[200:],
        trained=[(rows[:200], h[:200])],
        predicted=[(rows[200:], h[200:])],
        disclosed={Point.AUXILIARY: (rows[:200], {"features": x[:200]})},
    )

    def error(steps: int, rate: float) -> float:
        attack = InverseNetwork(learning_steps=steps, learning_rate=rate, hidden=8)
        return float(((attack.reconstruct(view, rng=np.random.default_rng(1)).values - x[200:]) ** 2).mean())

    linear = error(1, 1e-12)
    assert linear < 0.3 * x.var(axis=0).mean()
    assert error(30, 0.003) < 0.95 * linear


@pytest.mark.parametrize(("architecture", "shape"), [("lenet", (28, 14)), ("cnn", (5, 4)), ("mlp", (5, 4))])
def test_a_decoder_gives_every_column_and_begins_with_0(architecture: Any, shape: tuple[int, int]) -> None:
    """A pixel of the image is at the place of its column."""
    columns = tuple(np.random.default_rng(2).permutation(np.array(_image_columns(*shape), dtype=object)))
    model = bottom(SplitNetwork(architecture=architecture, precision="float64"), columns)
    layers: Any = decoder(model, columns, 4)
    h = model(torch.rand((3, len(columns)), dtype=torch.float64))
    assert layers(h).shape == (3, len(columns))
    assert not layers(h).any()
    if architecture != "mlp":
        x = torch.rand((2, len(columns)), dtype=torch.float64)
        image = nn.functional.pad(AsImage(columns)(x), (0, 3, 0, 2))  # what goes beyond is cut off
        torch.testing.assert_close(layers[-1](image), x)
