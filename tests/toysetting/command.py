"""``vflens`` with the third setting: ``python -m toysetting.command run FILE``."""

from __future__ import annotations

from typing import Any

from toysetting import config, experiment, member
from vflens.cli.main import main
from vflens.config import loading as configurations
from vflens.experiments.pages import report
from vflens.experiments.run import check, loading, processes
from vflens.experiments.verify_log import rules
from vflens.protocol import roles
from vflens.services import members, noted

_ALONE, _SOLO = config.ALONE, config.SOLO
#: Nothing crosses a wire, so no two logs are compared.
NO_RULES = rules.Rules(
    recorded=lambda sender, receiver, point: False,
    predicted=lambda sender, receiver, point: False,
    compare=lambda run, found: None,
)
#: Every table that check, run, status, report and verify-log look a setting or a role up in, by its name.
ENTRIES: tuple[tuple[str, Any, Any, Any], ...] = (
    ("SETTINGS", roles.SETTINGS, _ALONE, config.SETTING_FACTS),
    ("ROLES", roles.ROLES, _SOLO, config.ROLE_FACTS),
    ("CONFIGS", configurations.CONFIGS, _SOLO, config.SoloConfig),
    ("LEADERS", members.LEADERS, _SOLO, member.Solo),
    ("STEPS", noted.STEPS, _ALONE, lambda federation: federation["training"]["epochs"]),
    ("KINDS", loading.KINDS, _ALONE, experiment.LoneExperiment),
    ("CHECKS", check.CHECKS, _ALONE, experiment.check_alone),
    ("RULES", rules.RULES, _ALONE, NO_RULES),
    ("CLEAR", report.CLEAR, _ALONE, lambda known: "Nothing crosses a wire."),
)

for _, _table, _key, _entry in ENTRIES:
    _table[_key] = _entry
processes.ENTRY = __name__ if __name__ != "__main__" else "toysetting.command"

if __name__ == "__main__":
    main()
