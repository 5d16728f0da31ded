"""Passive model completion: the party's own bottom model and a fresh head, from a few granted labels.

Fu et al., 2022; FedAdOb's PMC. The bottom model has learned to separate classes; a few labels identify them.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn

from vflens.attacks.helpers.networks.mixmatch import mixmatch
from vflens.errors import KnowledgeError
from vflens.models.networks.generator import keyed
from vflens.plugins.attack import Attack
from vflens.plugins.declared import Stated
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, Phase, statuses

_AT_ONCE = 4096  # rows of the completed model's forward pass: its memory has a bound


class PassiveModelCompletion(Attack):
    """Its bottom model as the federation trained it, with its own passport, completed by a linear head.

    By default the bottom model stays as it is: the head is learned on ReLU(h) from the granted labels, then
    also from its own sure guesses. With ``fine_tune`` head and bottom model are learned together by MixMatch,
    from the granted labels and all training rows of the party: the attack as Fu et al. print it.

    ``untrained`` is the control: what it finds, labels and own columns tell without the training.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset({Knowledge.OWN_FEATURES, Knowledge.KNOWN_LABELS})
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.DISCLOSE})
    rowwise: ClassVar[bool] = False
    stated: ClassVar[Stated | None] = Stated(fits_labels=True)

    estimates = "labels"
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.TRAIN, Phase.PREDICT})

    steps: int = Field(
        300, ge=1, le=1_000_000, description="steps of Adam with granted labels; as many again with guesses"
    )
    rate: float = Field(0.02, gt=0, allow_inf_nan=False, description="learning rate of the head")
    penalty: float = Field(1e-3, ge=0, allow_inf_nan=False, description="weight of the squared weights")
    sure: float = Field(0.95, gt=0, le=1, description="probability from which on a guess is learned from")
    fine_tune: bool = Field(
        False, description="learn the bottom model on, by MixMatch; the settings above are then not used"
    )
    fine_tune_steps: int = Field(
        5120, ge=1, le=1_000_000, description="steps of MixMatch; Fu et al. take 5 times 1,024"
    )
    untrained: bool = Field(
        False, description="begin from a bottom model of fresh weights: the control, which no training told"
    )

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Beliefs (N, k); see :meth:`vflens.plugins.attack.Attack.reconstruct`."""
        rows, labels = view.known_labels()
        complete = self._fine_tuned if self.fine_tune else self.with_head
        beliefs = complete(view, rows, torch.tensor(labels), rng)
        return Estimate(view.target, view.rows, beliefs, statuses(len(view.rows)))

    def with_head(self, view: AdversaryView, rows: Array, labels: Tensor, rng: np.random.Generator) -> Array:
        """Beliefs (N, k) of a head that learned from ``rows`` (m,) and their int64 ``labels`` (m,)."""
        known, unknown = (torch.relu(h) for h in self._embeddings(view, (rows, view.rows), rng))
        # Of all rows: a unit that is 0 on the granted ones would have no scale, and dominate the others.
        scale = torch.cat([known, unknown]).std(dim=0, unbiased=False).clamp_min(1e-6)
        known, unknown = known / scale, unknown / scale
        head = nn.Linear(known.shape[1], view.n_classes, dtype=torch.float64)
        nn.init.zeros_(head.weight), nn.init.zeros_(head.bias)
        self._learn(head, known, labels)
        with torch.no_grad():
            probability, guess = torch.softmax(head(unknown), dim=1).max(dim=1)
        trusted = probability >= self.sure
        if trusted.any():
            self._learn(head, known, labels, (unknown[trusted], guess[trusted]))
        with torch.no_grad():
            return torch.softmax(head(unknown), dim=1).numpy()

    def _embeddings(
        self, view: AdversaryView, rows: Sequence[Array], rng: np.random.Generator
    ) -> list[Tensor]:
        """The embeddings of each set of rows, in float64."""
        if not self.untrained:
            return [torch.tensor(view.own("embeddings", r), dtype=torch.float64) for r in rows]
        bottom = view.learned(self, lambda: _fresh(view.own_model(), rng)).eval()
        place = next(bottom.parameters())
        with torch.no_grad():
            return [bottom(_inputs(view, r, place)).to("cpu", torch.float64) for r in rows]

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

    def _fine_tuned(
        self, view: AdversaryView, rows: Array, labels: Tensor, rng: np.random.Generator
    ) -> Array:
        model = view.learned(self, lambda: self._completed(view, rows, labels, rng))
        place = next(model.parameters())
        beliefs = [torch.zeros(0, view.n_classes, dtype=torch.float64)]
        with torch.no_grad():
            for i in range(0, len(view.rows), _AT_ONCE):
                logits = model(_inputs(view, view.rows[i : i + _AT_ONCE], place))
                beliefs.append(torch.softmax(logits.to("cpu", torch.float64), dim=1))
        return torch.cat(beliefs).numpy()

    def _completed(
        self, view: AdversaryView, rows: Array, labels: Tensor, rng: np.random.Generator
    ) -> nn.Module:
        """The bottom model and a head of batch norm, ReLU and a linear layer that begins at 0, learned."""
        bottom = _fresh(view.own_model(), rng) if self.untrained else view.own_model()
        place = next(bottom.parameters())
        x, trained = _inputs(view, rows, place), view.training_rows

        def unlabelled(n: int) -> Tensor:
            return _inputs(view, trained[rng.integers(len(trained), size=n)], place)

        with torch.no_grad():
            width = bottom(x[:1]).shape[1]
        norm, head = nn.BatchNorm1d(width), nn.Linear(width, view.n_classes)
        nn.init.zeros_(head.weight), nn.init.zeros_(head.bias)
        model = nn.Sequential(bottom, norm, nn.ReLU(), head).to(place)
        with keyed(rng):  # dropout draws
            labelled = x, labels.to(x.device)
            return mixmatch(
                model, labelled, unlabelled, steps=self.fine_tune_steps, rng=rng, progress=view.progress
            )


def _fresh(bottom: nn.Module, rng: np.random.Generator) -> nn.Module:
    """``bottom`` with the weights of a model that has seen no row.

    Raises:
        KnowledgeError: a layer cannot begin anew.
    """
    with keyed(rng):
        for module in bottom.modules():
            if callable(reset := getattr(module, "reset_parameters", None)):
                reset()
            elif [*module.parameters(recurse=False)]:
                kind = type(module).__name__
                raise KnowledgeError(f"a {kind} has no reset_parameters: add it, or leave untrained out")
    return bottom


def _inputs(view: AdversaryView, rows: Array, place: Tensor) -> Tensor:
    """The party's own ``rows``, where and in the precision in which ``place`` is."""
    return torch.as_tensor(view.own("features", rows)).to(place)
