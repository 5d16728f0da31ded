"""Attacks on the record of a horizontal run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from vflens.config import ServerConfig
from vflens.errors import ConfigError
from vflens.experiments.offline.coalition import Coalition, Colluder
from vflens.experiments.offline.command import carried_out, certificates, left, named_party
from vflens.experiments.offline.request import Request
from vflens.member.adversary import save_estimate
from vflens.member.start_nonce import start_nonce
from vflens.plugins.views.horizontal import ServerView
from vflens.plugins.views.reads import Log
from vflens.protocol.acts import metrics_of
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.protocol.horizontal.secure_sum import Masking, masking_of
from vflens.randomness import secret_from_seed
from vflens.recorded.horizontal.joined import UnmaskedLog
from vflens.recorded.horizontal.parameters import parameters_of
from vflens.recorded.horizontal.view import scored_set, server_view
from vflens.storage.files import load_arrays
from vflens.storage.journal import Reader
from vflens.storage.private import owner_only
from vflens.types import Document


def attack_client(asked: Request) -> Document:
    """Attack a client; the folder is the server's.

    Raises:
        ConfigError: the folder is a client's.
        VflensError: as :func:`vflens.experiments.offline.attack.attack_recorded`.
    """
    config, federation = asked.config, asked.federation
    assert isinstance(federation, HorizontalAgreement)
    if not isinstance(config, ServerConfig):
        raise ConfigError(
            f"{asked.folder} is a client's: the adversary is in the server, give the server's folder"
        )
    coalition = Coalition.of(asked)
    client = named_party(left(coalition.names, federation.parties), asked.target)
    view = _view(asked, config, federation, coalition, client)
    estimate = carried_out(asked.attack, view, asked.name, config.seed)
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


def _view(
    asked: Request, config: ServerConfig, federation: HorizontalAgreement, coalition: Coalition, client: str
) -> ServerView:
    """What the server and those that collude with it see of ``client``."""
    transcript = Reader(asked.folder / "transcript")
    seen, known = _uncovered(federation, transcript, coalition.parties[1:])
    return server_view(
        asked.attack,
        known,
        party=config.party,
        target=client,
        parameters=parameters_of(federation, load_arrays(asked.folder / "own.npz"), transcript),
        transcript=seen,
        every=config.transcript.every,
        device=config.device,
        progress=asked.progress,
    )


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
    clear = federation.horizontal.model_copy(update={"secure_aggregation": False})
    log = UnmaskedLog(federation, transcript, received, maskings)
    return log, replace(federation, horizontal=clear)


def _masking(member: Colluder) -> Masking:
    secret, config = secret_from_seed(member.config.seed), member.config
    return masking_of(secret, start_nonce(member.folder, lab=config.lab), config.run, config.party)
