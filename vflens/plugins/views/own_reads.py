"""What the adversary's party owns itself: reads of its data and of its part of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from vflens.array import in_unit
from vflens.errors import KnowledgeError
from vflens.plugins.views.reads import CheckedReads
from vflens.types import Array, Knowledge

if TYPE_CHECKING:
    from torch.nn import Module

_KNOWLEDGE = {
    "features": Knowledge.OWN_FEATURES,
    "embeddings": Knowledge.OWN_FEATURES,
    "labels": Knowledge.OWN_LABELS,
    "parameters": Knowledge.PARAMETERS,
}
SENDING = "sending/"  #: begins the names of what an attack that sends keeps
AGAIN = "again"  #: the row at which the person of each row comes back
NETWORK = "network/"  #: begins the names of the own part of a split network


class OwnReads(CheckedReads):
    """:class:`CheckedReads`, and what ``party`` owns: arrays by name; ``own_model`` copies its bottom."""

    def __init__(
        self, *, own: Mapping[str, Array], own_model: Callable[[], Module] | None, **received: Any
    ) -> None:
        super().__init__(**received)
        self._own, self._own_model = own, own_model

    def own(self, name: str, rows: Array | None = None) -> Array:
        """ "features" (N, d), "labels" (N,) or "embeddings" (N, w) of ``rows``, or the "parameters" (k, d) of
        the party itself.

        ``rows`` are those of the view unless others of its own are asked for. A passive party's features are
        its columns as they are, not as its batches leave it: its masks, such as InstaHide's, hide no row from
        itself. Its embeddings are those that its trained model gives in predictions, of training rows too:
        with its own passport and masks. The active party's features are those of its predictions, masked.

        Raises:
            KnowledgeError: the attack did not declare it, or the party has none.
            PluginError: ``rows`` are no positions of the aligned order.
        """
        if name not in _KNOWLEDGE:
            raise KnowledgeError(f"own({name!r}): a party owns {sorted(_KNOWLEDGE)}")
        self._check(_KNOWLEDGE[name])
        if name not in self._own:
            holder = ": a passive party of a split network has them" if name == "embeddings" else ""
            raise KnowledgeError(f"party {self.party!r} has no {name} of its own{holder}")
        found = self._own[name]
        return found if name == "parameters" else in_unit(found[self._asked(rows, len(found))])

    def again(self, rows: Array) -> Array:
        """Where the people of ``rows`` int32 (n,) are predicted: as those who come back, else in ``rows``."""
        return self._own[AGAIN][rows] if AGAIN in self._own else rows

    def owned(self) -> Iterator[str | Array]:
        """All that the party owns, array by array, and the parameters of its own bottom model."""
        for name, array in sorted(self._own.items()):
            yield name
            yield array
        if self._own_model is not None:
            with suppress(KnowledgeError):  # it has none: then an attack gets none
                yield from (t.detach().cpu().numpy() for t in self._own_model().state_dict().values())

    def own_logits(self, rows: Array | None = None) -> Array:
        """What the own columns add to the logits (N, k) of ``rows``, as in :meth:`own`, without a bias.

        Raises:
            KnowledgeError: the attack did not declare its own features, or the party has no such parameters.
            PluginError: ``rows`` are no positions of the aligned order.
        """
        features = self.own("features", rows)
        if "parameters" not in self._own:
            raise KnowledgeError(f"party {self.party!r} has no parameters of its own")
        return features @ self._own["parameters"].T

    def own_model(self) -> Module:
        """A new copy of the passive party's own trained bottom model, to learn on with: (n, d) → (n, w), its
        own passport included. Own "features" become own "embeddings" where no defence masks its batches.

        Raises:
            KnowledgeError: the attack did not declare OWN_FEATURES, or the party has no such model.
        """
        self._check(Knowledge.OWN_FEATURES)
        if self._own_model is None:
            raise KnowledgeError(
                f"party {self.party!r} has no bottom model of its own: a passive party of a split network has"
            )
        return self._own_model()

    def own_network(self) -> Mapping[str, Array]:
        """The active party's own top and bottom models as they give predictions: parameters by part and name,
        "top.0.weight".

        A passport of its own is folded into its layer: γ into the weights, β into the bias.

        Raises:
            KnowledgeError: the attack did not declare its own features, or the party has no such network.
        """
        self._check(Knowledge.OWN_FEATURES)
        found = {n.removeprefix(NETWORK): a for n, a in self._own.items() if n.startswith(NETWORK)}
        if not found:
            raise KnowledgeError(
                f"party {self.party!r} has no top model of its own that is the registered one but for a "
                "passport: choose another way to learn, or train a top model without other defences inside"
            )
        return found

    def sending(self) -> Mapping[str, Array]:
        """What the attack's own sending part kept at the end of training, by name.

        Raises:
            KnowledgeError: the party sent the gradients of its loss.
        """
        found = {n.removeprefix(SENDING): a for n, a in self._own.items() if n.startswith(SENDING)}
        if not found:
            raise KnowledgeError(
                f"party {self.party!r} sent the gradients of its loss: run the federation with "
                "malicious = true, and with this attack"
            )
        return found
