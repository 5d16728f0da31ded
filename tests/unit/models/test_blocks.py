"""Networks from blocks: widths, sizes and halves at every cut, against torch's own modules."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from thinned import first
from torch import Tensor, nn

from vflens.defenses.passport import Passport
from vflens.errors import ConfigError
from vflens.models.blocks import blocks
from vflens.models.families.split_network import SplitNetwork, bottom_size, top_size
from vflens.models.networks import training
from vflens.models.networks.architectures import bottom, top
from vflens.models.networks.layers import BatchNormModule
from vflens.models.networks.passport import PassportLayer, passport_place
from vflens.models.networks.training import Bottom, Top
from vflens.models.part import Keys, Wrap, plain
from vflens.models.pixels import image_grid
from vflens.models.settings import Training
from vflens.models.size import Size
from vflens.plugins.defense import Context
from vflens.types import ColumnInfo, Exchange, Owner, Phase, Role

ROWS: tuple[dict[str, Any], ...] = (
    {"architecture": "mlp", "width": 9, "hidden": (7, 30), "dropout": 0.5, "top": (8, 4)},
    {"architecture": "dcn", "width": 9, "hidden": (7, 5), "top": (6,)},
)
IMAGES: tuple[dict[str, Any], ...] = (
    {"architecture": "cnn"},
    {"architecture": "lenet", "top": (120, 84)},
    {"architecture": "lenet", "batch_norm": True},
    {"architecture": "alexnet", "batch_norm": True},
    {"architecture": "resnet18"},
)


def _columns(shape: tuple[int, ...]) -> tuple[ColumnInfo, ...]:
    """Columns of (numbers,), or of an image (channels, height, width)."""
    if len(shape) == 1:
        return tuple(ColumnInfo(f"c{i}") for i in range(shape[0]))
    places: Any = ((r, c, k) if shape[0] > 1 else (r, c) for k, r, c in np.ndindex(shape))
    return tuple(ColumnInfo(f"p{i}", pixel=place) for i, place in enumerate(places))


def _cuts(settings: dict[str, Any]) -> Iterator[SplitNetwork]:
    for cut in range(1, len(blocks(SplitNetwork(**settings))) + 1):
        yield SplitNetwork(**settings, cut=cut)


CASES = [
    *(pytest.param(n, (10,), id=f"{n.architecture}-{n.cut}") for s in ROWS for n in _cuts(s)),
    *(
        pytest.param(n, shape, id=f"{n.architecture}-{n.batch_norm}-{n.cut}-{shape[0]}")
        for shape in ((1, 28, 14), (3, 32, 32))
        for s in IMAGES
        for n in _cuts(s)
    ),
]


#: Every third of them; the others are slow facts.
SOME = [c if n % 3 == 0 else c._replace(marks=[pytest.mark.facts]) for n, c in enumerate(CASES)]


def _on_meta(network: SplitNetwork, shape: tuple[int, ...], classes: int) -> tuple[nn.Module, nn.Module]:
    """Both halves without numbers, for two parties whose embeddings are combined."""
    columns = _columns(shape)
    width = network.embedding_width(columns)
    with torch.device("meta"):
        halves = bottom(network, columns), top(network, width, classes, [columns, columns])
    return halves[0].to("meta"), halves[1]


_NO_OUTPUT = nn.Flatten | nn.Unflatten | nn.Sequential  # views, and an empty side


def _counted(module: nn.Module, x: Tensor) -> tuple[Tensor, Size]:
    """What it gives, its parameters, and the numbers per row that its layers give, as torch has them."""
    seen: list[int] = []
    for layer in module.modules():
        if not list(layer.children()) and not isinstance(layer, _NO_OUTPUT):
            layer.register_forward_hook(lambda m, i, out: seen.append(out[0].numel()))
    out: Tensor = module(x)
    return out, Size(sum(p.numel() for p in module.parameters()), sum(seen))


@pytest.mark.parametrize(("network", "shape"), SOME)
def test_widths_and_sizes_are_those_of_the_modules(network: SplitNetwork, shape: tuple[int, ...]) -> None:
    columns, width = _columns(shape), network.embedding_width(_columns(shape))
    lower, upper = _on_meta(network, shape, 3)
    embedding, size = _counted(lower, torch.empty(2, len(columns), device="meta"))
    logits, above = _counted(upper, embedding)
    assert embedding.shape == (2, width)
    assert logits.shape == (2, 3)
    known = (
        bottom_size(network, columns),
        top_size(network, network.top_shape(width, [columns, columns]), 3),
    )
    for computed, counted in zip(known, (size, above), strict=True):
        assert computed.parameters == counted.parameters
        assert counted.outputs <= computed.outputs <= 3 * counted.outputs + 3
    assert known[0] + known[1] == network.part_size(Role.ACTIVE, columns, [columns], 3)


@pytest.mark.parametrize(
    ("settings", "shape", "parameters"),
    [
        ({"architecture": "lenet", "top": (120, 84)}, (1, 28, 28), 61_706),  # LeCun et al.'s count
        ({"architecture": "alexnet"}, (3, 32, 32), 2_492_234),
        ({"architecture": "resnet18"}, (3, 32, 32), 11_173_962),  # that of the usual one for CIFAR-10
        ({"architecture": "dcn", "width": 4, "hidden": (4, 4)}, (10,), 60 + 44 + 20 + 20 + 150),
    ],
)
def test_the_networks_of_the_papers_have_their_number_of_parameters(
    settings: dict[str, Any], shape: tuple[int, ...], parameters: int
) -> None:
    halves = _on_meta(SplitNetwork(**settings), shape, 10)
    assert sum(p.numel() for half in halves for p in half.parameters()) == parameters


@pytest.mark.parametrize(
    ("settings", "vertical", "layers"),
    [
        ({"architecture": "lenet", "top": (120, 84)}, 2, (2, 3)),
        ({"architecture": "alexnet"}, 5, (5, 1)),
        ({"architecture": "resnet18"}, 9, (17, 1)),
        ({"architecture": "dcn"}, 3, (3, 1)),
    ],
)
def test_presets_are_the_cuts_of_the_paper(
    settings: dict[str, Any], vertical: int, layers: tuple[int, int]
) -> None:
    """Convolutions and linear layers of bottom and top, as FedAdOb's Table IX counts them (no shortcuts)."""
    shape = (64,) if settings["architecture"] == "dcn" else (3, 32, 32)

    def counted(network: SplitNetwork) -> tuple[int, ...]:
        kinds = (nn.Conv2d, nn.Linear)
        return tuple(
            sum(isinstance(m, kinds) and "shortcut" not in name for name, m in half.named_modules())
            for half in _on_meta(network, shape, 10)
        )

    assert SplitNetwork(**settings) == SplitNetwork(**settings, cut="fedadob-vertical")
    assert SplitNetwork(**settings).bottom_blocks == vertical
    assert counted(SplitNetwork(**settings)) == layers
    assert counted(SplitNetwork(**settings, cut="fedadob-horizontal")) == (1, sum(layers) - 1)


@pytest.mark.parametrize(
    ("settings", "shape"),
    [
        (ROWS[0], (10,)),
        (ROWS[1], (10,)),
        ({"architecture": "cnn"}, (1, 8, 6)),
        ({"architecture": "lenet", "top": (6, 5)}, (3, 12, 14)),
        ({"architecture": "alexnet"}, (1, 8, 8)),
        ({"architecture": "resnet18"}, (1, 8, 8)),
    ],
)
def test_a_network_computes_the_same_wherever_it_is_cut(
    settings: dict[str, Any], shape: tuple[int, ...]
) -> None:
    """Bottom and top in a row, with the weights of the whole network in their order."""
    columns = _columns(shape)
    x = torch.rand(2, len(columns), generator=torch.Generator().manual_seed(0))
    found, weights = [], None
    for network in _cuts(settings):
        width = network.embedding_width(columns)
        whole = nn.Sequential(bottom(network, columns), top(network, width, 3, [columns])).eval()
        state = whole.state_dict()
        weights = weights or list(state.values())
        whole.load_state_dict(dict(zip(state, weights, strict=True)))
        with torch.no_grad():
            found.append(whole(x))
    for logits in found:
        torch.testing.assert_close(logits, found[0])
    assert (found[0] != 0).any()


def test_a_pixel_of_a_colour_has_its_channel() -> None:
    """Interleaved as files have them, whatever the order of the columns."""
    columns = [ColumnInfo(f"{k}", pixel=(5 + r, c, k)) for r, c, k in np.ndindex(2, 3, 3)]
    np.testing.assert_array_equal(image_grid(columns), np.arange(18).reshape(2, 3, 3).transpose(2, 0, 1))
    mixed = np.random.default_rng(0).permutation(18)
    np.testing.assert_array_equal(mixed[image_grid([columns[i] for i in mixed])], image_grid(columns))


@pytest.mark.parametrize(
    ("pixels", "sentence"),
    [
        ([(0, 0), (0, 1), (1, 0)], r"^3 columns .*, pixel \(1, 1\) is missing: cut images"),
        ([(4, 7), (4, 8), (6, 7), (6, 8)], r"pixel \(5, 7\) is missing"),
        ([(0, 0), (0, 10**12)], r"pixel \(0, 1\) is missing"),
        ([(0, 0), (0, 1), (0, 1), (1, 1)], r"^4 columns .*, pixel \(0, 1\) stands twice: cut"),
        ([(0, 0, 0), (0, 0, 1), (1, 0, 1)], r"pixel \(1, 0, 0\) is missing"),
        ([(0, 0), (1, 0, 1)], r"pixel \(0, 0, 1\) is missing"),
        ([(0, 0), None], "^2 columns .*, column 'c1' is no pixel: "),
        ([], "^0 columns .*, there is none: "),
    ],
)
def test_what_keeps_pixels_from_a_rectangle_is_named(pixels: list[Any], sentence: str) -> None:
    columns = [ColumnInfo(f"c{i}", pixel=pixel) for i, pixel in enumerate(pixels)]
    with pytest.raises(ConfigError, match=sentence):
        image_grid(columns)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        (
            {"architecture": "cnn", "dropout": 0.5},
            "dropout = 0.5: 'cnn' has no place for it, leave it out, or ch",
        ),
        ({"architecture": "cnn", "hidden": [9]}, r"hidden = \[9\]: 'cnn' has no place .* choose dcn or mlp"),
        ({"architecture": "resnet18", "width": 9}, "width = 9: 'resnet18' has no place for it"),
        ({"architecture": "dcn", "dropout": 0.5}, "dropout = 0.5: 'dcn' has no place .* choose mlp"),
    ],
)
def test_a_setting_that_the_architecture_does_not_read_is_refused(settings: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        SplitNetwork(**settings)
    kept = SplitNetwork(architecture=settings["architecture"])
    assert SplitNetwork.model_validate(kept.model_dump()) == kept  # as it travels: with all defaults


# -- what is refused -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"architecture": "lenet", "cut": 4}, "cut = 4: 'lenet' with these settings has 3 blocks .* 1 to 3"),
        ({"architecture": "cnn", "cut": "half"}, "it is a number of blocks from 1, or one of fedadob-vert"),
        ({"architecture": "cnn", "cut": 0}, "it is a number of blocks from 1"),
        ({"architecture": "cnn", "cut": True}, "it is a number of blocks from 1"),
        ({"architecture": "resnet18", "batch_norm": True}, "'resnet18' has no place for one, leave it out"),
        ({"architecture": "dcn", "cut": 2, "combine": "concatenate"}, "combine by sum or set cut = 3"),
    ],
)
def test_a_cut_that_does_not_exist_is_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SplitNetwork(**settings)


@pytest.mark.parametrize(
    ("settings", "shape", "message"),
    [
        (
            {"architecture": "lenet", "cut": 1},
            (1, 11, 20),
            "at least 12 by 12 pixels, a party holds 11 by 20",
        ),
        ({"architecture": "alexnet"}, (3, 32, 7), "at least 8 by 8 pixels, a party holds 32 by 7"),
    ],
)
def test_an_image_that_is_too_small_is_refused(
    settings: dict[str, Any], shape: tuple[int, ...], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        SplitNetwork(**settings).embedding_width(_columns(shape))


def test_a_top_of_convolutions_combines_images_of_one_size_only() -> None:
    upright, flat = _columns((1, 28, 14)), _columns((1, 14, 28))
    network = SplitNetwork(architecture="lenet", cut=1)
    width = network.embedding_width(upright)
    assert network.top_shape(width, [upright, upright]) == (6, 14, 7)
    assert network.top_shape(2 * width, [upright, upright]) == (12, 14, 7)  # concatenated
    with pytest.raises(
        ConfigError, match=r"images of .*7, 14.* places: cut the images alike, or choose a la"
    ):
        network.top_shape(width, [upright, flat])
    assert SplitNetwork(architecture="lenet").top_shape(400, [upright, flat]) == (400,)


# -- passports -----------------------------------------------------------------------------------------


def _guarded(network: SplitNetwork, shape: tuple[int, ...], role: Role) -> tuple[str | None, nn.Module]:
    """The place of a passport at ``role``, and the module behind one."""
    module = _on_meta(network, shape, 3)[0 if role is Role.PASSIVE else 1]
    place = passport_place(module, at_top=role is Role.ACTIVE)
    return place, _wrap(role)(module)


def _wrap(role: Role) -> Wrap:
    ctx = Context(
        Owner("p", role=role),
        Exchange("r", Phase.TRAIN, 0, 0),
        np.zeros(0, np.int32),
        {},
        hook="wrap_model",
        position=0,
        secret=b"d",
    )
    return lambda module: Passport(largest_mean=3.0).wrap_model(module, ctx)


@pytest.mark.parametrize(
    ("settings", "shape", "places"),
    [
        ({"architecture": "mlp", "hidden": (7,)}, (10,), ("2", "1")),
        ({"architecture": "dcn"}, (10,), ("2.right.0", "0")),
        ({"architecture": "cnn"}, (1, 8, 8), ("4", "0")),
        ({"architecture": "lenet"}, (3, 28, 28), ("4", "0")),
        ({"architecture": "alexnet", "batch_norm": True}, (3, 32, 32), ("11", "0")),
        ({"architecture": "resnet18"}, (3, 32, 32), ("18.branch.3", "0")),
        ({"architecture": "resnet18", "cut": 4}, (3, 32, 32), ("8.branch.3", "12")),
    ],
)
def test_every_architecture_has_a_place_for_a_passport_at_both_parties(
    settings: dict[str, Any], shape: tuple[int, ...], places: tuple[str, str]
) -> None:
    network = SplitNetwork(**settings)
    bare = _on_meta(network, shape, 3)
    for i, role in enumerate((Role.PASSIVE, Role.ACTIVE)):
        place, module = _guarded(network, shape, role)
        assert place == places[i]
        for part in module.modules():
            if isinstance(part, PassportLayer):
                part.rekey(np.random.default_rng(0))
        read = len(_columns(shape)) if i == 0 else network.embedding_width(_columns(shape))
        x = torch.empty(2, read, device="meta")
        assert module.to("meta")(x).shape == bare[i](x).shape


@pytest.mark.parametrize(
    "settings",
    [
        {"architecture": "lenet", "batch_norm": True},
        {"architecture": "alexnet", "batch_norm": True},
        {"architecture": "resnet18"},
    ],
)
def test_a_passport_stands_in_the_place_of_the_batch_norm_behind_its_layer(settings: dict[str, Any]) -> None:
    network = SplitNetwork(**settings)
    norms = [sum(isinstance(m, BatchNormModule) for m in _on_meta(network, (3, 32, 32), 3)[0].modules())]
    _, module = _guarded(network, (3, 32, 32), Role.PASSIVE)
    norms.append(sum(isinstance(m, BatchNormModule) for m in module.modules()))
    assert norms[1] == norms[0] - 1


# -- where it computes ---------------------------------------------------------------------------------


@pytest.mark.parametrize("device", ["meta", *(["cuda"] if torch.cuda.is_available() else [])])
@pytest.mark.parametrize(
    ("settings", "shape"),
    [
        (ROWS[1], (10,)),
        ({"architecture": "lenet", "batch_norm": True, "cut": 1}, (3, 12, 12)),
        ({"architecture": "alexnet", "batch_norm": True}, (3, 8, 8)),
        ({"architecture": "resnet18", "cut": 8}, (3, 8, 8)),
    ],
)
@pytest.mark.parametrize("wrap", first([True, False]))
def test_every_architecture_trains_on_the_configured_device(
    monkeypatch: pytest.MonkeyPatch, settings: dict[str, Any], shape: tuple[int, ...], device: str, wrap: bool
) -> None:
    """Torch's "meta" stands for a GPU: it holds no numbers, and refuses the processor's tensors."""
    if device == "meta":
        monkeypatch.setattr(training, "placed", lambda name: torch.device("meta"))
        monkeypatch.setattr(
            training, "_array", lambda t: np.zeros(t.shape, str(t.dtype).removeprefix("torch."))
        )
    network, columns = SplitNetwork(**settings), _columns(shape)
    options: Any = {"training": Training(batch_size=4), "keys": Keys.under(b"s"), "device": device}
    lower = Bottom(network, columns, **options, wrap=_wrap(Role.PASSIVE) if wrap else plain)
    upper = Top(
        network,
        columns,
        width=network.embedding_width(columns),
        classes=3,
        peers=[columns],
        wrap=_wrap(Role.ACTIVE) if wrap else plain,
        **options,
    )
    x, exchange = np.random.default_rng(0).random((4, len(columns))), Exchange("r", Phase.TRAIN, 0, 0)
    for step in range(2):
        exchange = exchange._replace(step=step)
        found = upper.loss_gradient(lower.forward(x, exchange), x, np.eye(3)[[0, 1, 2, 0]], exchange)
        found.learn()
        lower.learn(x, found.gradient, exchange)
    for model in (lower, upper):
        model.forward(x, exchange._replace(phase=Phase.PREDICT))
        tensors = [*model.module.state_dict().values(), *model.module.buffers(), *model.module.parameters()]
        assert {t.device.type for t in tensors} == {device}
