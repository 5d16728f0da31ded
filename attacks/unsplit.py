"""UnSplit: rows and the bottom model are learned together from embeddings alone (Erdoğan et al., 2022).

It has no row of the target, no parameter and no score: the adversary knows the architecture only.
"""

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from vflens.attacks.helpers.networks.inversion import (
    array,
    device_of,
    image_places,
    target_model,
    total_variation,
)
from vflens.models.networks.generator import keyed
from vflens.plugins.attack import Attack
from vflens.plugins.steps import Steps
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Estimate, Knowledge, statuses


class UnSplit(Attack):
    """min over x in the box and θ of ‖G_θ(x) − H‖² + smoothness·TV(x), in turns: some steps for x, then some
    for θ, in every round.

    x begins at ½, θ as a new model. The loss is in units of the mean ‖H‖². TV is left out where the columns
    are no image.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.EMBEDDINGS, Knowledge.ARCHITECTURE, Knowledge.METADATA}
    )
    rowwise: ClassVar[bool] = False
    exact: ClassVar[bool] = False

    rounds: int = Field(50, ge=1, le=100_000, description="turns of the rows and of the model")
    steps: int = Field(10, ge=1, le=1_000_000, description="steps of Adam on the rows in each round")
    learning_steps: int = Field(
        10, ge=1, le=1_000_000, description="steps of Adam on the model in each round"
    )
    rate: float = Field(0.02, gt=0, allow_inf_nan=False, description="Adam's rate for the rows")
    learning_rate: float = Field(0.002, gt=0, allow_inf_nan=False, description="Adam's rate for the model")
    smoothness: float = Field(0.001, ge=0, allow_inf_nan=False, description="weight of the total variation")

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d); extra "residual" (N,): ‖G_θ(x̂) − H‖. See
        :meth:`vflens.plugins.attack.Attack.reconstruct`.
        """
        with keyed(rng):
            model = target_model(view).eval()
        h = torch.tensor(view.embeddings(), dtype=torch.float64, device=device_of(model))
        columns = view.metadata()
        x = torch.full((len(h), len(columns)), 0.5, dtype=torch.float64, device=h.device).requires_grad_()
        grid, unit = image_places(columns), (h**2).sum().clamp_min(1e-30)

        def misfit() -> Tensor:
            squares: Tensor = ((model(x) - h) ** 2).sum() / unit
            return squares

        def smooth() -> Tensor:
            return misfit() if grid is None else misfit() + self.smoothness * _roughness(x[:, grid])

        if len(h):
            self._alternate(
                x, list(model.parameters()), smooth, misfit, Steps(view.progress, "round", self.rounds)
            )
        with torch.no_grad():
            residual = array((model(x) - h).norm(dim=1)) if len(h) else np.zeros(0)
        return Estimate(view.target, view.rows, array(x), statuses(len(h)), extras={"residual": residual})

    def _alternate(
        self,
        x: Tensor,
        parameters: list[Tensor],
        smooth: Callable[[], Tensor],
        misfit: Callable[[], Tensor],
        step: Steps,
    ) -> None:
        """Adam on ``x`` for ``smooth``, on the ``parameters`` for ``misfit``, in turns; ``step`` counts."""
        rows, learned = (
            torch.optim.Adam([x], lr=self.rate),
            torch.optim.Adam(parameters, lr=self.learning_rate),
        )
        for _ in range(self.rounds):
            for _ in range(self.steps):
                torch.autograd.backward(smooth(), inputs=[x])
                rows.step()
                rows.zero_grad()
                with torch.no_grad():
                    x.clamp_(0, 1)
            for _ in range(self.learning_steps):
                torch.autograd.backward(misfit(), inputs=parameters)
                learned.step()
                learned.zero_grad()
            step()


def _roughness(images: Tensor) -> Tensor:
    """Total variation, the mean of images and pixels."""
    return total_variation(images).sum() / images.numel()
