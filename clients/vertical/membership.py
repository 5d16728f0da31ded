"""Checks that the coordinator's federation is the one of a vertical party's configuration."""

from collections.abc import Sequence

import numpy as np

from vflens.array import distinct
from vflens.clients.membership import check_limits, check_settings, described, unknown
from vflens.config import ActiveConfig, PassiveConfig
from vflens.errors import ConfigError, ProtocolError
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.protocol.vertical.shares import check_protection
from vflens.types import Array, ColumnInfo, Role
from vflens.words import counted


def check_membership(
    federation: VerticalAgreement, config: PassiveConfig | ActiveConfig, columns: Sequence[ColumnInfo]
) -> None:
    """Refuse a federation with another description of the party, whose columns are ``columns``.

    Raises:
        ProtocolError, ConfigError: names the difference.
    """
    mine = described(federation, config)
    if mine is None or mine.columns != columns:
        raise unknown(federation, config)
    check_limits(federation, mine, config.limits)
    check_settings(federation, config)
    if federation.aggregator != config.aggregator:
        raise ConfigError(
            f"aggregator = {config.aggregator!r} at {config.party!r} and {federation.aggregator!r} at the "
            "coordinator: set it alike at every party"
        )
    _check_protection(federation, config)
    if federation.direct and federation.scored_by_coordinator:
        raise ProtocolError(
            f"{federation.model.title} with aggregator 'active': its scores leave at the coordinator"
        )
    if federation.led_by_active and isinstance(config, ActiveConfig):
        _check_reached(federation, config)


def _check_reached(federation: VerticalAgreement, config: ActiveConfig) -> None:
    """Refuse to aggregate for passive parties that are no peers."""
    reached = {peer.name for peer in config.peers_of(Role.PASSIVE)}
    missing = [p.name for p in federation.passive if p.name not in reached]
    if missing:
        raise ConfigError(
            f"peers of {config.party!r} lack passive party {missing[0]!r}, whose embeddings it asks for: "
            "name it with address and token"
        )


def check_order(order: Array, federation: VerticalAgreement, rows: int) -> None:
    """Refuse an alignment that does not fit a file of ``rows`` rows; ``order`` int32 (N,) are its rows in
    aligned order.

    Raises:
        ProtocolError: names the misfit.
    """
    if len(order) != federation.rows or len(distinct(order)) != len(order):
        raise ProtocolError(
            f"the aligned order names {counted(len(order), 'row')}, {federation.rows} distinct ones were "
            "announced"
        )
    if len(order) and (order.min() < 0 or order.max() >= rows):
        raise ProtocolError(
            f"the aligned order names row {int(order.max())} of a file with {counted(rows, 'row')}"
        )
    split = np.concatenate([federation.train, federation.predict])
    if (
        len(split) != len(distinct(split))
        or split.min(initial=0) < 0
        or split.max(initial=-1) >= federation.rows
    ):
        raise ProtocolError("training and prediction rows overlap or lie outside the aligned rows")
    if not len(federation.train) or not len(federation.predict):
        raise ProtocolError(
            "a federation without training or without prediction rows: both need at least one"
        )


def _check_protection(federation: VerticalAgreement, config: PassiveConfig | ActiveConfig) -> None:
    """Refuse another protection than the party's.

    Raises:
        ProtocolError, ConfigError: names the difference.
    """
    if federation.training.protection != config.protection:
        raise ConfigError(
            f"protection = {config.protection!r} at {config.party!r} and training.protection = "
            f"{federation.training.protection!r} at the coordinator: set it alike at every party"
        )
    if federation.training.is_protected:
        _check_protected(federation)


def _check_protected(federation: VerticalAgreement) -> None:
    """Refuse a protected training that cannot be one: the coordinator may be another's.

    Raises:
        ProtocolError: names the setting, or the party without a key.
    """
    try:
        check_protection(federation.model, federation.training)
    except ValueError as error:
        raise ProtocolError(str(error)) from None
    keyless = [p.name for p in federation.passive if not p.mask_key]
    if keyless:
        raise ProtocolError(
            f"protection = 'none' at passive party {keyless[0]!r}, which sent no key of masks, and "
            "training.protection = 'shares' at the coordinator: set it alike at every party"
        )
    if federation.n_classes < 2 and federation.active.label is None:
        raise ProtocolError(f"protected training of {counted(federation.n_classes, 'class')}: two are due")
