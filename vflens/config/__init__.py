"""Configurations, checked whole before the start.

* :mod:`vflens.config.reading` – a TOML file as checked settings, or one sentence per wrong field.
* :mod:`vflens.config.settings` – the parts: peers, plug-ins, disclosures, scoring, limits.
* :mod:`vflens.config.addresses` – addresses of parties.
* :mod:`vflens.config.party` – the settings of a passive party, the active one, the coordinator.
"""

from vflens.config.addresses import is_local
from vflens.config.party import (
    AGGREGATOR,
    ATTACKED_ROWS,
    DEVICE,
    MODEL,
    OPERATOR,
    ActiveConfig,
    CoordinatorConfig,
    DataConfig,
    DataPartyConfig,
    Device,
    LeaderConfig,
    MemberConfig,
    PartyConfig,
    PassiveConfig,
    VerticalConfig,
    VerticalDataConfig,
    check_aggregator,
    check_sampling,
    load_party,
)
from vflens.config.reading import describe_problem, read_toml, validate
from vflens.config.settings import (
    MIB,
    Disclosure,
    Limits,
    MetricsPage,
    Peer,
    Plugin,
    Recording,
    Scoring,
    Settings,
    Tls,
    build_plugins,
)
from vflens.names import Name

__all__ = [
    "AGGREGATOR",
    "ATTACKED_ROWS",
    "DEVICE",
    "MIB",
    "MODEL",
    "OPERATOR",
    "ActiveConfig",
    "CoordinatorConfig",
    "DataConfig",
    "DataPartyConfig",
    "Device",
    "Disclosure",
    "LeaderConfig",
    "Limits",
    "MemberConfig",
    "MetricsPage",
    "Name",
    "PartyConfig",
    "PassiveConfig",
    "Peer",
    "Plugin",
    "Recording",
    "Scoring",
    "Settings",
    "Tls",
    "VerticalConfig",
    "VerticalDataConfig",
    "build_plugins",
    "check_aggregator",
    "check_sampling",
    "describe_problem",
    "is_local",
    "load_party",
    "read_toml",
    "validate",
]
