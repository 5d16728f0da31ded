"""How far the gradients of guessed batches are from observed ones; many guesses side by side."""

from collections.abc import Mapping
from typing import Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call, grad, vmap
from torch.nn.functional import cross_entropy

from vflens.attacks.helpers.gradients.batch_norms import Moments, without_state
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
        moments: whose moments batch norms used; see :mod:`vflens.attacks.helpers.gradients.batch_norms`.

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
        self._observed = {name: torch.as_tensor(g).to(first).flatten(1) for name, g in observed.items()}
        self._lengths = sum((_squares(o) for o in self._observed.values()), start=first.new_zeros(())).sqrt()
        self.like = first.new_empty(0)

    def __len__(self) -> int:
        return len(self._lengths)

    def gradients(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
        """Those of guessed batches ``x`` (a, n, d) with soft labels ``y`` (a, n, k), by name (a, …)."""
        found: dict[str, Tensor] = vmap(grad(self._loss), in_dims=(None, 0, 0))(self._learned, x, y)
        return found

    def distances(self, x: Tensor, y: Tensor, which: Tensor) -> Tensor:
        """From the observed gradients ``which`` (a,) of guessed batches (a,)."""
        # Parameter by parameter: one vector of all would be written and read several times more.
        pairs = [(g.flatten(1), self._observed[name][which]) for name, g in self.gradients(x, y).items()]
        zero, lengths = x.new_zeros(len(which)), self._lengths[which].clamp_min(1e-150)
        if not self._cosine:
            return sum((_squares(g - o) for g, o in pairs), start=zero) / lengths**2
        inner = sum(((g * o).sum(dim=1) for g, o in pairs), start=zero)
        guessed = sum((_squares(g) for g, _ in pairs), start=zero).clamp_min(1e-300).sqrt()
        return 1 - inner / (guessed * lengths)

    def _loss(self, parameters: dict[str, Tensor], x: Tensor, y: Tensor) -> Tensor:
        return cross_entropy(functional_call(self._model, parameters, (x,)), y)


def _squares(rows: Tensor) -> Tensor:
    """‖·‖² of each row (a,); its backward pass reads them once."""
    squares: Tensor = torch.linalg.vector_norm(rows, dim=1) ** 2
    return squares
