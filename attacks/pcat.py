"""PCAT: pseudo-clients, which other people's rows taught to serve the own top model (Gao and Zhang, 2023).

It follows the protocol: the target is asked nothing, and grants nothing.
"""

from dataclasses import replace
from typing import ClassVar, Literal, Self

import numpy as np
import torch
from pydantic import Field, model_validator
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vflens.attacks.helpers.networks.decoder import decoder
from vflens.attacks.helpers.networks.inversion import array, device_of, target_model
from vflens.attacks.helpers.networks.learning import Learner, descend, endless
from vflens.attacks.helpers.networks.own_top import OwnTop, top_beside
from vflens.attacks.helpers.networks.transfer import standardised, transferable
from vflens.attacks.inverse_network import InverseNetwork
from vflens.models.networks.generator import keyed
from vflens.plugins.attack import Attack
from vflens.plugins.declared import Declared
from vflens.plugins.steps import Steps
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, Phase, Point, statuses


class Pcat(Attack, Learner):
    """Bottom models G' learn min CE(F(G'(x)), y) on public rows x of labels y, through the own top model F as
    it gives predictions; a decoder learns x from G'(x), and is given the target's embeddings.

    In the paper G' takes a step in each step of training, through F of that step (``along``): F is learned
    again from the recorded embeddings and the own labels, one step a message.

    The paper has one G' and a network as decoder. With more, the decoder is linear, learns from all of them
    in standardised channels, and has the penalty that holds best for one that it did not see.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {
            *(Knowledge.EMBEDDINGS, Knowledge.PUBLIC, Knowledge.OWN_FEATURES),  # with these goes the own top
            *(Knowledge.ARCHITECTURE, Knowledge.METADATA),
        }
    )
    rowwise: ClassVar[bool] = False
    exact: ClassVar[bool] = False

    pseudo_clients: int = Field(5, ge=1, le=1000, description="bottom models that learn; 1: the paper's form")
    along: bool = Field(
        False, description="G' learns along with F, step by step, as in the paper; else when F is trained"
    )
    learner: Literal["lbfgs", "adam"] = Field(
        "adam", description="Adam on batches of the public rows; or L-BFGS on all of them at once"
    )
    learning_steps: int = Field(
        60, ge=1, le=1_000_000, description="passes of Adam over the public rows, or steps of L-BFGS"
    )
    learning_rate: float = Field(
        0.005, gt=0, allow_inf_nan=False, description="adam: its rate, which falls to 0"
    )

    @model_validator(mode="after")
    def _settings_are_read(self) -> Self:
        for name in ("learner", "learning_steps") if self.along else ():
            if (value := getattr(self, name)) != type(self).model_fields[name].default:
                raise ValueError(f"{name} = {value!r}: along = true does not read it, leave it out")
        return self

    def declared(self) -> Declared:
        """With ``along`` also the embeddings of training and the own labels."""
        found = super().declared()
        if not self.along:
            return found
        needs, phases = found.needs | {Knowledge.OWN_LABELS}, found.phases | {Phase.TRAIN}
        return replace(found, needs=needs, phases=phases)

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Columns (N, d); see :meth:`vflens.plugins.attack.Attack.reconstruct`."""
        found = self._by_the_paper(view, rng) if self.pseudo_clients == 1 else self._by_many(view, rng)
        return Estimate(view.target, view.rows, found.clip(0, 1), statuses(len(found)))

    def _by_many(self, view: AdversaryView, rng: np.random.Generator) -> Array:
        learned = [standardised(self._pseudo_client(view, rng)[1]) for _ in range(self.pseudo_clients)]
        return transferable(learned, view.public())(standardised(view.embeddings()))

    def _by_the_paper(self, view: AdversaryView, rng: np.random.Generator) -> Array:
        """The decoder is that of :class:`vflens.attacks.inverse_network.InverseNetwork`."""
        pseudo, embedded = self._pseudo_client(view, rng)
        inverse = InverseNetwork()
        with keyed(rng):
            network = decoder(pseudo, view.metadata(), inverse.hidden).to(device_of(pseudo))
        step = Steps(view.progress, "decoding", inverse.learning_steps)
        return inverse.decoded(view.embeddings(), embedded, view.public(), network, rng, step=step)

    def _pseudo_client(self, view: AdversaryView, rng: np.random.Generator) -> tuple[nn.Module, Array]:
        """A new bottom model that learned to serve the own top model, and its embeddings (m, w) of the public
        rows.
        """
        with keyed(rng):
            pseudo = target_model(view).eval()
        x = torch.tensor(view.public(), device=device_of(pseudo))
        (self._along if self.along else self._afterwards)(view, pseudo, x, rng)
        with torch.no_grad():
            return pseudo, array(pseudo(x))

    def _afterwards(
        self, view: AdversaryView, pseudo: nn.Module, x: Tensor, rng: np.random.Generator
    ) -> None:
        own, labels = view.own_public()
        logits, y = top_beside(view, lambda: own), torch.tensor(labels, device=x.device)

        def loss(batch: Array) -> Tensor:
            return cross_entropy(logits(pseudo(x[batch]), batch), y[batch])

        self.fit(pseudo, loss, len(x), rng, view.progress)

    def _along(self, view: AdversaryView, pseudo: nn.Module, x: Tensor, rng: np.random.Generator) -> None:
        """F and G' take turns, as they would have in training."""
        with keyed(rng):
            top = OwnTop(view).eval()
        own, labels = view.own_public()
        sides = [torch.optim.Adam(side.parameters(), lr=self.learning_rate) for side in (top, pseudo)]
        messages = [*view.batches(Point.EMBEDDING, Phase.TRAIN)]
        places, step = (
            endless(len(x), self.learning_batch, rng),
            Steps(view.progress, "learning", len(messages)),
        )
        for (_, rows, h), batch in zip(messages, places, strict=False):
            sent = torch.tensor(h, dtype=torch.float64, device=x.device)
            beside = view.own("features", rows) if view.own_columns() else None
            descend(sides[0], _loss(top, sent, beside, view.own("labels", rows)))
            descend(sides[1], _loss(top, pseudo(x[batch]), own[batch], labels[batch]))
            step()


def _loss(top: OwnTop, h: Tensor, own: Array | None, labels: Array) -> Tensor:
    beside = None if top.bottom is None or own is None else top.beside(own)
    return cross_entropy(top(h, beside), torch.tensor(labels, device=h.device))
