"""The whole model that a client of a horizontal federation trains, as an adversary computes with it."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vflens.attacks.helpers.networks.inversion import array, device_of
from vflens.errors import KnowledgeError
from vflens.models.families.split_network import SplitNetwork
from vflens.models.networks.architectures import bottom, top
from vflens.models.networks.parameters import from_arrays
from vflens.types import Array, ColumnInfo


def whole_network(network: SplitNetwork, columns: Sequence[ColumnInfo], classes: int) -> nn.Module:
    """A new network (n, d) → (n, k) in float64 whose parameters have the names under which they travel,
    "bottom.0.weight"; its start depends on torch's generator.
    """
    width = network.embedding_width(columns)
    parts = {"bottom": bottom(network, columns), "top": top(network, width, classes, [columns])}
    return nn.Sequential(OrderedDict(parts)).to(torch.float64)


def softmax_network(parameters: Mapping[str, Array]) -> nn.Module:
    """Softmax regression with these ``parameters``, "weight" (k, d) and "bias" (k,), in float64."""
    classes, columns = parameters["weight"].shape
    model = nn.Linear(columns, classes, dtype=torch.float64)
    from_arrays(model, parameters)
    return model


def last_bias(model: nn.Module) -> str:
    """The name of the bias (k,) behind which the logits stand.

    Raises:
        KnowledgeError: the last layer has none.
    """
    name = [n for n, _ in model.named_parameters()][-1]
    if not name.endswith("bias"):
        raise KnowledgeError(f"the model's last layer has no bias, its parameters end with {name!r}")
    return name


def first_linear(model: nn.Module) -> str | None:
    """The name of the linear layer that reads the columns themselves, "" for a model that is one layer; None
    where a convolution reads them.
    """
    layers = (n for n, m in model.named_modules() if isinstance(m, nn.Linear | nn.Conv2d))
    name = next(layers)
    return name if isinstance(model.get_submodule(name), nn.Linear) else None


def row_slopes(model: nn.Module, layer: str, x: Array, classes: int) -> Array:
    """The gradient (n, k, m) of the loss of each row of ``x`` (n, d), as each of k ``classes``, in the output
    of ``layer``.
    """
    seen: list[Tensor] = []
    hook = model.get_submodule(layer).register_forward_hook(lambda module, given, z: seen.append(z))
    logits = model.eval()(torch.tensor(x, device=device_of(model)))
    hook.remove()
    labels = torch.arange(classes, device=logits.device)
    losses = [cross_entropy(logits, k.expand(len(x)), reduction="sum") for k in labels]
    found = [torch.autograd.grad(loss, seen[0], retain_graph=True)[0] for loss in losses]
    return array(torch.stack(found, dim=1))
