"""A party's configuration file: TOML, checked whole before the start."""

from collections.abc import Mapping
from os.path import realpath
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from vflens.config.horizontal import ClientConfig, ServerConfig
from vflens.config.party import PartyConfig
from vflens.config.plans import without_plans
from vflens.config.reading import read_toml, validate
from vflens.config.secrets import check_secrets
from vflens.config.vertical import ActiveConfig, CoordinatorConfig, PassiveConfig
from vflens.errors import ConfigError
from vflens.names import one_of
from vflens.tables.description import PartyFile
from vflens.types import Role

#: What the configuration of each role is.
CONFIGS: Mapping[Role, type[PartyConfig]] = {
    Role.PASSIVE: PassiveConfig,
    Role.ACTIVE: ActiveConfig,
    Role.COORDINATOR: CoordinatorConfig,
    Role.CLIENT: ClientConfig,
    Role.SERVER: ServerConfig,
}


def load_party(file: Path) -> PartyConfig:
    """The party's configuration in ``file``; relative paths in it are relative to the file's folder.

    Raises:
        ConfigError: unreadable, not TOML, or a setting that is missing, unknown or out of range; outside lab
            mode also secrets that are weak or in a file that other users can open.
    """
    config = checked(without_plans(read_toml(file)), file)
    if not config.lab:
        check_secrets(file, config.secrets())
    base = file.resolve().parent
    updates: dict[str, Any] = {
        "out": Path(realpath(base / config.out)),
        "address": seen_from(base, config.address),
        "peers": tuple(p.model_copy(update={"address": seen_from(base, p.address)}) for p in config.peers),
    }
    if config.tls is not None:
        # A link stays one: whoever renews the certificate may let it lead to the next file.
        files = {name: base / file for name, file in config.tls}
        updates["tls"] = config.tls.model_copy(update=files)
    for name, value in config:
        if isinstance(value, PartyFile):
            updates[name] = value.model_copy(update={"file": Path(realpath(base / value.file))})
    return config.model_copy(update=updates)


def load_description(file: Path) -> PartyFile:
    """The description of a table alone, the keys of a party's ``[data]``; its file is relative to the folder.

    Raises:
        ConfigError: unreadable, not TOML, or a setting that is missing, unknown or out of range.
    """
    spec = validate(TypeAdapter(PartyFile), without_plans(read_toml(file)), str(file))
    return spec.model_copy(update={"file": file.resolve().parent / spec.file})


def checked(settings: dict[str, Any], file: Path) -> PartyConfig:
    """The party's configuration from ``settings`` of ``file``, with unchanged paths.

    Raises:
        ConfigError: a setting that is missing, unknown or out of range.
    """
    role = settings.get("role")
    kind = next((kind for named, kind in CONFIGS.items() if named == role), None)
    if kind is None:
        raise ConfigError(
            f"{file}: role is {'missing' if role is None else repr(role)}: a party is {one_of(CONFIGS)} "
            "(an experiment has none, `vflens run` takes it)"
        )
    return validate(TypeAdapter(kind), settings, str(file))


def seen_from(base: Path, address: str) -> str:
    """``address`` with the path of a Unix socket relative to ``base``."""
    path = address.removeprefix("unix:")
    return address if path in (address, "") or path.startswith("/") else f"unix:{realpath(base / path)}"
