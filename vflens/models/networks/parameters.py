"""Parameters as named NumPy arrays: nothing of a network travels or is stored in any other form."""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor, nn

from vflens.errors import ProtocolError
from vflens.types import Array


def to_arrays(tensors: Mapping[str, Tensor]) -> dict[str, Array]:
    """Copies of ``tensors``."""
    return {name: t.detach().cpu().numpy().copy() for name, t in tensors.items()}


def from_arrays(module: nn.Module, arrays: Mapping[str, Array]) -> None:
    """Set the parameters of ``module`` to ``arrays``, of the same names and shapes and finite; a batch norm's
    running moments are among them.

    Raises:
        ProtocolError: they are those of another architecture; the module is left as it was.
    """
    parameters = module.state_dict()
    if set(parameters) != set(arrays):
        odd = sorted(set(parameters) ^ set(arrays))[0]
        raise ProtocolError(
            f"parameters {odd!r} stand in one of file and model only: they belong to another architecture, "
            "load the right one"
        )
    for name, parameter in parameters.items():
        _check(name, arrays[name], tuple(parameter.shape))
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(torch.from_numpy(np.array(arrays[name])))


def _check(name: str, array: Array, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise ProtocolError(
            f"parameters {name!r} have shape {array.shape}, the model's {shape}: load those of the same "
            "architecture"
        )
    if not np.isfinite(array).all():
        raise ProtocolError(
            f"parameters {name!r} hold NaN or infinite numbers: load those of a trained model"
        )
    if name.endswith("running_var") and (array < 0).any():
        raise ProtocolError(f"parameters {name!r} hold a negative variance: load those of a trained model")
