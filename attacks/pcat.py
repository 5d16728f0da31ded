"""PCAT: pseudo-clients, which other people's rows taught to serve the own top model (Gao and Zhang, 2023).

It follows the protocol: the target is asked nothing, and grants nothing.
"""

from typing import ClassVar, Literal

import numpy as np
import torch
from pydantic import Field
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from vflens.attacks._decoder import decoder
from vflens.attacks._inversion import array, device_of, target_model
from vflens.attacks._learning import Learner
from vflens.attacks._own_top import top_beside
from vflens.attacks._transfer import standardised, transferable
from vflens.attacks.inverse_network import InverseNetwork
from vflens.models.networks.generator import keyed
from vflens.plugins.attack import Attack
from vflens.plugins.steps import Steps
from vflens.plugins.views.vertical import AdversaryView
from vflens.types import Array, Estimate, Knowledge, statuses


class Pcat(Attack, Learner):
    """Bottom models G' learn min CE(F(G'(x)), y) on public rows x of labels y, through the own top model F as
    it gives predictions; a decoder learns x from G'(x), and is given the target's embeddings.

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
    learner: Literal["lbfgs", "adam"] = Field(
        "adam", description="Adam on batches of the public rows; or L-BFGS on all of them at once"
    )
    learning_steps: int = Field(
        60, ge=1, le=1_000_000, description="passes of Adam over the public rows, or steps of L-BFGS"
    )
    learning_rate: float = Field(
        0.005, gt=0, allow_inf_nan=False, description="adam: its rate, which falls to 0"
    )

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
            pseudo = target_model(view)
        own, labels = view.own_public()
        logits, x = top_beside(view, lambda: own), torch.tensor(view.public(), device=device_of(pseudo))
        y = torch.tensor(labels, device=x.device)

        def loss(batch: Array) -> Tensor:
            return cross_entropy(logits(pseudo(x[batch]), batch), y[batch])

        self.fit(pseudo, loss, len(x), rng, view.progress)
        with torch.no_grad():
            return pseudo, array(pseudo(x))
