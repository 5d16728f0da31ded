"""Attacks on the record of a horizontal run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeAlias

import numpy as np

from vflens.config import ClientConfig, ServerConfig
from vflens.errors import ConfigError, KnowledgeError
from vflens.experiments.offline.coalition import Coalition, Colluder
from vflens.experiments.offline.command import carried_out, certificates, left, named_party
from vflens.experiments.offline.copied import private_copy
from vflens.experiments.offline.request import Request
from vflens.experiments.results.folders import read_party
from vflens.member.adversary import save_estimate
from vflens.member.start_nonce import start_nonce
from vflens.plugins.views.horizontal import Parameters, ServerView
from vflens.plugins.views.reads import Log
from vflens.protocol.acts import metrics_of
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.protocol.horizontal.secure_sum import Masking, masking_of
from vflens.randomness import secret_from_seed
from vflens.recorded.horizontal.broadcast import BroadcastLog
from vflens.recorded.horizontal.joined import UnmaskedLog
from vflens.recorded.horizontal.own_rows import ColluderRows, WithColluders
from vflens.recorded.horizontal.parameters import parameters_of
from vflens.recorded.horizontal.view import scored_set, server_view
from vflens.services.members import resumed
from vflens.storage.files import load_arrays
from vflens.storage.journal import Reader
from vflens.storage.private import owner_only
from vflens.types import Document, Phase, Point, Released


class _Again(NamedTuple):
    """What a client knows of its own."""

    updates: Sequence[Released]
    rows: ColluderRows


_Seen: TypeAlias = tuple[Log, HorizontalAgreement, Callable[[int], Parameters]]


def attack_client(asked: Request) -> Document:
    """Attack a client; the folder is the server's, or that of a client that colludes with others.

    Raises:
        ConfigError: the server colludes, and its folder is not the first.
        VflensError: as :func:`vflens.experiments.offline.attack.attack_recorded`.
    """
    federation = asked.federation
    assert isinstance(federation, HorizontalAgreement)
    coalition = Coalition.of(asked)
    client = named_party(left(coalition.names, federation.parties), asked.target)
    view = _view(asked, federation, coalition, client)
    estimate = carried_out(asked.attack, view, asked.name, asked.config.seed)
    step = view.round if asked.attack.estimated_round else None
    name = coalition.called(asked.name)
    facts = {"run": federation.run, "adversary": coalition.sender, "attack": name}
    scored = scored_set(asked.attack)
    with owner_only():  # the guess of the target's rows
        estimates = asked.attack.estimates
        save_estimate(asked.out, estimate, **facts, scored=scored, estimates=estimates, step=step)
    return {
        "attack": name,
        "target": client,
        "scored_set": metrics_of(scored, step),
        "rows": len(estimate.rows),
        "estimate": str(asked.out),
        **({"granted": sorted(view.granted)} if view.granted else {}),
        **certificates(estimate),
    }


def _view(asked: Request, federation: HorizontalAgreement, coalition: Coalition, client: str) -> ServerView:
    """What the coalition sees of ``client``."""
    config = asked.config
    seen, known, parameters = _seen(asked, federation, coalition)
    assert isinstance(config, ServerConfig | ClientConfig)
    return server_view(
        asked.attack,
        known,
        party=config.party,
        target=client,
        parameters=parameters,
        transcript=seen,
        every=config.transcript.every,
        device=config.device,
        progress=asked.progress,
    )


def _seen(asked: Request, federation: HorizontalAgreement, coalition: Coalition) -> _Seen:
    """What the coalition received and uncovers; the run as its view has it; and what gives the parameters."""
    clients = {party.name for party in federation.parties}
    servers = [m.name for m in coalition.parties if m.name not in clients]
    again = [_again(m) for m in coalition.parties if m.name in clients]
    rows = [known.rows for known in again]
    if not servers:
        log = _without_server(federation, coalition.parties, again)
        return WithColluders(federation, log, rows), _in_the_clear(federation), log.parameters
    if asked.config.party not in servers:
        raise ConfigError(
            f"{asked.folder} is a client's, and its server colludes: give the folder of {servers[0]!r} first"
        )
    transcript = Reader(asked.folder / "transcript")
    seen, known = _uncovered(federation, transcript, coalition.parties[1:])
    parameters = parameters_of(federation, load_arrays(asked.folder / "own.npz"), transcript)
    return WithColluders(federation, seen, rows), known, parameters


def _without_server(
    federation: HorizontalAgreement, clients: Sequence[Colluder], again: Sequence[_Again]
) -> BroadcastLog:
    """What ``clients`` know without their server.

    Raises:
        KnowledgeError: a transcript leaves out rounds.
    """
    for member in clients:
        if (every := member.config.transcript.every) > 1:
            raise KnowledgeError(
                f"transcript.every = {every} at {member.name!r} drops parameters of rounds, from which "
                "updates follow: run it with every = 1, or leave it out"
            )
    received = Reader(clients[0].folder / "transcript")
    own = {m.name: known.updates for m, known in zip(clients, again, strict=True)}
    return BroadcastLog(federation, received, own)


def _again(member: Colluder) -> _Again:
    """What the client that ran in the folder sent, before masks, and its training rows."""
    assert isinstance(member.config, ClientConfig)
    with private_copy(member.folder) as copy:
        own, in_process = (
            member.config.model_copy(update={"out": copy}),
            read_party(copy).federation.in_process,
        )
        with resumed(own, in_process=in_process) as client:
            received = list(client.transcript.select(Point.PARAMETERS, phases={Phase.TRAIN}))
            run = client.run
            train = run.federation.rows_of(client.name, Phase.TRAIN)
            rows = ColluderRows(np.array(run.truth[train], np.float64), run.labels[train])
            return _Again(list(client.sent_again(received[:-1])), rows)


def _in_the_clear(federation: HorizontalAgreement) -> HorizontalAgreement:
    """``federation`` for a view of updates without masks."""
    clear = federation.horizontal.model_copy(update={"secure_aggregation": False})
    return replace(federation, horizontal=clear)


def _uncovered(
    federation: HorizontalAgreement, transcript: Log, clients: Sequence[Colluder]
) -> tuple[Log, HorizontalAgreement]:
    """What the server and ``clients`` see together, with masked updates that they uncover; the run as their
    view has it.
    """
    if not (clients and federation.horizontal.secure_aggregation):
        return transcript, federation
    maskings = {m.name: _masking(m) for m in clients}
    received = Reader(clients[0].folder / "transcript")
    return UnmaskedLog(federation, transcript, received, maskings), _in_the_clear(federation)


def _masking(member: Colluder) -> Masking:
    secret, config = secret_from_seed(member.config.seed), member.config
    return masking_of(secret, start_nonce(member.folder, lab=config.lab), config.run, config.party)
