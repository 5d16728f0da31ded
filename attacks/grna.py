"""A generator of the unknown columns learns to explain the released scores (Luo et al., 2021, GRNA).

The white box: scores, the target's parameters, the adversary's own columns. The generator learns how the
unknown columns go with the own ones, from all predictions together.
"""

from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor

from vflens.attacks.helpers.networks.generative import Generator, Misfit
from vflens.attacks.helpers.networks.inversion import target_model
from vflens.attacks.helpers.networks.own_top import own_top
from vflens.models.networks.device import placed
from vflens.models.networks.parameters import from_arrays
from vflens.numerics.linear_system import LinearSystem
from vflens.plugins.attack import Attack, linear_estimate
from vflens.plugins.declared import Audited, Declared
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, RowStatus, statuses

_NETWORK = {Knowledge.EMBEDDINGS, Knowledge.PARAMETERS, Knowledge.OWN_FEATURES}
_NETWORK |= {Knowledge.ARCHITECTURE, Knowledge.METADATA}


class GenerativeRegression(Generator, Attack):
    """min_g Σ ‖f(x_own, g(x_own, r)) − v‖² + λ Σ_j Var(x̂_j), f the trained model and v the scores.

    In a split network f is the own top model behind the target's disclosed bottom model, and v are the scores
    that the own top model gives of the received embeddings.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.SCORES, Knowledge.PARAMETERS, Knowledge.OWN_FEATURES}
    )
    rowwise: ClassVar[bool] = False
    exact: ClassVar[bool] = False
    audited: ClassVar[Audited | None] = None  # rcc2 errs less there, and it needs no torch

    model: Literal["linear", "network"] = Field(
        "linear", description="what the federation trains: logistic or linear regression, or a split network"
    )

    def declared(self) -> Declared:
        """In a split network it needs embeddings and the architecture instead of scores."""
        needs = frozenset(_NETWORK) if self.model == "network" else self.needs
        return Declared(needs, self.phases, self.estimated_rows)

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d); linear models: extra "residual" (N,), ‖A x̂ − b'‖. See
        :meth:`vflens.plugins.attack.Attack.reconstruct`.
        """
        return self._of_network(view, rng) if self.model == "network" else self._of_linear(view, rng)

    def _of_linear(self, view: AdversaryView, rng: np.random.Generator) -> Estimate:
        """One generator for each group of rows with the same usable scores."""
        own, (weight, bias) = view.own("features"), view.unknown_parameters()
        values, status = np.zeros((len(own), weight.shape[1])), statuses(len(own))
        residual = np.zeros(len(own))
        known = own @ view.own("parameters").T + bias
        for rows, system in view.linear_systems(known, weight):
            columns = torch.tensor(own[rows], device=placed(view.device))
            found = (columns, weight.shape[1], _linear_misfit(system, columns), rng, view.progress)
            part = linear_estimate(self.generated(*found), system.A, system.b)
            missing = system.saturated & (part.status == RowStatus.OK)
            values[rows], status[rows] = part.values, np.where(missing, RowStatus.SATURATED, part.status)
            residual[rows] = part.extras["residual"]
        return Estimate(
            view.target, view.rows, values[:, view.columns()], status, extras={"residual": residual}
        )

    def _of_network(self, view: AdversaryView, rng: np.random.Generator) -> Estimate:
        bottom, logits = target_model(view), own_top(view, view.rows)
        from_arrays(bottom, view.target_network())
        bottom.eval().requires_grad_(False)
        device, h = placed(view.device), view.embeddings()
        own = view.own("features") if view.own_columns() else np.zeros((len(h), 0))
        every = np.arange(len(h))
        scores = logits(torch.tensor(h, dtype=torch.float64, device=device), every).softmax(dim=1)

        def misfit(x: Tensor, places: Array) -> Tensor:
            guessed = logits(bottom(x), places).softmax(dim=1)
            squares: Tensor = (guessed - scores[places]) ** 2
            return squares.sum(dim=1)

        columns, d = torch.tensor(own, device=device), len(view.metadata())
        values = self.generated(columns, d, misfit, rng, view.progress)
        return Estimate(view.target, view.rows, values, statuses(len(values)))


def _linear_misfit(system: LinearSystem, like: Tensor) -> Misfit:
    """‖ĉ − c‖², with ln ĉ = ln c + (0, cumsum(A x̂ − b')) up to a constant; ‖A x̂ − b'‖² where the scores are
    no logarithms.
    """
    A, b = (torch.tensor(a).to(like) for a in (system.A, system.b))
    if system.log_c is None:
        return lambda x, places: ((x @ A.T - b[places]) ** 2).sum(dim=1)
    log_c = torch.tensor(system.log_c).to(like)

    def misfit(x: Tensor, places: Array) -> Tensor:
        ratios = (x @ A.T - b[places]).cumsum(dim=1)
        guessed = (log_c[places] + torch.nn.functional.pad(ratios, (1, 0))).softmax(dim=1)
        squares: Tensor = (guessed - log_c[places].softmax(dim=1)) ** 2
        return squares.sum(dim=1)

    return misfit
