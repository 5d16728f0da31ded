"""Checks that the coordinator's federation is protected as a party's configuration says."""

from vflens.config import ActiveConfig, PassiveConfig
from vflens.errors import ConfigError, ProtocolError
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.protocol.vertical.shares import check_protection
from vflens.words import counted


def check_agreed_protection(federation: VerticalAgreement, config: PassiveConfig | ActiveConfig) -> None:
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
