"""Recorded folders of several parties of a vertical run as one adversary: what they received and own."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from vflens.array import in_unit
from vflens.config import PassiveConfig
from vflens.errors import KnowledgeError
from vflens.experiments.offline.coalition import Colluder
from vflens.experiments.offline.copied import private_copy
from vflens.experiments.results.folders import read_party
from vflens.plugins.views.own_reads import NETWORK
from vflens.plugins.views.reads import Log
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.recorded.vertical.joined import JoinedLog, Sent
from vflens.services.members import resumed
from vflens.storage.files import load_arrays
from vflens.storage.journal import Messages, Reader
from vflens.types import Array, Phase, Point, Released, Role

if TYPE_CHECKING:
    from torch.nn import Module


@dataclass(frozen=True)
class United:
    """What an adversary received and owns, of one party or of several."""

    transcript: Log
    own: Mapping[str, Array]
    own_model: Callable[[], Module] | None


def united(parties: Sequence[Colluder], federation: VerticalAgreement) -> United:
    """What ``parties`` know together.

    Raises:
        KnowledgeError: a transcript lacks what has to be taken out of the messages to the others.
        VflensError: a folder cannot be read.
    """
    logs = {m.name: Reader(m.folder / "transcript") for m in parties}
    names = {p.name for p in federation.parties}
    data = sorted(
        (m for m in parties if m.name in names), key=lambda m: (m.config.role is Role.PASSIVE, m.name)
    )
    summed = _are_summed(federation, logs)
    own, sent = list[Mapping[str, Array]](), dict[str, Sent]()
    for member in data:
        if isinstance(member.config, PassiveConfig):
            owned, embeddings = _rebuilt(member.config, member.folder, summed=summed)
            own.append(owned)
            sent[member.name] = partial(_select, embeddings)
        else:
            own.append(load_arrays(member.folder / "own.npz"))
    passive = [m for m in data if isinstance(m.config, PassiveConfig)]
    models = None if len(passive) < len(data) or not passive else partial(_models, passive, own)
    return United(JoinedLog(federation, logs, sent), _side_by_side(own), models)


def _are_summed(federation: VerticalAgreement, logs: Mapping[str, Log]) -> bool:
    """Whether the parties with ``logs`` see sums in which their own embeddings are."""
    sees_sums = federation.active.name in logs and logs.keys() <= {p.name for p in federation.parties}
    return sees_sums and not (federation.direct or federation.model.concatenates)


@contextmanager
def _copied(config: PassiveConfig, folder: Path) -> Iterator[tuple[PassiveConfig, bool]]:
    """The party's configuration for a copy of ``folder``; whether all ran in one process."""
    with private_copy(folder) as copy:
        yield config.model_copy(update={"out": copy}), read_party(copy).federation.in_process


def own_model(config: PassiveConfig, folder: Path) -> Module:
    """The trained bottom model of the party that ran in ``folder``, from its checkpoint and log."""
    with _copied(config, folder) as (own, in_process), resumed(own, in_process=in_process) as party:
        return party.adversary.own_model()


def _rebuilt(config: PassiveConfig, folder: Path, *, summed: bool) -> tuple[dict[str, Array], Messages]:
    """What the party that ran in ``folder`` owns, and, where it is ``summed``, what it sent.

    Raises:
        KnowledgeError: its transcript leaves out gradients.
    """
    every, received = config.transcript.every, Reader(folder / "transcript")
    if summed and every > 1:
        raise KnowledgeError(
            f"transcript.every = {every} at {config.party!r} drops gradients, and what it added to sums "
            "follows from all of them: run it with every = 1, or leave it out"
        )
    with _copied(config, folder) as (own, in_process), resumed(own, in_process=in_process) as party:
        owned = {name: np.array(array) for name, array in party.adversary.own().items()}
        bias = party.parameters().get("bias") if party.run.federation.model.linear else None
        owned |= {} if bias is None else {"bias": bias}
        if not summed:
            return owned, Messages()
        predicted = Reader(folder / "released").select(Point.EMBEDDING, phases={Phase.PREDICT})
        trained = party.sent_again(received.select(Point.GRADIENT, phases={Phase.TRAIN}))
        return owned, Messages([*predicted, *trained])


def _select(sent: Messages, phase: Phase) -> Iterator[Released]:
    return sent.select(Point.EMBEDDING, phases={phase})


def _side_by_side(own: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    """The arrays of the first party, with the columns of the others; a top model fits it alone."""
    if len(own) < 2:
        return dict(*own)
    found = {name: array for part in reversed(own) for name, array in part.items()}
    found = {name: array for name, array in found.items() if not name.startswith(NETWORK)}
    for name in ("features", "embeddings", "parameters"):
        parts = [part[name] for part in own if name in part]
        if parts:
            found[name] = np.concatenate([in_unit(p) if name == "features" else p for p in parts], axis=1)
    return found


def _models(passive: Sequence[Colluder], own: Sequence[Mapping[str, Array]]) -> Module:
    """Their bottom models as one."""
    from vflens.models.networks.side_by_side import SideBySide

    parts = [own_model(m.config, m.folder) for m in passive if isinstance(m.config, PassiveConfig)]
    return SideBySide(parts, [part["features"].shape[1] for part in own])
