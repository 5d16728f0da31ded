"""Parameters as named NumPy arrays: nothing of a network travels or is stored in any other form."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from torch import nn

from vflens.errors import ProtocolError
from vflens.types import Array


def to_arrays(parameters: Mapping[str, nn.Parameter]) -> dict[str, Array]:
    """Copies of ``parameters``."""
    return {name: p.detach().cpu().numpy().copy() for name, p in parameters.items()}


def from_arrays(module: nn.Module, arrays: Mapping[str, Array]) -> None:
    """Set the parameters of ``module`` to ``arrays``, of the same names and shapes and finite.

    Raises:
        ProtocolError: they are those of another architecture; the module is left as it was.
    """
    parameters = dict(module.named_parameters())
    if set(parameters) != set(arrays):
        odd = sorted(set(parameters) ^ set(arrays))[0]
        raise ProtocolError(
            f"parameters {odd!r} stand in one of file and model only: they belong to another architecture, "
            "load the right one"
        )
    for name, parameter in parameters.items():
        if arrays[name].shape != tuple(parameter.shape):
            raise ProtocolError(
                f"parameters {name!r} have shape {arrays[name].shape}, the model's {tuple(parameter.shape)}: "
                "load those of the same architecture"
            )
        if not np.isfinite(arrays[name]).all():
            raise ProtocolError(
                f"parameters {name!r} hold NaN or infinite numbers: load those of a trained model"
            )
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(torch.from_numpy(np.array(arrays[name])))
