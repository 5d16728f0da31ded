"""Configurations, checked whole before the start.

* :mod:`vflens.config.reading` – a TOML file as checked settings, or one sentence per wrong field.
* :mod:`vflens.config.settings` – the parts: peers, plug-ins, disclosures, scoring, limits.
* :mod:`vflens.config.party` – what all parties' settings share; :mod:`vflens.config.vertical` and
  :mod:`vflens.config.horizontal` – those of the roles of each setting.
* :mod:`vflens.config.loading` – a party's file; :mod:`vflens.config.plans` – the plans in it.
"""

from vflens.config.horizontal import (
    MALICIOUS_SERVER,
    ClientConfig,
    ServerConfig,
    check_absence,
    check_client_grants,
    check_method,
    check_rounds,
)
from vflens.config.loading import load_description, load_party
from vflens.config.party import (
    DEVICE,
    MODEL,
    OPERATOR,
    DataPartyConfig,
    Device,
    LeaderConfig,
    LedConfig,
    PartyConfig,
    is_local,
)
from vflens.config.plans import plan_table
from vflens.config.reading import describe_problem, read_toml, validate
from vflens.config.settings import (
    MIB,
    AttackTable,
    Disclosure,
    Limits,
    MemberRole,
    MetricsPage,
    Peer,
    Plugin,
    Recording,
    Scoring,
    Settings,
    Tls,
    build_plugins,
    check_attacks,
)
from vflens.config.vertical import (
    AGGREGATOR,
    ATTACKED_ROWS,
    MALICIOUS,
    ActiveConfig,
    Align,
    CoordinatorConfig,
    PassiveConfig,
    VerticalConfig,
    VerticalDataConfig,
    check_aggregator,
    check_sampling,
)
from vflens.names import Name

__all__ = [
    "AGGREGATOR",
    "ATTACKED_ROWS",
    "DEVICE",
    "MALICIOUS",
    "MALICIOUS_SERVER",
    "MIB",
    "MODEL",
    "OPERATOR",
    "ActiveConfig",
    "Align",
    "AttackTable",
    "ClientConfig",
    "CoordinatorConfig",
    "DataPartyConfig",
    "Device",
    "Disclosure",
    "LeaderConfig",
    "LedConfig",
    "Limits",
    "MemberRole",
    "MetricsPage",
    "Name",
    "PartyConfig",
    "PassiveConfig",
    "Peer",
    "Plugin",
    "Recording",
    "Scoring",
    "ServerConfig",
    "Settings",
    "Tls",
    "VerticalConfig",
    "VerticalDataConfig",
    "build_plugins",
    "check_absence",
    "check_aggregator",
    "check_attacks",
    "check_client_grants",
    "check_method",
    "check_rounds",
    "check_sampling",
    "describe_problem",
    "is_local",
    "load_description",
    "load_party",
    "plan_table",
    "read_toml",
    "validate",
]
