"""An audit of a network: white-box inversion of what it releases, with the other inputs known.

The adversary has the weights. From probabilities it computes logits, up to a constant under a softmax; other
outputs are taken as they leave, as those of a bottom model.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import torch
from torch import Tensor, nn

from vflens.attacks.wmi import WhiteBoxInversion
from vflens.experiments.audit.bench import Answer
from vflens.experiments.audit.given import Joint, Reading
from vflens.experiments.weights.network import Graph
from vflens.types import Array, Progress

_RELEASED = {"Softmax": "probabilities", "Sigmoid": "probabilities", "": "outputs"}


class Rebuilt(nn.Module):
    """``network`` of the party's columns in [0, 1] (n, d), at the ``row`` of all inputs (D,).

    Its outputs (n, w) are what an adversary computes from the release: under a softmax their mean is 0.
    """

    def __init__(self, network: Graph, mine: Array, bounds: Array, row: Array) -> None:
        super().__init__()
        self._network, self._mine = network, torch.from_numpy(mine)
        self._low, self._width = torch.from_numpy(bounds[:, 0]), torch.from_numpy(np.ptp(bounds, axis=1))
        self._row = torch.from_numpy(row)
        kept = (
            nn.Parameter(torch.from_numpy(c.copy()), requires_grad=False) for c in network.constants.values()
        )
        self.constants = nn.ParameterList(kept)

    def forward(self, x: Tensor) -> Tensor:
        """See the class."""
        inputs = self._row.expand(len(x), -1).index_copy(1, self._mine, self._low + x * self._width)
        values = dict(zip(self._network.constants, self.constants, strict=True))
        values[self._network.start] = inputs
        for step in self._network.steps:
            values[step.output] = _OPERATIONS[step.op](*(values[name] for name in step.inputs))
        last: Tensor = values[self._network.steps[-1].output]
        return last - last.mean(dim=1, keepdim=True) if self._network.end == "Softmax" else last


_OPERATIONS: Mapping[str, Callable[..., Tensor]] = {
    "MatMul": torch.matmul,
    "Add": torch.add,
    "Relu": torch.relu,
    "Sigmoid": torch.sigmoid,
    "Softmax": lambda x: torch.softmax(x, dim=-1),
}


def attack_network(network: Graph, joint: Joint, progress: Progress) -> Reading:
    """The columns that white-box inversion finds from each row's release."""
    alone = network.width == len(joint.mine)
    x, others = joint.bench.subject.x, joint.x.astype(np.float64)
    rows = len(x)
    attack, rng = WhiteBoxInversion(), joint.bench.plan.rng("inversion")
    points = rng.random((attack.starts, x.shape[1]))
    points[:2] = [[0.5], [0.0]]
    found, residuals = np.zeros((rows, x.shape[1])), np.zeros(rows)
    for part in [slice(0, rows)] if alone else [slice(i, i + 1) for i in range(rows)]:
        model = Rebuilt(network, joint.mine, joint.bounds, others[part.start])
        with torch.no_grad():
            released = model(torch.from_numpy(x[part])).numpy()
        columns = joint.bench.subject.columns
        found[part], residuals[part] = attack.ends(released, columns, model, points)
        progress("rows attacked", part.stop, rows)
    answer = Answer("wmi", joint.bench.rows, found)
    return Reading(_RELEASED[network.end], answer, {"residual": float(np.median(residuals))})
