"""White-box inversion that undoes InstaHide's signs, by masks of the attacker's own on granted rows (ours).

InstaHide's predictions are σ ∘ (x − m) with signs σ of their own. Who knows the bottom model G and some rows
can draw such signs for them, and see what G makes of it.
"""

from collections.abc import Callable
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from vflens.attacks.helpers.linear.believed import GrantedRowsInversion, beliefs_of, embedded
from vflens.attacks.helpers.linear.signs import sided
from vflens.attacks.helpers.networks.inversion import target_model
from vflens.attacks.helpers.networks.transfer import transferable
from vflens.attacks.wmi import WhiteBoxInversion
from vflens.models.networks.parameters import from_arrays
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, statuses

#: Of embeddings (n, w) of masked rows, and known rows (m, d): the rows (n, d).
Way = Callable[[Array, Array], Array]


class SignInversion(GrantedRowsInversion):
    """The better of two ways, as tried on granted rows under signs of the attacker's own.

    By sides: x̃ = argmin ‖G(x̃) − H‖² over [−r, r], r = max(m, 1 − m), from granted rows under drawn signs;
    then E[x | |x − m| = |x̃|] for x that is normal with the granted rows' moments. By regression: penalised
    least squares of granted rows in what G makes of them under drawn signs. The first is exact but for the
    sides where G can be inverted, the second needs no inverse. m is the mean of all granted numbers. Half of
    the granted rows judge what the others teach; then all teach.
    """

    rowwise: ClassVar[bool] = False
    knows: ClassVar[frozenset[str]] = frozenset({"instahide"})

    patterns: int = Field(20, ge=2, le=10_000, description="signs that are drawn for each granted row")
    starts: int = Field(
        5, ge=1, le=1_000, description="sides: granted rows under signs where a row's descents begin"
    )
    sweeps: int = Field(100, ge=2, le=1_000_000, description="sides: of Gibbs sampling over a row's signs")
    centred: bool = Field(True, description="false: m = 0, where instahide has centred = false")

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d); see :meth:`vflens.plugins.attack.Attack.reconstruct`."""
        model, rows = target_model(view), view.auxiliary()[1]
        from_arrays(model, view.target_network())
        masked = Masked(model.eval(), float(rows.mean()) if self.centred else 0.0, rng)
        h, ways = view.embeddings(), (self._by_sides(view, masked), self._by_regression(masked))
        x = self.better(ways, rows, masked)(h, rows)
        return Estimate(view.target, view.rows, x, statuses(len(x)))

    @staticmethod
    def better(ways: tuple[Way, Way], rows: Array, masked: "Masked") -> Way:
        """That of ``ways`` which errs less on half of the ``rows``, under signs, from the other half."""
        half = (len(rows) + 1) // 2
        judged, h = rows[half:], embedded(masked.model, masked.signed(rows[half:]))
        return min(ways, key=lambda way: float(((way(h, rows[:half]) - judged) ** 2).sum()))

    def _by_sides(self, view: AdversaryView, masked: "Masked") -> Way:
        descent = WhiteBoxInversion(starts=self.starts, steps=self.steps, rate=self.rate, smoothness=0.0)

        def found(h: Array, rows: Array) -> Array:
            reach = max(masked.centre, 1 - masked.centre)
            points = np.concatenate([masked.signed(rows) for _ in range(self.patterns)])
            spread = nn.Sequential(_Spread(reach), masked.model)
            u, _ = descent.ends(h, view.metadata(), spread, (points / reach + 1) / 2, progress=view.progress)
            sizes: Array = np.abs(2 * u - 1) * reach
            return sided(sizes, masked.centre, beliefs_of(rows), self.sweeps, masked.rng)

        return found

    def _by_regression(self, masked: "Masked") -> Way:
        def found(h: Array, rows: Array) -> Array:
            shown = [embedded(masked.model, masked.signed(rows)) for _ in range(self.patterns)]
            mean, size = np.mean(shown, axis=(0, 1)), np.std(shown, axis=(0, 1))
            unit = np.where(size > 1e-9 * max(float(size.max(initial=0.0)), 1e-300), size, np.inf)
            decode = transferable([(z - mean) / unit for z in shown], rows)
            return decode((h - mean) / unit).clip(0, 1)

        return found


class Masked:
    """The bottom model G, m, and signs as InstaHide draws them."""

    def __init__(self, model: nn.Module, centre: float, rng: np.random.Generator) -> None:
        self.model, self.centre, self.rng = model, centre, rng

    def signed(self, rows: Array) -> Array:
        """σ ∘ (x − m) of ``rows`` (n, d)."""
        signed: Array = self.rng.choice([-1.0, 1.0], rows.shape) * (rows - self.centre)
        return signed


class _Spread(nn.Module):
    """[0, 1] spread over [−``reach``, ``reach``]."""

    def __init__(self, reach: float) -> None:
        super().__init__()
        self._reach = reach

    def forward(self, x: Tensor) -> Tensor:
        return torch.mul(2 * x - 1, self._reach)
