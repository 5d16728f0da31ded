"""Reads a configuration: a TOML file, checked whole; a refusal is one sentence without secrets."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from vflens.errors import ConfigError
from vflens.names import REMEDIES
from vflens.storage.regular import MOST_TOML, read_bytes
from vflens.types import Role

T = TypeVar("T")
_SECRET = re.compile("token|seed(?!s)|key")  # `seeds` is a number of repetitions


def read_toml(file: Path) -> dict[str, Any]:
    """The TOML document in ``file``.

    Raises:
        ConfigError: it cannot be read or is not TOML.
    """
    try:
        text = read_bytes(file, MOST_TOML).decode("utf-8-sig")  # some editors put a mark at the start
        settings = tomllib.loads(text)
    except OSError as error:
        raise ConfigError(
            f"configuration {file} cannot be read ({error.strerror}): check the path"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"configuration {file} is not TOML: {error}") from error
    except RecursionError:
        raise ConfigError(f"configuration {file} is not TOML: it is nested too deeply") from None
    _refuse_nul(settings, str(file))
    return settings


def _refuse_nul(value: Any, where: str) -> None:
    """Refuse the character NUL, which no path, address or name may hold."""
    if isinstance(value, dict):
        for key, inner in value.items():
            _refuse_nul(key, where)
            _refuse_nul(inner, f"{where}: {key}")
    elif isinstance(value, list):
        for inner in value:
            _refuse_nul(inner, where)
    elif isinstance(value, str) and "\0" in value:
        raise ConfigError(f"{where}: the text holds the character NUL: remove it")


def validate(adapter: TypeAdapter[T], data: Any, source: str) -> T:
    """``data`` checked by ``adapter``.

    Raises:
        ConfigError: one sentence per wrong field, with its name and value, without secrets.
    """
    try:
        return adapter.validate_python(data)
    except ValidationError as error:
        raise refused(error, source) from None


def refused(error: ValidationError, source: str, kind: type[BaseModel] | None = None) -> ConfigError:
    """``error`` in our words, with the fields of ``kind`` if a field is unknown."""
    problems = "; ".join(describe_problem(e) for e in error.errors()[:5])
    unknown = kind is not None and any(e["type"] == "extra_forbidden" for e in error.errors())
    known = sorted(kind.model_fields) if kind is not None and unknown else None
    if known is None:
        return ConfigError(f"{source}: {problems}")
    return ConfigError(f"{source}: {problems}: it has {', '.join(known) or 'no parameters'}")


def describe_problem(problem: Any) -> str:
    """One pydantic error as field, message and value; values of secrets are left out."""
    place = problem["loc"][1:] if problem["loc"][:1] and problem["loc"][0] in set(Role) else problem["loc"]
    where = ".".join(map(str, place)) or "configuration"
    message = str(problem["msg"]).removeprefix("Value error, ")
    message = REMEDIES.get(problem.get("ctx", {}).get("pattern"), message)
    value = problem["input"]
    # The value of an unknown key may be a secret with a misspelt key.
    secret = problem["type"] == "extra_forbidden" or _SECRET.search(where) is not None
    shown = "" if secret or isinstance(value, dict | list | tuple | BaseModel) else f" (got {value!r})"
    return f"{where}: {message}{shown}"
