"""Where a party's part of a network computes: its processor, or its GPU."""

import os

import torch

from vflens.errors import ConfigError


def placed(name: str) -> torch.device:
    """The device called ``name``, ``cpu`` or ``cuda``; of a GPU only algorithms that repeat their bits are
    asked for.

    Raises:
        ConfigError: this machine has none.
    """
    if name == "cuda":
        if not torch.cuda.is_available():
            raise ConfigError(
                "device = 'cuda': torch finds no GPU on this machine, set device = \"cpu\" or install a "
                "driver and a torch that know it"
            )
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # else its sums change from run to run
        torch.use_deterministic_algorithms(True, warn_only=True)
    return torch.device(name)
