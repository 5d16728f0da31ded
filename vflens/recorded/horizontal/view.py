"""The view of an attack in the server of a horizontal run, and the rows that it estimates."""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from vflens.errors import KnowledgeError
from vflens.plugins.attack import Attack
from vflens.plugins.steps import silent
from vflens.plugins.views.horizontal import CANDIDATES, Parameters, ServerView, check_unmasked
from vflens.plugins.views.reads import Log, read_only
from vflens.protocol.acts import BATCHES, SUMS
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.types import Array, Phase, Point, Progress

_NO_ROWS = np.zeros(0, np.int32)


def server_view(
    attack: Attack,
    federation: HorizontalAgreement,
    *,
    party: str,
    target: str,
    parameters: Callable[[int], Parameters],
    transcript: Log,
    every: int,
    device: str,
    progress: Progress = silent,
) -> ServerView:
    """The view of ``attack`` in the server ``party``, in a run or from its record.

    Raises:
        KnowledgeError: the target has no rows for such an attack.
    """
    declared, number = attack.declared(), attacked_round(attack, federation, target, transcript)
    if attack.of_candidates:
        rows = candidate_places(target, transcript)
    elif number is None:
        rows = granted_rows(target, transcript)
    elif attack.pooled:
        together = participants(transcript, number)
        rows = np.arange(sum(map(federation.in_round(number).round_rows, together)), dtype=np.int32)
    else:
        rows = np.arange(federation.in_round(number).round_rows(target), dtype=np.int32)
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


def scored_set(attack: Attack) -> str:
    """What a submission calls the rows of ``attack``."""
    if attack.pooled:
        return SUMS
    return BATCHES if attack.estimated_round and not attack.unordered else Phase.TRAIN


def attacked_round(
    attack: Attack, federation: HorizontalAgreement, target: str, transcript: Log
) -> int | None:
    """The round whose rows ``attack`` estimates: the first or the last with an update of ``target``; None if
    it estimates rows by number.

    Raises:
        KnowledgeError: ``target`` sent no update, or masked ones that ``attack`` cannot read.
    """
    if attack.estimated_round is None:
        return None
    if not attack.pooled:
        check_unmasked(federation.horizontal, target)
    found = list(_updates(transcript, target))
    if not found:
        raise KnowledgeError(f"no update of {target!r} reached the server: it had no part in a round")
    return found[0 if attack.estimated_round == "first" else -1]


def _updates(transcript: Log, target: str) -> Iterator[int]:
    """The rounds of the recorded updates of ``target``."""
    sent = transcript.select(Point.UPDATE, Point.MASKED_UPDATE, phases={Phase.TRAIN}, sender=target)
    return (released.exchange.round for released in sent)


def participants(transcript: Log, number: int) -> list[str]:
    """The clients whose updates of round ``number`` are recorded, in name order."""
    sent = transcript.select(Point.UPDATE, Point.MASKED_UPDATE, phases={Phase.TRAIN})
    return sorted({released.sender for released in sent if released.exchange.round == number})


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
