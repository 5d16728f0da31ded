"""Rows from the sum of all updates: the first model of a malicious server sorts rows into bins.

Fowl et al., 2022 (ICLR, "Robbing the Fed"), §4.
"""

from collections.abc import Mapping
from typing import ClassVar

import numpy as np
from pydantic import Field
from torch import nn

from vflens.attacks.helpers.gradients.rounds import network_of
from vflens.attacks.helpers.gradients.whole import row_slopes, whole_network
from vflens.errors import KnowledgeError
from vflens.numerics.gradients.imprint import bin_means, equal_bins
from vflens.plugins.declared import Audited
from vflens.plugins.malicious import PlantingAttack
from vflens.plugins.views.horizontal import Agreed, Parameters, ServerView
from vflens.types import Array, Estimate, Knowledge, Phase, RowStatus, Setting, statuses

_ALIKE = 1e-4  # of a bin's gradient, relative: what rounding changes
_GAIN = 1e-3  # of the measure: an update is then large beside its parameters, and float32 rounds little of it


class Imprint(PlantingAttack):
    """Every unit of the first layer measures the mean of a row's columns, from a threshold of its own on. A
    bin between two thresholds with one row shows it exactly in the sum of all clients, masked or not.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.GRADIENTS, Knowledge.PARAMETERS, Knowledge.ARCHITECTURE, Knowledge.METADATA}
    )
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN})
    settings: ClassVar[frozenset[Setting]] = frozenset({Setting.HORIZONTAL})
    rowwise: ClassVar[bool] = False
    audited: ClassVar[Audited | None] = None

    mean: float = Field(
        0.5, ge=0, le=1, description="what the server believes of the mean of a row's columns: its mean"
    )
    deviation: float | None = Field(
        None,
        gt=0,
        le=1,
        description="the same: its standard deviation; by default that of independent uniform columns",
    )

    @property
    def unordered(self) -> bool:
        return True

    @property
    def pooled(self) -> bool:
        return True

    def check_whole(self, model: nn.Module) -> None:
        _layers(model)

    def planted(self, federation: Agreed, parameters: Parameters) -> dict[str, Array]:
        network = federation.model.network()
        first, second = _layers(whole_network(network, federation.columns, federation.n_classes))
        units, columns = parameters[f"{first}.weight"].shape
        deviation = self.deviation or (12 * columns) ** -0.5
        behind = parameters[f"{second}.weight"]
        made = {
            f"{first}.weight": np.full((units, columns), _GAIN / columns),
            f"{first}.bias": -_GAIN * equal_bins(self.mean, deviation, units),
            f"{second}.weight": np.repeat(behind[:, :1], units, axis=1),
        }
        return {n: made[n].astype(value.dtype) if n in made else value for n, value in parameters.items()}

    def reconstruct(self, view: ServerView, *, rng: np.random.Generator) -> Estimate:
        """Columns (n, d) of the rows of all clients; extra "unit" (n,): Σ g of the bin of each, else 0.

        A bin whose Σ g is that of its own mean, as some class, holds one row: it is OK.
        """
        gradient, shares = view.mean_gradient(view.round)
        model = network_of(view, view.parameters(view.round))
        first, _ = _layers(model)
        shown, sizes = bin_means(gradient[f"{first}.weight"], gradient[f"{first}.bias"])
        alone = _alone(row_slopes(model, first, shown, view.n_classes)[:, :, 0], sizes, shares)
        order = np.lexsort((-np.abs(sizes), ~alone))[: len(view.rows)]
        values = np.tile(
            shown.mean(axis=0) if len(shown) else np.full(shown.shape[1], 0.5), (len(view.rows), 1)
        )
        status, unit = statuses(len(values), RowStatus.AMBIGUOUS), np.zeros(len(values))
        places = slice(len(order))
        values[places], unit[places] = shown[order], sizes[order]
        status[places] = np.where(alone[order], RowStatus.OK, RowStatus.AMBIGUOUS)
        return Estimate(view.target, view.rows, values, status, extras={"unit": unit})


def _layers(model: nn.Module) -> tuple[str, str]:
    """The names of the first linear layer and of the one behind its ReLU.

    Raises:
        KnowledgeError: the model does not begin so.
    """
    leaves = [(name, m) for name, m in model.named_modules() if not list(m.children())]
    kinds = [type(m) for _, m in leaves]
    if kinds[:3] != [nn.Linear, nn.ReLU, nn.Linear] or nn.Dropout in kinds:
        raise KnowledgeError(
            "the model does not begin with a linear layer, a ReLU and a linear layer, or it has dropout: "
            "train an mlp without dropout"
        )
    return leaves[0][0], leaves[2][0]


def _alone(slopes: Array, sizes: Array, shares: Mapping[str, float]) -> Array:
    """Whether each bin (r,) has the gradient of one row, of some class and some client."""
    due = slopes[:, :, None] * np.unique([*shares.values()])
    return np.asarray((np.abs(due - sizes[:, None, None]) <= _ALIKE * np.abs(due)).any(axis=(1, 2)))
