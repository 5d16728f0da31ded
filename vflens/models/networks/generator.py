"""torch's one generator a process, for one user at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

#: Parties that share a process (in tests, a notebook) take turns at its generator.
_GENERATOR = threading.Lock()


@contextmanager
def keyed(rng: np.random.Generator) -> Iterator[None]:
    """With torch's generator seeded from ``rng``, and nobody else's draws between."""
    with _GENERATOR:
        seed = int(rng.integers(2**63))
        for generator in (torch.default_generator, *torch.cuda.default_generators):  # those of GPUs in use
            generator.manual_seed(seed)
        yield
