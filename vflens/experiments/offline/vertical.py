"""Attacks on the record of a vertical run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vflens.config import (
    DataPartyConfig,
    PassiveConfig,
)
from vflens.errors import ConfigError, StorageError
from vflens.experiments.offline.command import (
    carried_out,
    certificates,
    sides,
)
from vflens.experiments.offline.copied import private_copy
from vflens.experiments.offline.request import Request
from vflens.experiments.offline.verified import verified
from vflens.experiments.results.folders import read_party
from vflens.member.adversary import save_estimate
from vflens.plugins.views.vertical import AdversaryView
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.recorded.vertical.view import scored_training_rows, view_of
from vflens.services.members import resumed
from vflens.storage.files import load_arrays
from vflens.storage.journal import Reader
from vflens.storage.private import owner_only
from vflens.types import Array, Document, Phase, Point

if TYPE_CHECKING:
    from torch.nn import Module


def attack_party(asked: Request) -> Document:
    """Attack a data party; the folder is another party's.

    Raises:
        VflensError: as :func:`vflens.experiments.offline.attack.attack_recorded`.
    """
    federation = asked.federation
    assert isinstance(federation, VerticalAgreement)
    party, target = sides(asked.attack, asked.config.party, federation, asked.target)
    transcript = Reader(asked.folder / "transcript")
    see = _views(asked, federation, party=party, target=target, transcript=transcript)
    view = see(rows=_estimated(asked, federation, transcript, target), progress=asked.progress)
    estimate = carried_out(asked.attack, view, asked.name, asked.config.seed)
    with owner_only():  # the guess of the target's rows
        save_estimate(
            asked.out,
            estimate,
            run=federation.run,
            adversary=party,
            attack=asked.name,
            scored=asked.scored,
        )
    return {
        "attack": asked.name,
        "target": target,
        "scored_set": asked.scored.value,
        "rows": len(estimate.rows),
        "estimate": str(asked.out),
        **certificates(estimate),
        **(verified(asked.name, asked.attack, estimate, see, rows=asked.verify) if asked.verify else {}),
    }


def _views(
    asked: Request, federation: VerticalAgreement, *, party: str, target: str, transcript: Reader
) -> Callable[..., AdversaryView]:
    """The view of the attack in ``party`` for the rows that it is called with."""
    folder, config = asked.folder, asked.config
    kept = folder / "own.npz"  # a passive party has it if labels were granted
    return partial(
        view_of,
        asked.attack,
        federation,
        party=party,
        target=target,
        transcript=transcript,
        own=load_arrays(kept) if party == federation.active.name or kept.exists() else {},
        every=config.transcript.every,
        device=config.device if isinstance(config, DataPartyConfig) else "cpu",
        own_model=partial(_own_model, config, folder) if isinstance(config, PassiveConfig) else None,
    )


def _own_model(config: PassiveConfig, folder: Path) -> Module:
    """The trained bottom model of the party that ran in ``folder``, rebuilt from its checkpoint and log."""
    with private_copy(folder) as copy:
        in_process = read_party(copy).federation.in_process
        with resumed(config.model_copy(update={"out": copy}), in_process=in_process) as party:
            return party.adversary.own_model()


def _estimated(asked: Request, federation: VerticalAgreement, transcript: Reader, target: str) -> Array:
    """The rows to score: labels of prediction rows need no prediction."""
    if asked.scored is Phase.TRAIN:
        return scored_training_rows(federation, transcript, target)
    return federation.predict if asked.attack.estimates == "labels" else _predicted(federation, transcript)


def _predicted(federation: VerticalAgreement, transcript: Reader) -> Array:
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
