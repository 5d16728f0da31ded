"""A party's configuration file: TOML, checked whole before the start."""

from __future__ import annotations

from os.path import realpath
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from pydantic import Field, TypeAdapter

from vflens.config.addresses import seen_from
from vflens.config.horizontal import ClientConfig, ServerConfig
from vflens.config.party import DataPartyConfig
from vflens.config.reading import read_toml, validate
from vflens.config.secrets import check_secrets
from vflens.config.vertical import ActiveConfig, CoordinatorConfig, PassiveConfig
from vflens.errors import ConfigError
from vflens.types import Role

DataConfig: TypeAlias = PassiveConfig | ActiveConfig | ClientConfig
LeaderConfig: TypeAlias = CoordinatorConfig | ServerConfig
MemberConfig: TypeAlias = PassiveConfig | ActiveConfig | CoordinatorConfig | ClientConfig | ServerConfig
AnyConfig = Annotated[MemberConfig, Field(discriminator="role")]
_ANY: TypeAdapter[MemberConfig] = TypeAdapter(AnyConfig)


def load_party(file: Path) -> MemberConfig:
    """The party's configuration in ``file``; relative paths in it are relative to the file's folder.

    Raises:
        ConfigError: unreadable, not TOML, or a setting that is missing, unknown or out of range; outside lab
            mode also secrets that are weak or in a file that other users can open.
    """
    config = checked(read_toml(file), file)
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
    if isinstance(config, DataPartyConfig):
        updates["data"] = config.data.model_copy(update={"file": Path(realpath(base / config.data.file))})
    if isinstance(config, ActiveConfig) and config.public is not None:
        public = Path(realpath(base / config.public.file))
        updates["public"] = config.public.model_copy(update={"file": public})
    return config.model_copy(update=updates)


def checked(settings: dict[str, Any], file: Path) -> MemberConfig:
    """The party's configuration from ``settings`` of ``file``, with unchanged paths.

    Raises:
        ConfigError: a setting that is missing, unknown or out of range.
    """
    role = settings.get("role")
    if role not in [str(r) for r in Role if r is not Role.OPERATOR]:
        raise ConfigError(
            f"{file}: role is {'missing' if role is None else repr(role)}: a party is passive, active, "
            "coordinator, client or server (an experiment has none, `vflens run` takes it)"
        )
    return validate(_ANY, settings, str(file))
