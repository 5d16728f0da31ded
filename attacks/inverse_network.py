"""The inverse network: a decoder from embeddings to rows, learned from granted rows (He et al., 2019, §IV).

It needs no model of the target: only granted rows, their embeddings in training, and those of other rows.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from vflens.attacks.helpers.networks.decoder import decoder
from vflens.attacks.helpers.networks.embeddings import EmbeddingsAttack
from vflens.attacks.helpers.networks.exchanges import keyless
from vflens.attacks.helpers.networks.inversion import array, target_model
from vflens.attacks.helpers.networks.learning import batches
from vflens.attacks.helpers.networks.passports import channels
from vflens.errors import KnowledgeError
from vflens.models.networks.device import placed
from vflens.models.networks.generator import keyed
from vflens.plugins.steps import Steps
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, Phase, statuses

_PENALTIES = (1e-10, *np.logspace(-6, 1, 8))  # of the linear map, in units of the largest eigenvalue


class InverseNetwork(EmbeddingsAttack):
    """x̂ = A h + a + D(h), into the box: least squares with the penalty that suits held-out rows best, then a
    decoder D of what is left, by Adam.

    Of the granted rows ``held_out`` are not learned from; the state that errs least on them is kept. With a
    linear bottom model A is its inverse and D stays 0.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.EMBEDDINGS, Knowledge.AUXILIARY, Knowledge.ARCHITECTURE, Knowledge.METADATA}
    )
    phases: ClassVar[frozenset[Phase]] = frozenset(Phase)
    sent_in: ClassVar[Literal["first", "last"]] = "last"  # the granted pairs are those of the last parameters

    learning_steps: int = Field(
        100, ge=0, le=1_000_000, description="passes of Adam over the granted rows; 0: the linear map alone"
    )
    learning_rate: float = Field(0.002, gt=0, allow_inf_nan=False, description="Adam's rate")
    learning_batch: int = Field(32, ge=1, le=1_000_000, description="rows in a batch")
    held_out: float = Field(0.2, gt=0, lt=1, description="share of the granted rows that only judges")
    hidden: int = Field(
        32,
        ge=1,
        le=65536,
        description="channels between the two transposed convolutions; 8 times as many units "
        "of the layer between two linear ones where the embedding is no image",
    )
    passport: Literal["none", "moments"] = Field(
        "none",
        description="embeddings as they are; or those of each exchange without the scale and shift of a "
        "channel",
    )

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d); see :meth:`vflens.plugins.attack.Attack.reconstruct`."""
        if not isinstance(view, AdversaryView) and self.passport != "none":
            raise KnowledgeError("a server has no exchanges of embeddings: leave passport out")
        rows, features = view.auxiliary()
        with keyed(rng):
            model = target_model(view)
            if self.passport == "moments":
                h, granted = keyless(view, rows, channels(model))
            else:
                h, granted = view.embeddings(), view.embeddings(rows, Phase.TRAIN)
            learned = decoder(model, view.metadata(), self.hidden)
        step = Steps(view.progress, "learning", self.learning_steps)
        x = self.decoded(h, granted, features, learned.to(placed(view.device)), rng, step=step).clip(0, 1)
        return Estimate(view.target, view.rows, x, statuses(len(x)))

    def decoded(
        self,
        h: Array,
        granted: Array,
        features: Array,
        learned: nn.Module,
        rng: np.random.Generator,
        *,
        step: Steps,
    ) -> Array:
        """The rows (N, d) of embeddings ``h`` (N, w), from granted ones (m, w) and their rows (m, d)."""
        order = rng.permutation(len(granted))
        held_out = max(1, round(self.held_out * len(order)))
        judges, taught = np.split(order, [min(held_out, len(order) - 1)])  # at least one row is learned from
        judges = judges if len(judges) else taught
        center, size = granted[taught].mean(axis=0), max(float(granted[taught].std()), 1e-12)
        h, granted = (h - center) / size, (granted - center) / size
        linear = _linear(granted, features, taught, judges)
        device = next(learned.parameters()).device
        z, left = (torch.tensor(a, device=device) for a in (granted, features - linear(granted)))
        self._learn(learned, (z, left), (taught, judges), rng, step)
        with torch.no_grad():
            decoded: Array = linear(h) + array(learned(torch.tensor(h, device=device)))
        return decoded

    def _learn(
        self,
        learned: nn.Module,
        pairs: tuple[Tensor, Tensor],
        rows: tuple[Array, Array],
        rng: np.random.Generator,
        step: Steps,
    ) -> None:
        """Adam on those ``pairs`` of embeddings (m, w) and targets (m, d) that are taught, the first of
        ``rows``; the state that errs least on the judges, the second, stays. ``step`` counts passes.
        """
        (z, left), (taught, judges) = pairs, rows

        def error(rows: Array) -> Tensor:
            squares: Tensor = (learned(z[rows]) - left[rows]) ** 2
            return squares.mean()

        optimizer = torch.optim.Adam(learned.parameters(), lr=self.learning_rate)
        least, kept = float(array(error(judges))), deepcopy(learned.state_dict())
        for _ in range(self.learning_steps):
            for batch in batches(len(taught), self.learning_batch, 1, rng):
                optimizer.zero_grad()
                torch.autograd.backward(error(taught[batch]))
                optimizer.step()
            with torch.no_grad():
                found = float(array(error(judges)))
            if found < least:
                least, kept = found, deepcopy(learned.state_dict())
            step()
        learned.load_state_dict(kept)


def _linear(z: Array, x: Array, taught: Array, judges: Array) -> Callable[[Array], Array]:
    """The penalised least squares of ``x`` (m, d) in ``z`` (m, w) of the ``taught`` rows, with the penalty
    that errs least on the ``judges``.
    """
    mean = x[taught].mean(axis=0)
    u, s, v = np.linalg.svd(z[taught], full_matrices=False)
    seen = u.T @ (x[taught] - mean)
    maps = [v.T @ ((s / (s**2 + p * max(s[0] ** 2, 1e-30)))[:, None] * seen) for p in _PENALTIES]
    best = min(maps, key=lambda m: float(((z[judges] @ m + mean - x[judges]) ** 2).sum()))
    return lambda h: h @ best + mean
