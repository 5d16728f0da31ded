"""Attacks on the record of a vertical run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from vflens.config import ActiveConfig, DataPartyConfig, PassiveConfig
from vflens.errors import ConfigError, StorageError
from vflens.experiments.offline.coalition import Coalition
from vflens.experiments.offline.command import (
    carried_out,
    certificates,
    fair_guess_file,
    sides,
)
from vflens.experiments.offline.request import Request
from vflens.experiments.offline.verified import verified
from vflens.experiments.offline.vertical.colluders import United, own_model, united
from vflens.experiments.offline.vertical.operator_attacks import attack_answers
from vflens.member.adversary import save_estimate
from vflens.plugins.attack import FAIR_GUESS, Attack
from vflens.plugins.steps import silent
from vflens.plugins.views.reads import Log
from vflens.plugins.views.vertical import AdversaryView
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.recorded.vertical.view import knows_rows, scored_training_rows, view_of
from vflens.registry import ATTACKS
from vflens.storage.files import load_arrays
from vflens.storage.journal import Reader
from vflens.storage.private import owner_only
from vflens.types import Array, Document, Estimate, Phase, Point, Progress


def attack_party(asked: Request) -> Document:
    """Attack a data party; the folder is another party's.

    Raises:
        VflensError: as :func:`vflens.experiments.offline.attack.attack_recorded`.
    """
    federation = asked.federation
    assert isinstance(federation, VerticalAgreement)
    if asked.attack.estimates == "membership":
        return attack_answers(asked)
    coalition = Coalition.of(asked)
    party, target = sides(asked.attack, coalition.names, federation, asked.target)
    known = united(coalition.parties, federation) if asked.together else _of_one(asked)
    transcript = known.transcript
    see = _views(asked, federation, known, party=party, colluders=coalition.names[1:], target=target)
    rows = _estimated(asked, federation, transcript, target)

    def write(name: str, attack: Attack, out: Path, progress: Progress) -> Estimate:
        view = see(attack, rows=rows, progress=progress)
        estimate = carried_out(attack, view, name, asked.config.seed)
        names: Document = {"run": federation.run, "adversary": coalition.sender}
        with owner_only():  # the guess of the target's rows
            save_estimate(out, estimate, **names, attack=coalition.called(name), scored=asked.scored)
        return estimate

    estimate = write(asked.name, asked.attack, asked.out, asked.progress)
    guessed: Document = {}
    if _is_guessed_beside(asked, transcript, target):
        guessed["fair_guess"] = str(fair_guess_file(asked.out))
        write(FAIR_GUESS, ATTACKS.get(FAIR_GUESS)(), fair_guess_file(asked.out), silent)
    return {
        "attack": coalition.called(asked.name),
        "target": target,
        "scored_set": asked.scored.value,
        "rows": len(estimate.rows),
        "estimate": str(asked.out),
        **guessed,
        **certificates(estimate),
        **(
            verified(asked.name, asked.attack, estimate, partial(see, asked.attack), rows=asked.verify)
            if asked.verify
            else {}
        ),
    }


def _is_guessed_beside(asked: Request, transcript: Log, target: str) -> bool:
    """Whether the fair guess belongs beside the attack, as in a run: where rows of columns are known."""
    is_asked = asked.attack.estimates == "features" and asked.name != FAIR_GUESS
    return is_asked and knows_rows(transcript, target)


def _views(
    asked: Request, federation: VerticalAgreement, known: United, **sides: Any
) -> Callable[..., AdversaryView]:
    """The view of an attack for the attack and the rows that it is called with; ``sides`` are its parties."""
    config = asked.config
    return partial(
        view_of,
        federation=federation,
        transcript=known.transcript,
        own=known.own,
        every=config.transcript.every,
        device=config.device if isinstance(config, DataPartyConfig) else "cpu",
        own_model=known.own_model,
        **sides,
    )


def _of_one(asked: Request) -> United:
    """What the party of ``asked`` knows alone."""
    folder, config = asked.folder, asked.config
    kept = folder / "own.npz"  # the active party has it, a passive one if labels were granted
    return United(
        Reader(folder / "transcript"),
        load_arrays(kept) if isinstance(config, ActiveConfig) or kept.exists() else {},
        partial(own_model, config, folder) if isinstance(config, PassiveConfig) else None,
    )


def _estimated(asked: Request, federation: VerticalAgreement, transcript: Log, target: str) -> Array:
    """The rows to score: labels of prediction rows need no prediction."""
    if asked.scored is Phase.TRAIN:
        return scored_training_rows(federation, transcript, target)
    return federation.predict if asked.attack.estimates == "labels" else _predicted(federation, transcript)


def _predicted(federation: VerticalAgreement, transcript: Log) -> Array:
    """The rows with received scores, or embeddings in a split network, in order of first arrival."""
    received = transcript.select(Point.SCORES, Point.EMBEDDING, phases={Phase.PREDICT})
    arrived = [r.rows for r in received]
    if not arrived:
        raise ConfigError("the transcript holds no scores: attack a run that predicted")
    rows = np.concatenate([row.reshape(-1) for row in arrived])
    if len(odd := np.setdiff1d(rows, federation.predict)):
        raise StorageError(
            f"the transcript holds scores of row {odd[0]}, which the run does not predict: give a folder as "
            "its party wrote it"
        )
    _, first = np.unique(rows, return_index=True)
    return rows[np.sort(first)]
