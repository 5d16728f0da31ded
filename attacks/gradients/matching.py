"""How far the gradients of guessed batches are from observed ones; many guesses side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cosine_similarity, cross_entropy

from vflens.attacks.gradients.batch_norms import Moments, without_state
from vflens.errors import KnowledgeError
from vflens.types import Array


class Matching:
    """Observed gradients of batches under one model, and their distance from those of guessed batches.

    The gradient is that of the batch's mean cross-entropy. Everything is computed in the model's precision
    and on its device; of float32 no guess is better than its rounding, so give a model in float64.

    Args:
        model: rows (n, d) → logits (n, k), with the parameters at which the gradients were taken.
        observed: gradients (m, …) of m batches by parameter name; of parameters that are left out nothing is
            asked, such as those of a private bottom model.
        distance: ``squares``: ‖g − o‖²/‖o‖² (Zhu et al., 2019, DLG). ``cosine``: 1 − ⟨g, o⟩/(‖g‖‖o‖)
            (Geiping et al., 2020, eq. 4), which does not ask for the length of a gradient.
        moments: whose moments batch norms used; see :mod:`vflens.attacks.gradients.batch_norms`.

    Raises:
        KnowledgeError: ``observed`` has a parameter that the model lacks, or in another shape.
    """

    def __init__(
        self,
        model: nn.Module,
        observed: Mapping[str, Array],
        distance: Literal["squares", "cosine"] = "squares",
        moments: Moments = "batch",
    ) -> None:
        parameters = {n: p.detach() for n, p in model.named_parameters()}
        for name, gradient in observed.items():
            shape = tuple(parameters[name].shape) if name in parameters else None
            if shape != gradient.shape[1:]:
                raise KnowledgeError(
                    f"gradient {name!r} of shape {gradient.shape[1:]}, the model's parameter has {shape}: "
                    "give the architecture of the model that was trained"
                )
        self._model, self._cosine = without_state(model, moments), distance == "cosine"
        self._learned = {name: parameters[name] for name in observed}
        first = next(iter(self._learned.values()))
        parts = [torch.as_tensor(g).to(first) for g in observed.values()]
        self._observed = torch.cat([part.flatten(1) for part in parts], dim=1)
        self.like = first.new_empty(0)

    def __len__(self) -> int:
        return len(self._observed)

    def gradients(self, x: Tensor, y: Tensor) -> Tensor:
        """Those of guessed batches ``x`` (a, n, d) with soft labels ``y`` (a, n, k), as vectors (a, p)."""
        found = vmap(grad(self._loss), in_dims=(None, 0, 0))(self._learned, x, y)
        return torch.cat([found[name].flatten(1) for name in self._learned], dim=1)

    def distances(self, x: Tensor, y: Tensor, which: Tensor) -> Tensor:
        """From the observed gradients ``which`` (a,) of guessed batches (a,)."""
        guessed, observed = self.gradients(x, y), self._observed[which]
        if self._cosine:
            return 1 - cosine_similarity(guessed, observed, dim=1, eps=1e-30)
        return ((guessed - observed) ** 2).sum(dim=1) / (observed**2).sum(dim=1).clamp_min(1e-300)

    def _loss(self, parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(functional_call(self._model, parameters, (x,)), y)
