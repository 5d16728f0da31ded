"""A generator of unknown columns: a network that learns what explains the scores (Luo et al., 2021, §V)."""

from collections.abc import Callable, Iterator
from typing import Annotated, TypeAlias

import numpy as np
import torch
from pydantic import BaseModel, Field
from torch import Tensor, nn

from vflens.attacks.helpers.networks.inversion import array
from vflens.attacks.helpers.networks.learning import batches, by_adam
from vflens.models.networks.generator import keyed
from vflens.plugins.steps import Steps
from vflens.types import Array, Progress

Width: TypeAlias = Annotated[int, Field(ge=1, le=65536)]
#: ‖f(x̂) − v‖² (n,) of columns x̂ (n, d) of the rows at these places (n,).
Misfit: TypeAlias = Callable[[Tensor, Array], Tensor]


class Generator(BaseModel):
    """x̂ = g(x_own, r), r ~ N(0, 1) of d numbers: linear layers with layer norms and ReLU, into the box by a
    sigmoid.
    """

    hidden: tuple[Width, ...] = Field((600, 200, 100), description="units of the generator's hidden layers")
    variance: float = Field(
        0.25,
        ge=0,
        allow_inf_nan=False,
        description="weight of the variances of the generated columns in a batch, beside its summed misfit",
    )
    learning_steps: int = Field(
        100, ge=1, le=1_000_000, description="passes of Adam over the rows with scores"
    )
    learning_rate: float = Field(0.001, gt=0, allow_inf_nan=False, description="Adam's rate; it falls to 0")
    learning_batch: int = Field(64, ge=1, le=1_000_000, description="rows in a batch")

    def generated(
        self, own: Tensor, d: int, misfit: Misfit, rng: np.random.Generator, progress: Progress
    ) -> Array:
        """Columns (N, d) beside ``own`` (N, p), by a generator that minimises
        Σ_batch ``misfit`` + ``variance``·Σ_j Var(x̂_j) (Luo et al., 2021, Algorithm 2).

        The noise r of each row is drawn anew in every step, and once more for the answer.
        """
        if len(own) == 0:
            return np.zeros((0, d))
        with keyed(rng):
            network = self._network(own.shape[1] + d, d).to(own)

        def columns(places: Array) -> Tensor:
            noise = torch.from_numpy(rng.normal(size=(len(places), d))).to(own)
            found: Tensor = network(torch.cat([own[places], noise], dim=1))
            return found

        def losses() -> Iterator[Tensor]:
            for places in batches(len(own), self.learning_batch, self.learning_steps, rng):
                x = columns(places)
                yield misfit(x, places).sum() + self.variance * x.var(dim=0, correction=0).sum()

        steps = -(-len(own) // self.learning_batch) * self.learning_steps
        by_adam(network, losses(), steps, self.learning_rate, Steps(progress, "learning", steps))
        with torch.no_grad():
            return array(columns(np.arange(len(own))))

    def _network(self, width: int, d: int) -> nn.Module:
        layers: list[nn.Module] = []
        for inner in self.hidden:
            layers += [nn.Linear(width, inner), nn.LayerNorm(inner), nn.ReLU()]
            width = inner
        return nn.Sequential(*layers, nn.Linear(width, d), nn.Sigmoid())
