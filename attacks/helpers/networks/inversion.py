"""Inverting a bottom model: the inputs whose embedding comes nearest to the observed ones."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from vflens.errors import ConfigError
from vflens.models.networks.architectures import bottom
from vflens.models.networks.device import placed
from vflens.models.pixels import image_grid
from vflens.plugins.attack import Attack
from vflens.plugins.steps import Steps, silent
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, ColumnInfo, Estimate, Progress, statuses

_BATCH = {"cpu": 512, "cuda": 16384}  # descents in one block: they fit into the caches; fill a GPU
_TIE = 1 + 1e-9  # residuals this near count as equal: the nearer start has the row


def target_model(view: AdversaryView) -> nn.Module:
    """A new bottom model of the target in float64, where the party of ``view`` computes; its start depends on
    torch's generator.
    """
    model = bottom(view.architecture(), view.metadata()).to(torch.float64)
    return model.to(placed(view.device))


def device_of(model: nn.Module) -> torch.device:
    """Where ``model`` computes."""
    return next(model.parameters()).device


def array(tensor: Tensor) -> Array:
    """``tensor`` as NumPy has it."""
    found: Array = tensor.detach().cpu().numpy()
    return found


class Inversion(Attack):
    """min_x ‖G(x) − H‖² + smoothness·‖H‖²·TV(x) over the box [0, 1], row by row, for a model G.

    Adam, kept inside the box, from several starts; a row's answer is the end of least residual ‖G(x) − H‖,
    the only figure that an adversary has. The weight of TV goes with ‖H‖², unless it is absolute as
    FedAdOb's: a defence that shrinks embeddings then leaves the answer to TV. It is left out where the
    columns are no image.
    """

    starts: int = Field(
        3,
        ge=1,
        le=1_000,
        description="starting points of each row; time and the chance of a good end grow with it",
    )
    steps: int = Field(300, ge=1, le=1_000_000, description="steps of Adam from each")
    rate: float = Field(
        0.05, gt=0, allow_inf_nan=False, description="Adam's first learning rate; it falls to 0"
    )
    smoothness: float = Field(0.0003, ge=0, allow_inf_nan=False, description="weight of the total variation")
    smoothness_of: Literal["embedding", "absolute"] = Field(
        "embedding", description="that weight is in units of the row's ‖H‖², or as it stands"
    )
    box: bool = Field(True, description="keep every step inside [0, 1]")

    def inverted(
        self, view: AdversaryView, model: nn.Module, points: Array, learned: Sequence[Tensor] = ()
    ) -> Estimate:
        """The rows of ``view`` by :meth:`ends`; extra "residual" (N,)."""
        given = (view.embeddings(), view.metadata(), model, points, learned)
        x, residual = self.ends(*given, progress=view.progress)
        return Estimate(view.target, view.rows, x, statuses(len(x)), extras={"residual": residual})

    def ends(
        self,
        embeddings: Array,
        columns: Sequence[ColumnInfo],
        model: nn.Module,
        points: Array,
        learned: Sequence[Tensor] = (),
        *,
        progress: Progress = silent,
    ) -> tuple[Array, Array]:
        """The answers (n, d) for ``embeddings`` (n, w), each from the ``starts`` of ``points`` (m, d) whose
        embeddings are nearest; residuals (n,).

        ``learned`` are parameters of ``model`` that are minimised over too, all rows together, from where
        they stand: one point only.
        """
        grid, device = image_places(columns) if self.smoothness else None, device_of(model)
        model.eval()
        batch = _BATCH.get(device.type, _BATCH["cpu"])
        offered = torch.tensor(points, device=device)
        with torch.no_grad():  # in parts: thousands of granted images have gigabytes of feature maps
            shown = torch.cat([model(part) for part in torch.split(offered, batch)])
        starts = min(self.starts, len(points))
        at_once = max(1, batch // starts)
        x, residual = np.zeros((len(embeddings), len(columns))), np.zeros(len(embeddings))
        blocks = range(0, len(embeddings), at_once)
        step = Steps(progress, "descent", len(blocks) * self.steps)
        for i in blocks:
            part = slice(i, i + at_once)
            h = torch.from_numpy(embeddings[part]).to(device)
            first = offered[_nearest(shown, h, starts)]
            ends, left = self._descended(model, h.repeat(starts, 1), first, grid, learned, step=step)
            x[part], residual[part] = _best(ends, left, starts)
        return x, residual

    def _descended(
        self,
        model: nn.Module,
        h: Tensor,
        first: Tensor,
        grid: Tensor | None,
        learned: Sequence[Tensor],
        *,
        step: Steps,
    ) -> tuple[Array, Array]:
        """Where Adam ends (n, d) from ``first``, and the residuals (n,); ``step`` counts."""
        x, sizes = first.requires_grad_(), (h**2).sum(dim=1)
        weights = self.smoothness * (sizes if self.smoothness_of == "embedding" else torch.ones_like(sizes))
        unit = sizes.mean().clamp_min(1e-30)  # of the loss: Adam adds 1e-8 to its gradient's size
        optimizer = torch.optim.Adam([x, *learned], lr=self.rate)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, self.steps)
        for _ in range(self.steps):
            optimizer.zero_grad()
            loss = ((model(x) - h) ** 2).sum()
            if grid is not None:
                loss = loss + weights @ total_variation(x[:, grid])
            torch.autograd.backward(loss / unit, inputs=[x, *learned])
            optimizer.step()
            schedule.step()
            if self.box:
                with torch.no_grad():
                    x.clamp_(0, 1)
            step()
        with torch.no_grad():
            return array(x), array((model(x) - h).norm(dim=1))


def _nearest(shown: Tensor, h: Tensor, starts: int) -> Tensor:
    """Which of ``shown`` (m, w) are nearest to each of ``h`` (n, w): (starts·n,), the nearest of every row
    first.
    """
    distances = torch.cdist(h, shown, compute_mode="donot_use_mm_for_euclid_dist")
    return distances.argsort(dim=1, stable=True)[:, :starts].T.reshape(-1)


def _best(ends: Array, left: Array, starts: int) -> tuple[Array, Array]:
    """The end of least residual of ``starts`` ends per row (starts·n, d), and that residual."""
    ends, left = ends.reshape(starts, -1, ends.shape[1]), left.reshape(starts, -1)
    best, rows = (left <= _TIE * left.min(axis=0)).argmax(axis=0), np.arange(left.shape[1])
    return ends[best, rows], left[best, rows]


def total_variation(images: Tensor) -> Tensor:
    """The sum of absolute differences of neighbouring pixels, each of (n, channels, height, width)."""
    return images.diff(dim=2).abs().sum(dim=(1, 2, 3)) + images.diff(dim=3).abs().sum(dim=(1, 2, 3))


def image_places(columns: Sequence[ColumnInfo]) -> Tensor | None:
    """The column of each pixel (channels, height, width); None unless ``columns`` are an image."""
    try:
        return torch.from_numpy(image_grid(columns))
    except ConfigError:  # no image: nothing to smooth
        return None
