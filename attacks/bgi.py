"""Black-box gradient inversion: the gradient of the shared part alone, behind a shadow of the private one.

FedAdOb's BGI. The shadow learns from granted rows and labels through the shared top, as that of ``bmi`` with
``learn = "top"``; then as ``dlg``, from granted rows.
"""

from collections.abc import Mapping
from typing import ClassVar, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vflens.attacks.helpers.gradients.granted import restored
from vflens.attacks.helpers.gradients.inversion_of_rounds import Descent, Optimizer
from vflens.attacks.helpers.gradients.rounds import RoundAttack, network_of
from vflens.attacks.helpers.networks.inversion import device_of
from vflens.attacks.helpers.networks.learning import Learner
from vflens.errors import KnowledgeError
from vflens.models.networks.generator import keyed
from vflens.plugins.declared import Declared
from vflens.plugins.views.horizontal import ServerView
from vflens.types import Array, Estimate, Knowledge, Phase


class _Known(NamedTuple):
    """Granted rows ``x`` (a, d) with their labels ``y`` int64 (a,)."""

    x: Array
    y: Array


class BlackBoxGradientInversion(Descent, Learner, RoundAttack):
    """min over G' of CE(F(G'(x_a)), y_a), F the shared top; then min over x of the distance of gradients in
    F, from granted rows of the same label. The bottom model is not read, even where it is shared.
    """

    needs: ClassVar[frozenset[Knowledge]] = RoundAttack.needs | {Knowledge.AUXILIARY, Knowledge.KNOWN_LABELS}
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN, Phase.DISCLOSE})
    exact: ClassVar[bool] = False

    gradients: Literal["round", "granted"] = Field(
        "round", description="that of the last round, whose rows have no order; or granted ones, row by row"
    )
    optimizer: Optimizer = Field("adam", description="as of dlg")
    probabilities: Literal["drawn", "granted"] = Field("granted", description="as of dlg")
    rate: float = Field(0.02, gt=0, allow_inf_nan=False, description="adam: its first step, as of dlg")
    penalty: float = Field(
        1e-2, ge=0, allow_inf_nan=False, description="weight of the shadow's squared parameters"
    )

    @property
    def unordered(self) -> bool:
        return self.gradients == "round"

    @property
    def estimated_round(self) -> Literal["last"] | None:
        """The last: in the first, bottom and top models are as they were drawn."""
        return "last" if self.unordered else None

    def declared(self) -> Declared:
        """What the class declares, whatever counts the labels."""
        return Declared(self.needs, self.phases, self.estimated_rows)

    def reconstruct(self, view: ServerView, *, rng: np.random.Generator) -> Estimate:
        """Columns (n, d); extra "distance" (n,); see :meth:`Descent.of_round`.

        Raises:
            KnowledgeError: no label of a granted row is known.
        """
        known, number = _known(view), view.round if self.unordered else view.rounds
        with keyed(rng):
            model = network_of(view, _top(view.parameters(number)))
        self._learn(view, model, known, rng)
        if self.unordered:
            gradient = _top(view.gradient(number))
            labels = self.labels(view, model, gradient, rng)
            first = self._first(labels[None], known, rng)
            return self.of_round(view, model, gradient, labels, rng, first=first)
        observed = _top(view.gradients())
        labels = restored(model, observed)
        first = self._first(labels[:, None], known, rng)
        return self.of_rows(view, model, observed, labels, rng, first=first)

    def _learn(self, view: ServerView, model: nn.Module, known: _Known, rng: np.random.Generator) -> None:
        """Fit the bottom of ``model`` to granted rows and labels."""
        bottom, device = model.get_submodule("bottom"), device_of(model)
        x, y = (torch.tensor(part, device=device) for part in known)

        def loss(batch: Array) -> Tensor:
            penalty: Tensor = sum(((p**2).sum() for p in bottom.parameters()), start=x.new_zeros(()))
            return cross_entropy(model(x[batch]), y[batch]) + self.penalty * penalty

        model.eval()
        self.fit(bottom, loss, len(x), rng, view.progress)

    def _first(self, labels: Array, known: _Known, rng: np.random.Generator) -> Array:
        """For ``labels`` (m, n) so many rows (m, starts, n, d), drawn from the known ones of the same label;
        of a label that none has, from all.
        """
        drawn = np.empty((len(labels), self.starts, labels.shape[1], known.x.shape[1]))
        for place in np.ndindex(labels.shape):
            own = known.x[known.y == labels[place]]
            drawn[place[0], :, place[1]] = rng.choice(own if len(own) else known.x, self.starts)
        return drawn


def _known(view: ServerView) -> _Known:
    (rows, features), (labelled, classes) = view.auxiliary(), view.known_labels()
    _, places, labels = np.intersect1d(rows, labelled, return_indices=True)
    if not len(places):
        raise KnowledgeError(f"{view.target!r} granted no label of a granted row: bgi learns from both")
    return _Known(features[places], classes[labels])


def _top(named: Mapping[str, Array]) -> dict[str, Array]:
    """What of it is of the top model."""
    return {name: array for name, array in named.items() if name.startswith("top.")}
