"""Attacks on embeddings: in a server those that a client granted, or those that SplitFed sends."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import ClassVar, Literal

from pydantic import Field

from vflens.errors import KnowledgeError
from vflens.plugins.attack import Attack
from vflens.plugins.declared import Declared
from vflens.plugins.views.horizontal import ServerView
from vflens.types import Array, Phase, Setting


class EmbeddingsAttack(Attack):
    """It estimates the rows of a SplitFed round, in the order in which their embeddings came."""

    settings: ClassVar[frozenset[Setting]] = frozenset(Setting)
    sent_in: ClassVar[Literal["first", "last"]] = "first"  # the round that is attacked

    embeddings: Literal["granted", "sent"] = Field(
        "granted",
        description="in a server: of rows that a client granted by number; or those that SplitFed sends in a "
        "round",
    )

    @property
    def estimated_round(self) -> Literal["first", "last"] | None:
        return self.sent_in if self.embeddings == "sent" else None

    def declared(self) -> Declared:
        """With ``embeddings = "sent"`` also the messages of training."""
        found = super().declared()
        return replace(found, phases=found.phases | {Phase.TRAIN}) if self.estimated_round else found


def sent_batches(view: ServerView) -> Iterator[tuple[dict[str, Array], Array]]:
    """The parameters by name of the target's bottom model at each batch of ``view.round``, and the embeddings
    (n, w) of that batch.

    The first batch met ω_t. The round's update is known too: of the steps between, each is taken to have
    brought an equal part of it.
    """
    start = bottom_of(view.parameters(view.round))
    update = next((bottom_of(delta) for e, delta in view.updates() if e.round == view.round), None)
    if update is None:
        raise KnowledgeError(f"no update of {view.target!r} in round {view.round} reached {view.party!r}")
    steps = view.agreement.steps_of(view.target)
    for place, (h, _) in enumerate(view.batches()):
        yield {name: value + place / steps * update[name] for name, value in start.items()}, h


def bottom_of(parameters: Mapping[str, Array]) -> dict[str, Array]:
    """Those of the bottom model, by its own names."""
    return {n.removeprefix("bottom."): a for n, a in parameters.items() if n.startswith("bottom.")}
