"""Attacks on the answers of an active party, by who gets them."""

from __future__ import annotations

from vflens.config import OPERATOR, ActiveConfig, LedConfig
from vflens.errors import ConfigError
from vflens.experiments.offline.command import carried_out, certificates
from vflens.experiments.offline.copied import private_copy
from vflens.experiments.offline.request import Request
from vflens.experiments.results.folders import read_party
from vflens.member.adversary import save_estimate
from vflens.protocol.acts import Submission
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.recorded.vertical.view import view_of
from vflens.score.service import disabled
from vflens.services.members import operator_of
from vflens.storage.journal import Messages
from vflens.storage.private import owner_only
from vflens.types import Document, Phase


def attack_answers(asked: Request) -> Document:
    """Tell people who trained from the answers of the active party, whose folder it is.

    Raises:
        ConfigError: the folder is another party's, or others are to collude.
        VflensError: as :func:`vflens.experiments.offline.attack.attack_recorded`.
    """
    config, federation = asked.config, asked.federation
    assert isinstance(federation, VerticalAgreement)
    if not isinstance(config, ActiveConfig) or asked.together or asked.target not in (None, config.party):
        raise ConfigError(
            f"membership is asked of the answers of {federation.active.name!r} alone: give its folder, "
            "without --with or another --target"
        )
    log = _answers(config)
    view = view_of(
        asked.attack,
        federation,
        party=OPERATOR,
        target=config.party,
        rows=log[0].rows,
        transcript=log,
        own={},
        every=1,
        device=config.device,
        progress=asked.progress,
    )
    estimate = carried_out(asked.attack, view, asked.name, config.seed)
    with owner_only():
        save_estimate(
            asked.out,
            estimate,
            run=federation.run,
            adversary=OPERATOR,
            attack=asked.name,
            scored=Phase.PREDICT,
            estimates=asked.attack.estimates,
        )
    return {
        "attack": asked.name,
        "target": config.party,
        "scored_set": Phase.PREDICT.value,
        "rows": len(estimate.rows),
        "estimate": str(asked.out),
        **certificates(estimate),
    }


def score_answers(config: LedConfig, guess: Submission) -> None:
    """Score a ``guess`` of membership at the active party of ``config``, its target.

    Raises:
        StateError: it does not score.
        ProtocolError: the guess is of other candidates.
    """
    assert isinstance(config, ActiveConfig)
    if not config.scoring.enabled:
        raise disabled()
    in_process = read_party(config.out).federation.in_process
    with operator_of(config, in_process=in_process) as operator:
        operator.score(guess)


def _answers(config: ActiveConfig) -> Messages:
    in_process = read_party(config.out).federation.in_process
    with private_copy(config.out) as copy:
        own = config.model_copy(update={"out": copy})
        with operator_of(own, in_process=in_process) as operator:
            return operator.told()
