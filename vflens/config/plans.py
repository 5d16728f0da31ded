"""Plans in the description of a table: what ``vflens audit`` and ``vflens release`` are to do with it."""

from pathlib import Path
from typing import Any

from vflens.config.reading import read_toml
from vflens.errors import ConfigError
from vflens.types import Role

#: The tables of a description that a command reads, and no run.
PLANS = ("audit", "release")
#: Whose configuration describes a table; None: the description alone.
_OWNERS = (None, Role.PASSIVE, Role.ACTIVE, Role.CLIENT)


def without_plans(settings: dict[str, Any]) -> dict[str, Any]:
    """``settings`` of a description, or of a party with a table, without the plans in it."""
    if settings.get("role") not in _OWNERS:
        return settings
    return {name: value for name, value in settings.items() if name not in PLANS}


def plan_table(source: Path, plan: str) -> dict[str, Any]:
    """The table ``plan`` of the description in ``source``; {} without one, and of another file.

    Raises:
        ConfigError: the description cannot be read, or ``plan`` is no table in it.
    """
    if source.suffix != ".toml":
        return {}
    stated = read_toml(source).get(plan, {})
    if not isinstance(stated, dict):
        raise ConfigError(
            f"{source}: {plan} = {stated!r}: write a table, [{plan}] with a setting on each line"
        )
    return stated
