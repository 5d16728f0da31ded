"""The adversary in a server: it attacks every client with what the rounds and the grants brought."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from itertools import groupby
from typing import Protocol, TypeAlias

import numpy as np

from vflens.config import ServerConfig
from vflens.coordinator.rounds import averaged
from vflens.errors import KnowledgeError
from vflens.member.adversary import Adversary, Attacker
from vflens.models.whole import BOTTOM
from vflens.plugins.attack import Attack
from vflens.plugins.reads import Log, read_only
from vflens.plugins.server_view import CANDIDATES, Parameters, ServerView, check_unmasked
from vflens.plugins.steps import Progress, silent
from vflens.protocol.acts import BATCHES
from vflens.protocol.horizontal import HorizontalFederation
from vflens.storage.journal import Reader
from vflens.types import Array, Estimate, Phase, Point

_NO_ROWS = np.zeros(0, np.int32)
_START, _END = "start/", "end/"  # begin the names of ω_0 and ω_T among the server's own arrays
Batch: TypeAlias = tuple[str, str, int | None]  # the scored set, what is estimated, the round


class Host(Attacker, Protocol):
    """A :class:`vflens.coordinator.server.Server` as its adversary takes it."""

    @property
    def config(self) -> ServerConfig:
        """Its configuration."""

    @property
    def prepared(self) -> HorizontalFederation:
        """The run's clients and settings."""


class ServerAdversary(Adversary):
    """The configured ``attacks`` of the server ``party``, on every client."""

    def __init__(self, party: Host, attacks: Mapping[str, Attack]) -> None:
        super().__init__(party, attacks)
        self._party = party

    def attack(self, targets: Collection[str], own: Mapping[str, Array], progress: Progress) -> None:
        """Estimate the rows of the clients ``targets``, keep the estimates and submit.

        Args:
            targets: their names.
            own: see :func:`owned`.
            progress: called with the number of attacks done.
        """
        federation = self._party.prepared
        parameters = parameters_of(federation, own, self.received)
        done, total = 0, len(targets) * len(self.attacks)
        for target in targets:
            found: dict[Batch, dict[str, Estimate]] = {}
            for name, attack in self.attacks.items():
                see = partial(self._see, target=target, parameters=parameters)
                if (estimate := self.estimated(name, target, see)) is not None:
                    number = attacked_round(attack, federation, target, self.received)
                    batch = (scored_set(attack), attack.estimates, number)
                    found.setdefault(batch, {})[name] = estimate
                progress("attacking", done := done + 1, total)
            for (scored, estimates, step), together in found.items():
                self.save(target, scored, together, estimates=estimates, step=step)
                self.submit(target, scored, together, estimates=estimates, step=step)

    def _see(self, attack: Attack, *, target: str, parameters: Callable[[int], Parameters]) -> ServerView:
        config = self._party.config
        return server_view(
            attack,
            self._party.prepared,
            party=self._party.name,
            target=target,
            parameters=parameters,
            transcript=self.received,
            every=config.transcript.every,
            device=config.device,
        )


def owned(start: Parameters, end: Parameters) -> dict[str, Array]:
    """The server's own arrays, for attacks: the parameters before the first round, and after the last."""
    first = {_START + name: array for name, array in start.items()}
    return first | {_END + name: array for name, array in end.items()}


def parameters_of(
    federation: HorizontalFederation, own: Mapping[str, Array], transcript: Log
) -> Callable[[int], Parameters]:
    """What gives ω_t by name, from the :func:`owned` arrays and the recorded updates; in SplitFed between its
    rounds the bottom model's alone, for no message holds the top models.

    It raises KnowledgeError where the transcript leaves out an update before round t.
    """

    def kept(prefix: str) -> Parameters:
        found = {n.removeprefix(prefix): a for n, a in own.items() if n.startswith(prefix)}
        return {name: read_only(array) for name, array in found.items()}

    def parameters(number: int) -> Parameters:
        if number == federation.epochs:
            return kept(_END)
        current = kept(_START)
        if number and federation.horizontal.is_split:
            current = {name: array for name, array in current.items() if name.startswith(BOTTOM)}
        updates = transcript.select(federation.sent, phases={Phase.TRAIN})
        rounds = groupby(updates, key=lambda released: released.exchange.round)
        for due in range(number):
            recorded, released = next(rounds, (None, None))
            if recorded != due or released is None:
                raise KnowledgeError(
                    f"the parameters of round {number} follow from all updates before it, and the transcript "
                    f"leaves out those of round {due}: set transcript.every = 1, or attack an earlier round"
                )
            current = averaged(federation, current, list(released))
        return current

    return parameters


def attacked_round(
    attack: Attack, federation: HorizontalFederation, target: str, transcript: Log
) -> int | None:
    """The round whose rows ``attack`` estimates: the first or the last with an update of ``target``; None if
    it estimates rows by number.

    Raises:
        KnowledgeError: ``target`` sent no update, or masked ones.
    """
    if attack.estimated_round is None:
        return None
    check_unmasked(federation.horizontal, target)
    found = list(_updates(transcript, target))
    if not found:
        raise KnowledgeError(f"no update of {target!r} reached the server: it had no part in a round")
    return found[0 if attack.estimated_round == "first" else -1]


def scored_set(attack: Attack) -> str:
    """What a submission calls the rows of ``attack``."""
    return BATCHES if attack.estimated_round and not attack.unordered else Phase.TRAIN


def _updates(transcript: Log, target: str) -> Iterator[int]:
    """The rounds of the recorded updates of ``target``."""
    sent = transcript.select(Point.UPDATE, phases={Phase.TRAIN}, sender=target)
    return (released.exchange.round for released in sent)


def granted_rows(target: str, transcript: Log) -> Array:
    """The rows int32 (n,) of ``target`` that are attacked one by one: those of granted embeddings or
    gradients, without those whose truth was granted.

    Raises:
        KnowledgeError: none were granted.
    """
    disclosed = partial(transcript.select, phases={Phase.DISCLOSE}, sender=target)
    shown = [r.rows for r in disclosed(Point.EMBEDDING, Point.GRADIENT)]
    known = [r.rows for r in disclosed(Point.AUXILIARY)]
    rows: Array = np.setdiff1d(np.concatenate([_NO_ROWS, *shown]), np.concatenate([_NO_ROWS, *known]))
    if not len(rows):
        raise KnowledgeError(
            f"client {target!r} granted neither embeddings nor gradients of rows: let it disclose some, or "
            "use an attack on a round's rows"
        )
    return rows


def candidate_places(target: str, transcript: Log) -> Array:
    """The places 0, 1, … int32 (n,) of the candidates that ``target`` granted.

    Raises:
        KnowledgeError: none were granted.
    """
    granted = transcript.select(Point.AUXILIARY, phases={Phase.DISCLOSE}, sender=target)
    found = [r.tensor(CANDIDATES[0]) for r in granted if CANDIDATES[0] in (r.tensors or {})]
    if not found:
        raise KnowledgeError(
            f"client {target!r} granted no candidates: let it disclose what = 'candidates', or leave the "
            "attack out"
        )
    return np.arange(len(found[-1]), dtype=np.int32)


def server_view(
    attack: Attack,
    federation: HorizontalFederation,
    *,
    party: str,
    target: str,
    parameters: Callable[[int], Parameters],
    transcript: Reader,
    every: int,
    device: str,
    progress: Progress = silent,
) -> ServerView:
    """The view of ``attack`` in the server ``party``, in a run or from its record.

    Raises:
        KnowledgeError: the target has no rows for such an attack.
    """
    declared, number = attack.declared(), attacked_round(attack, federation, target, transcript)
    if attack.estimates == "membership":
        rows = candidate_places(target, transcript)
    elif number is None:
        rows = granted_rows(target, transcript)
    else:
        rows = np.arange(federation.round_rows(target), dtype=np.int32)
    return ServerView(
        federation=federation,
        number=number,
        parameters=parameters,
        target=target,
        party=party,
        rows=read_only(rows),
        log=transcript,
        needs=declared.needs,
        phases=declared.phases,
        every=every,
        device=device,
        joint=None,
        progress=progress,
    )
