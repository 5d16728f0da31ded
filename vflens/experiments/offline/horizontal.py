"""Attacks on the record of a horizontal run."""

from __future__ import annotations

from vflens.config import ServerConfig
from vflens.errors import ConfigError
from vflens.experiments.offline.command import (
    carried_out,
    certificates,
    named_party,
)
from vflens.experiments.offline.request import Request
from vflens.member.adversary import save_estimate
from vflens.protocol.acts import metrics_of
from vflens.protocol.horizontal.agreement import HorizontalAgreement
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
    transcript = Reader(asked.folder / "transcript")
    client = named_party([p.name for p in federation.parties], asked.target)
    view = server_view(
        asked.attack,
        federation,
        party=config.party,
        target=client,
        parameters=parameters_of(federation, load_arrays(asked.folder / "own.npz"), transcript),
        transcript=transcript,
        every=config.transcript.every,
        device=config.device,
        progress=asked.progress,
    )
    estimate = carried_out(asked.attack, view, asked.name, config.seed)
    step = view.round if asked.attack.estimated_round else None
    facts = {"run": federation.run, "adversary": config.party, "attack": asked.name}
    scored = scored_set(asked.attack)
    with owner_only():  # the guess of the target's rows
        estimates = asked.attack.estimates
        save_estimate(asked.out, estimate, **facts, scored=scored, estimates=estimates, step=step)
    return {
        "attack": asked.name,
        "target": client,
        "scored_set": metrics_of(scored, step),
        "rows": len(estimate.rows),
        "estimate": str(asked.out),
        **({"granted": sorted(view.granted)} if view.granted else {}),
        **certificates(estimate),
    }
