"""White-box inversion of noisy embeddings: the mean of several epochs, inverted to the likeliest rows (ours).

DP's noise is drawn anew in every exchange, while the bottom model hardly changes in the last epochs. Granted
rows say how many of these to average, and how much noise is left.
"""

from collections.abc import Iterator
from typing import ClassVar, NamedTuple

import numpy as np
from pydantic import Field
from torch import Tensor, nn

from vflens.attacks.helpers.linear.believed import GrantedRowsInversion, embedded, likeliest
from vflens.attacks.helpers.networks.inversion import target_model
from vflens.attacks.helpers.people.phases import phase_of
from vflens.attacks.wmi import WhiteBoxInversion
from vflens.errors import KnowledgeError
from vflens.models.networks.parameters import from_arrays
from vflens.plugins.arrivals import latest
from vflens.plugins.views.horizontal import ServerView
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Phase, Point


class Explained(NamedTuple):
    """``model`` gives the granted rows' recorded embeddings but for a squared error of ``noise`` a number."""

    model: nn.Module
    noise: float


class AveragedInversion(GrantedRowsInversion):
    """x̂ = argmin ‖G(x) − h̄‖² + s²·(x − μ)ᵀΣ⁻¹(x − μ) in the box, h̄ the mean of a row's last embeddings.

    Of the last e recorded epochs, that e is taken for which the granted rows' mean embeddings are nearest to
    G of these rows; s² is what they then differ by, μ and Σ are their moments. A prediction row has one
    embedding, whose noise is that of one epoch; so has a row whose embedding a client granted.
    """

    phases: ClassVar[frozenset[Phase]] = frozenset(Phase)
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN, Phase.PREDICT})
    knows: ClassVar[frozenset[str]] = frozenset({"dp_gaussian", "dp_laplace"})

    clip: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="the L2 norm to which embeddings are known to be clipped"
    )

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d); extra "residual" (N,), see
        :func:`vflens.attacks.helpers.linear.believed.likeliest`. See
        :meth:`vflens.plugins.attack.Attack.reconstruct`.

        Raises:
            KnowledgeError: also where no recorded epoch has all granted and all asked rows.
        """
        model, (known, rows) = target_model(view), view.auxiliary()
        from_arrays(model, view.target_network())
        model.eval().requires_grad_(False)
        training = isinstance(view, ServerView) or phase_of(view) is Phase.TRAIN
        epochs = means_of_last(view, np.concatenate([known, view.rows] if training else [known]))
        tried = [(self.explained(model, rows, h[: len(known)]), h[len(known) :]) for h in epochs]
        if not tried:
            raise KnowledgeError(
                f"no recorded epoch of {view.target!r} has the embeddings of all its granted rows and of all "
                "rows that are asked for: record whole epochs"
            )
        explained, h = min(tried, key=lambda one: one[0].noise) if training else tried[0]
        descent = WhiteBoxInversion(starts=self.starts, steps=self.steps, rate=self.rate, smoothness=0.0)
        asked = h if training else view.embeddings().astype(np.float64)
        return likeliest(view, explained.model, asked, explained.noise, descent)

    def explained(self, model: nn.Module, rows: Array, h: Array) -> Explained:
        """G, clipped where that is known, and what it leaves of the embeddings ``h`` (m, w) of ``rows``."""
        whole = model if self.clip is None else nn.Sequential(model, _Clipped(self.clip))
        return Explained(whole, float(((embedded(whole, rows) - h) ** 2).mean()))


def means_of_last(view: AdversaryView, rows: Array) -> Iterator[Array]:
    """The mean embeddings (n, w) of training ``rows`` over the last recorded epoch, the last two, and so on.

    Epochs in which some row is missing are left out: the last one of an interrupted run, or all. In a server
    those that were granted.
    """
    if isinstance(view, ServerView):
        yield view.embeddings(rows)
        return
    epochs = sorted({e.round for e, _, _ in view.batches(Point.EMBEDDING, Phase.TRAIN)}, reverse=True)
    total, counted = np.zeros(()), 0
    for epoch in epochs:
        messages = view.batches(Point.EMBEDDING, Phase.TRAIN)
        values, seen = latest(((r, h) for e, r, h in messages if e.round == epoch), rows)
        if seen.all():
            total, counted = total + values, counted + 1
            yield total / counted


class _Clipped(nn.Module):
    """Rows (n, w), scaled down to the norm ``largest`` where they are longer."""

    def __init__(self, largest: float) -> None:
        super().__init__()
        self._largest = largest

    def forward(self, h: Tensor) -> Tensor:
        shorter: Tensor = h * (self._largest / h.norm(dim=1, keepdim=True).clamp_min(self._largest))
        return shorter
