"""Checks that the leader's federation is the one of a data party's configuration."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from vflens.config import MIB, ActiveConfig, ClientConfig, DataConfig, Limits, PassiveConfig
from vflens.errors import ConfigError, ProtocolError
from vflens.protocol.agreement import Agreement
from vflens.protocol.federation import Federation
from vflens.protocol.horizontal import HorizontalFederation
from vflens.protocol.model_size import memory, widest
from vflens.types import Array, ColumnInfo, PartyInfo, Role

#: What makes the passes over its rows, by the role of a party.
_PASSES = {
    Role.PASSIVE: "training.epochs",
    Role.ACTIVE: "training.epochs",
    Role.CLIENT: "local epochs of all rounds",
}


def check_membership(
    federation: Federation, config: PassiveConfig | ActiveConfig, columns: Sequence[ColumnInfo]
) -> None:
    """Refuse a vertical federation with another description of the party, whose columns are ``columns``.

    Raises:
        ProtocolError, ConfigError: names the difference.
    """
    mine = _described(federation, config)
    if mine is None or mine.columns != columns:
        raise _unknown(federation, config)
    check_limits(federation, mine, config.limits)
    _check_alike(federation, config)
    if federation.aggregator != config.aggregator:
        raise ConfigError(
            f"aggregator = {config.aggregator!r} at {config.party!r} and {federation.aggregator!r} at the "
            "coordinator: set it alike at every party"
        )
    if federation.direct and federation.scored_by_coordinator:
        raise ProtocolError(
            f"{federation.model.title} with aggregator 'active': its scores leave at the coordinator"
        )
    if federation.direct and isinstance(config, ActiveConfig):
        _check_reached(federation, config)


def check_client(federation: HorizontalFederation, config: ClientConfig, info: PartyInfo) -> None:
    """Refuse a horizontal federation with another description of the client than its own ``info``.

    Raises:
        ProtocolError, ConfigError: names the difference.
    """
    if _described(federation, config) != info:
        raise _unknown(federation, config)
    check_limits(federation, info, config.limits)
    _check_alike(federation, config)
    federation.check_keys()  # its own tells whether it agreed to masks


def _described(federation: Agreement, config: DataConfig) -> PartyInfo | None:
    """The federation's description of the party of ``config``, if it has one of its role."""
    found = (p for p in federation.parties if p.name == config.party and p.role is Role(config.role))
    return next(found, None)


def _unknown(federation: Agreement, config: DataConfig) -> ProtocolError:
    return ProtocolError(
        f"run {federation.run!r} does not know {config.role} {config.party!r} with its columns: describe "
        "it anew"
    )


def _check_alike(federation: Agreement, config: DataConfig) -> None:
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
            f"{federation.epochs} epochs: choose a divisor"
        )


def check_limits(federation: Agreement, party: PartyInfo, limits: Limits) -> None:
    """Refuse a run beyond ``party``'s own limits, before building its model.

    Raises:
        ConfigError: naming the limit; or the network does not fit the columns.
    """
    training, mib = federation.training, math.ceil(memory(federation, party) / MIB)
    for what, value, limit, most in (
        (_PASSES[party.role], federation.local_passes, "epochs", limits.epochs),
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


def _check_reached(federation: Federation, config: ActiveConfig) -> None:
    """Refuse to aggregate for passive parties that are no peers."""
    reached = {peer.name for peer in config.peers_of(Role.PASSIVE)}
    missing = [p.name for p in federation.passive if p.name not in reached]
    if missing:
        raise ConfigError(
            f"peers of {config.party!r} lack passive party {missing[0]!r}, whose embeddings it asks for: "
            "name it with address and token"
        )


def check_order(order: Array, federation: Federation, rows: int) -> None:
    """Refuse an alignment that does not fit a file of ``rows`` rows; ``order`` int32 (N,) are its rows in
    aligned order.

    Raises:
        ProtocolError: names the misfit.
    """
    if len(order) != federation.rows or len(np.unique(order)) != len(order):
        raise ProtocolError(
            f"the aligned order names {len(order)} rows, {federation.rows} distinct ones were announced"
        )
    if len(order) and (order.min() < 0 or order.max() >= rows):
        raise ProtocolError(f"the aligned order names row {int(order.max())} of a file with {rows} rows")
    split = np.concatenate([federation.train, federation.predict])
    if (
        len(split) != len(np.unique(split))
        or split.min(initial=0) < 0
        or split.max(initial=-1) >= federation.rows
    ):
        raise ProtocolError("training and prediction rows overlap or lie outside the aligned rows")
    if not len(federation.train) or not len(federation.predict):
        raise ProtocolError(
            "a federation without training or without prediction rows: both need at least one"
        )
