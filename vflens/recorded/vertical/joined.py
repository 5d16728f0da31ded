"""What several parties of a vertical run saw together: one log of what crossed the wire to any of them.

What one of them sent is no observation of the others. It is left out, and taken out of the sums that it is
in.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

import numpy as np

from vflens.errors import KnowledgeError
from vflens.plugins.arrivals import latest
from vflens.plugins.views.reads import Log
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.types import Array, Phase, Point, Released

#: What a passive party sent in a phase, in order.
Sent = Callable[[Phase], Iterator[Released]]
_OF_STEPS = (Point.EMBEDDING, Point.GRADIENT)


class JoinedLog:
    """The messages to the parties of ``logs`` from others, in the order of arrival at each party.

    A combination of embeddings holds those of the other parties alone. The gradient of an embedding is that
    of all embeddings of these parties, side by side where they are concatenated.

    Args:
        federation: the run.
        logs: party → what it received.
        sent: passive party among them → its own embeddings, which sums hold.
    """

    def __init__(
        self, federation: VerticalAgreement, logs: Mapping[str, Log], sent: Mapping[str, Sent]
    ) -> None:
        self._federation, self._sent = federation, sent
        leads = [name for name in logs if name not in {p.name for p in federation.parties}]
        self._logs = {name: logs[name] for name in [*leads, *sorted(logs.keys() - set(leads))]}
        self._sees_each = bool(leads)  # the coordinator sees every message of the steps

    def select(
        self, *points: Point, phases: Collection[Phase] = frozenset(Phase), sender: str | None = None
    ) -> Iterator[Released]:
        """See :meth:`vflens.storage.journal.Reader.select`; the largest disclosure of each sender last.

        Raises:
            KnowledgeError: a transcript leaves out steps that another one has.
        """
        granted = [*self._received(points, {Phase.DISCLOSE} & set(phases), sender)]
        yield from sorted(granted, key=lambda r: (r.exchange.round, len(r.rows)))
        for phase in sorted(set(phases) - {Phase.DISCLOSE}):
            yield from self._received([p for p in points if p is not Point.GRADIENT], {phase}, sender)
            if Point.GRADIENT in points:
                yield from self._gradients(phase, sender)

    def _received(
        self, points: Collection[Point], phases: Collection[Phase], sender: str | None
    ) -> Iterator[Released]:
        for log in self._logs.values():
            found = log.select(*points, phases=phases, sender=sender)
            others = (r for r in found if r.sender not in self._logs or r.point not in _OF_STEPS)
            yield from self._without_own(others)

    def _without_own(self, found: Iterator[Released]) -> Iterator[Released]:
        """``found``, its combined embeddings without those of these parties."""
        own = {name: self._sent[name](Phase.TRAIN) for name in self._sent} if not self._joins else {}
        parties = {p.name for p in self._federation.parties}
        for released in found:
            if released.point is not Point.EMBEDDING or released.sender in parties:
                yield released
            elif self._joins:
                yield _with(released, "embedding", released.tensor("embedding")[:, self._others])
            else:
                own_part = sum(self._own_part(name, released, own[name]) for name in self._sent)
                yield _with(released, "embedding", released.tensor("embedding") - own_part)

    @property
    def _joins(self) -> bool:
        return self._federation.model.concatenates

    @property
    def _others(self) -> Array:
        """Which numbers of a concatenation are those of other parties, bool."""
        widths = self._federation.widths
        return np.concatenate([np.full(widths[n], n not in self._logs) for n in sorted(widths)])

    def _own_part(self, name: str, released: Released, training: Iterator[Released]) -> Array:
        """What ``name`` added to the sum ``released``."""
        if released.exchange.phase is Phase.TRAIN:
            return _of_step(training, released, name).tensor("embedding")
        sent = ((r.rows, r.tensor("embedding")) for r in self._sent[name](Phase.PREDICT))
        return latest(sent, released.rows)[0]

    def _gradients(self, phase: Phase, sender: str | None) -> Iterator[Released]:
        """What any of these parties received: the coordinator all of it, a passive party its own part."""
        logs = list(self._logs.values())[: 1 if self._sees_each or not self._joins else None]
        names = list(self._logs)
        first, *rest = (log.select(Point.GRADIENT, phases={phase}, sender=sender) for log in logs)
        for released in first:
            if released.sender in self._logs:
                continue
            others = [_of_step(f, released, n) for f, n in zip(rest, names[1:], strict=False)]
            parts = [r.tensor("gradient") for r in (released, *others)]
            yield _with(released, "gradient", np.concatenate(parts, axis=1))


def _of_step(messages: Iterator[Released], like: Released, party: str) -> Released:
    """The message of the exchange of ``like`` among the later ``messages``."""
    for released in messages:
        if released.exchange == like.exchange:
            return released
    raise KnowledgeError(
        f"the messages of step {like.exchange.step} at {party!r} are not there: run with transcript.every = 1"
    )


def _with(released: Released, name: str, tensor: Array) -> Released:
    return replace(released, tensors={name: tensor})
