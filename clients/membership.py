"""Checks that the leader's federation is the one of a data party's configuration, whatever the setting."""

import math

from vflens.config import MIB, LedConfig, Limits
from vflens.errors import ConfigError, ProtocolError
from vflens.protocol.agreement import Agreement
from vflens.protocol.model_size import memory, widest
from vflens.protocol.roles import SETTINGS
from vflens.types import PartyInfo
from vflens.words import counted


def described(federation: Agreement, config: LedConfig) -> PartyInfo | None:
    """The federation's description of the party of ``config``, if it has one of its role."""
    found = (p for p in federation.parties if p.name == config.party and p.role is config.role)
    return next(found, None)


def unknown(federation: Agreement, config: LedConfig) -> ProtocolError:
    """The refusal of a federation that describes the party of ``config`` otherwise."""
    return ProtocolError(
        f"run {federation.run!r} does not know {config.role} {config.party!r} with its columns: describe "
        "it anew"
    )


def check_settings(federation: Agreement, config: LedConfig) -> None:
    """Refuse other settings than the leader's, and a sampling that leaves out the end of training."""
    if federation.lab != config.lab:
        raise ConfigError(
            f"lab = {str(config.lab).lower()} at {config.party!r} and {str(federation.lab).lower()} at the "
            f"{config.leader.role}: set it alike at every party"
        )
    every = config.transcript.every
    if federation.epochs % every:
        raise ConfigError(
            f"transcript.every = {every} at {config.party!r} leaves out the last of "
            f"{counted(federation.epochs, 'epoch')}: choose a divisor"
        )


def check_limits(federation: Agreement, party: PartyInfo, limits: Limits) -> None:
    """Refuse a run beyond ``party``'s own limits, before building its model.

    Raises:
        ConfigError: naming the limit; or the network does not fit the columns.
    """
    training, mib = federation.training, math.ceil(memory(federation, party) / MIB)
    for what, value, limit, most in (
        (SETTINGS[federation.setting].passes, federation.local_passes, "epochs", limits.epochs),
        ("the widest layer", widest(federation), "max_width", limits.max_width),
        ("MiB for rows, model and a step", mib, "memory_mib", limits.memory_mib),
    ):
        if value > most:
            raise ConfigError(
                f"{what}: {value} in run {federation.run!r}, limits.{limit} at {party.name!r} is {most}: "
                "train with less, or raise it"
            )
    if training.learning_rate < limits.min_learning_rate:
        raise ConfigError(
            f"training.learning_rate: {training.learning_rate:g} in run {federation.run!r}, "
            f"limits.min_learning_rate at {party.name!r} is {limits.min_learning_rate:g}: train with a "
            "larger one, or lower it"
        )
