"""White-box inversion behind a passport by an attacker who was granted moments alone, no row at all.

FedAdOb's Theorem 1 counts guesses of the key that are independent of all that was observed. One key serves
all rows of an exchange: mean and variance of the embeddings show its γ and β to one who knows those of the
inputs.
"""

from functools import partial
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import nn

from vflens.attacks.helpers.networks.exchanges import matched_signs
from vflens.attacks.helpers.networks.inversion import array
from vflens.attacks.wmi_moments import MomentInversion, Undo
from vflens.errors import KnowledgeError
from vflens.models.networks.passport import open_layers
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Knowledge


class MomentsOnly(MomentInversion):
    """On a linear bottom model a closed form of μ = E x and Σ = Cov x, granted; W has the rows w_j.

    γ_j² = Var H_j / (w_jᵀ Σ w_j), the signs from covariances, β_j = E H_j − γ_j w_jᵀ μ, then the best linear
    estimate x̂ = μ + Σ Wᵀ (W Σ Wᵀ + R)⁺ ((H − β)/γ − W μ), in the box. R is the variance that γ̂ has from n
    rows, diag(W Σ Wᵀ)/2n. The sign common to all γ is that of the estimates nearer to the box: inputs that
    are distributed alike around μ do not show it.

    On other models rows drawn from N(μ, Σ) take the place of the granted rows of :class:`MomentInversion`.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {
            Knowledge.EMBEDDINGS,
            Knowledge.PARAMETERS,
            Knowledge.ARCHITECTURE,
            Knowledge.METADATA,
            Knowledge.MOMENTS,
        }
    )

    shift_only: bool = Field(
        False, description="γ is known to be 1, as in the setting of FedAdOb's Theorem 1: only β is estimated"
    )
    draws: int = Field(500, ge=2, le=1_000_000, description="rows drawn where the bottom model is not linear")

    def undoing(self, view: AdversaryView, model: nn.Module, rng: np.random.Generator) -> Undo:
        moments, part = view.moments(), view.columns()
        if moments.covariance is None:
            raise KnowledgeError(
                f"party {view.target!r} granted a mean without a covariance, which needs two rows: grant more"
            )
        mean, covariance = moments.mean[part], moments.covariance[part, part]
        layers = open_layers(model)
        if len(layers) == 1 and isinstance(layer := next(iter(layers.values())), nn.Linear):
            return partial(self._solved, array(layer.weight), mean, covariance)
        drawn = rng.multivariate_normal(mean, covariance, self.draws, method="eigh").clip(0, 1)
        return partial(self.undone, model, drawn, view.metadata(), progress=view.progress)

    def _solved(
        self, weight: Array, mean: Array, covariance: Array, h: Array, asked: Array
    ) -> tuple[Array, Array]:
        """The closed form for the ``asked`` rows of ``h`` (n, w), and what is left of their embeddings."""
        seen, about = weight @ covariance @ weight.T, h.mean(axis=0, dtype=np.float64)
        noise = 0.0 if self.shift_only else 1 / (2 * len(h))
        back = covariance @ weight.T @ np.linalg.pinv(seen + noise * np.diag(np.diag(seen)), 1e-10, True)

        def estimated(scale: Array) -> tuple[Array, Array, float]:
            x = mean + ((h[asked] - about) / scale) @ back.T
            kept = x.clip(0, 1) if self.box else x
            left = (kept - mean) @ weight.T * scale - (h[asked] - about)
            return kept, np.linalg.norm(left, axis=1), float(((x - x.clip(0, 1)) ** 2).sum())

        return min(map(estimated, self._scales(seen, h)), key=lambda found: found[2])[:2]

    def _scales(self, seen: Array, h: Array) -> list[Array]:
        """γ (w,), and its opposite, from the covariance ``seen`` of W x and embeddings ``h``."""
        if self.shift_only or len(h) < 2:
            return [np.ones(len(seen))]
        spread = np.sqrt(np.maximum(np.diag(seen), 1e-30))
        sizes = h.std(axis=0, ddof=1, dtype=np.float64) / spread
        of_h = np.nan_to_num(np.corrcoef(h.T), nan=0.0)
        found = matched_signs(torch.tensor(seen / np.outer(spread, spread))[None], torch.tensor(of_h)[None])
        scale = np.maximum(sizes, 1e-9) * found.numpy()
        return [scale, -scale]
