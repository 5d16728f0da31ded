"""Passive model completion: the party's own bottom model and a fresh head, from a few granted labels.

Fu et al., 2022; FedAdOb's PMC. The bottom model has learned to separate classes; a few labels identify them.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from vflens.plugins.attack import Attack
from vflens.plugins.view import AdversaryView
from vflens.types import Estimate, Knowledge, Phase, statuses


class PassiveModelCompletion(Attack):
    """A linear head on ReLU(h), learned from the granted labels, then also from its own sure guesses.

    h are the embeddings that the party's own bottom model, as the federation trained it, gives in
    predictions: with the party's own passport. Pseudo-labels are those guesses whose probability reaches
    ``sure``; they count as much as the granted labels do.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.OWN_FEATURES, Knowledge.KNOWN_LABELS})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.DISCLOSE})
    rowwise: ClassVar[bool] = False

    estimates = "labels"
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN, Phase.PREDICT})

    steps: int = Field(
        300, ge=1, le=1_000_000, description="steps of Adam with granted labels; as many again with guesses"
    )
    rate: float = Field(0.02, gt=0, allow_inf_nan=False, description="learning rate of the head")
    penalty: float = Field(1e-3, ge=0, allow_inf_nan=False, description="weight of the squared weights")
    sure: float = Field(0.95, gt=0, le=1, description="probability from which on a guess is learned from")

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Beliefs (N, k); see :meth:`vflens.plugins.attack.Attack.reconstruct`."""
        rows, labels = view.known_labels()
        known, unknown = (
            torch.relu(torch.tensor(view.own("embeddings", r), dtype=torch.float64))
            for r in (rows, view.rows)
        )
        # Of all rows: a unit that is 0 on the granted ones would have no scale, and dominate the others.
        scale = torch.cat([known, unknown]).std(dim=0, unbiased=False).clamp_min(1e-6)
        known, unknown = known / scale, unknown / scale
        head = nn.Linear(known.shape[1], view.n_classes, dtype=torch.float64)
        nn.init.zeros_(head.weight), nn.init.zeros_(head.bias)
        self._learn(head, known, torch.tensor(labels))
        with torch.no_grad():
            probability, guess = torch.softmax(head(unknown), dim=1).max(dim=1)
        trusted = probability >= self.sure
        if trusted.any():
            self._learn(head, known, torch.tensor(labels), (unknown[trusted], guess[trusted]))
        with torch.no_grad():
            beliefs = torch.softmax(head(unknown), dim=1).numpy()
        return Estimate(view.target, view.rows, beliefs, statuses(len(view.rows)))

    def _learn(
        self, head: nn.Linear, h: Tensor, y: Tensor, guesses: tuple[Tensor, Tensor] | None = None
    ) -> None:
        optimizer = torch.optim.Adam(head.parameters(), lr=self.rate)
        for _ in range(self.steps):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(head(h), y) + self.penalty * (head.weight**2).sum()
            if guesses is not None:
                loss = loss + nn.functional.cross_entropy(head(guesses[0]), guesses[1])
            torch.autograd.backward(loss)
            optimizer.step()
