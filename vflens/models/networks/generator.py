"""torch's one generator a process, for one user at a time."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch

#: Parties that share a process (in tests, a notebook) take turns at its generator.
_GENERATOR = threading.Lock()


@contextmanager
def keyed(rng: np.random.Generator) -> Iterator[None]:
    """With torch's generator seeded from ``rng``, and no other draws between; afterwards it is as it was.

    Else the draws of a notebook that trains here would follow from a party's secret.
    """
    with _GENERATOR:
        seed = int(rng.integers(2**63))
        generators = (torch.default_generator, *torch.cuda.default_generators)  # those of GPUs in use
        before = [generator.get_state() for generator in generators]
        for generator in generators:
            generator.manual_seed(seed)
        try:
            yield
        finally:
            for generator, state in zip(generators, before, strict=True):
                generator.set_state(state)
