"""Reads a configuration: a TOML file, checked whole; a refusal is one sentence without secrets."""

import re
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from vflens.errors import ConfigError
from vflens.names import did_you_mean
from vflens.storage.json_file import in_words, worded
from vflens.storage.regular import MOST_TOML, read_bytes

T = TypeVar("T")
_DATA = ("[data]", "[data.")  # the headers of a party's table
_LONG_TEXT = ('"""', "'''")  # in which a line may look like a header
_NUL = ("\\u0000", "\\U0000")  # TOML has it in no other way
_SECRET = re.compile("token|seed(?!s)|key")  # `seeds` is a number of repetitions


def read_toml(file: Path) -> dict[str, Any]:
    """The TOML document in ``file``.

    Raises:
        ConfigError: it cannot be read or is not TOML.
    """
    try:
        text = read_bytes(file, MOST_TOML).decode("utf-8-sig")  # some editors put a mark at the start
        settings = toml(text)
    except OSError as error:
        raise ConfigError(
            f"configuration {file} cannot be read ({in_words(error)}): check the path"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"configuration {file} is not TOML: {error}") from error
    except RecursionError:
        raise ConfigError(f"configuration {file} is not TOML: it is nested too deeply") from None
    if any(mark in text for mark in _NUL):
        _refuse_nul(settings, str(file))
    return settings


def toml(text: str) -> dict[str, Any]:
    """The TOML document ``text``; what it says of columns is shared with others that say the same, not to be
    changed: to read it of 784 columns takes 60 ms, and clients have their columns in common.

    Raises:
        tomllib.TOMLDecodeError: it is none.
    """
    parts = [] if any(mark in text for mark in _LONG_TEXT) else re.split(r"(?m)^(?=\[)", text)
    with suppress(tomllib.TOMLDecodeError):
        found = tomllib.loads("".join(part for part in parts if not part.startswith(_DATA)))
        if parts and "data" not in found:
            data = _document("".join(part for part in parts if part.startswith(_DATA)))
            return {**found, **{name: dict(value) for name, value in data.items()}}
    return tomllib.loads(text)


@lru_cache(maxsize=4)
def _document(text: str) -> dict[str, Any]:
    return tomllib.loads(text)


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
        raise refused(error, source, settings_of(adapter.core_schema), data=data) from None


def settings_of(schema: Any) -> Iterator[str]:
    """The names of all settings, of tables in tables too, in a core schema of pydantic."""
    if isinstance(schema, dict):
        if schema.get("type") in {"model-fields", "dataclass-args"}:
            fields = schema["fields"]
            yield from fields if isinstance(fields, dict) else (f["name"] for f in fields)
        schema = list(schema.values())
    if isinstance(schema, list | tuple):
        for part in schema:
            yield from settings_of(part)


def refused(
    error: ValidationError,
    source: str,
    known: Iterable[str] = (),
    kind: type[BaseModel] | None = None,
    data: Any = None,
) -> ConfigError:
    """``error`` of ``data`` in our words; wrong names beside ``known`` ones, or all of ``kind``."""
    names, found = list(known), error.errors()
    shown = [{**e, "loc": tuple(_place(e["loc"], data))} for e in found if not _follows(e, found)]
    problems = "; ".join(describe_problem(e, names) for e in shown[:5])
    if kind is None or all(e["type"] != "extra_forbidden" for e in error.errors()):
        return ConfigError(f"{source}: {problems}")
    return ConfigError(
        f"{source}: {problems}: it has {', '.join(sorted(kind.model_fields)) or 'no parameters'}"
    )


def _place(place: Iterable[Any], data: Any) -> Iterator[Any]:
    """``place`` in ``data`` without the kinds that pydantic puts behind the name of a table of several."""
    shown = False
    for step in place:
        table = data if isinstance(data, dict) else {}
        shown = not shown and table.get("kind") == step
        if not shown:
            yield step
            data = table.get(step)


def _follows(problem: Any, problems: Iterable[Any]) -> bool:
    """Whether a list is too short only since pydantic left out what is wrong in it."""
    place = problem["loc"]
    inner = any(p["loc"][: len(place)] == place and len(p["loc"]) > len(place) for p in problems)
    return problem["type"] == "too_short" and inner


def describe_problem(problem: Any, known: Iterable[str] = ()) -> str:
    """One pydantic error as field, message and value; values of secrets are left out.

    A wrong name is compared with ``known``.
    """
    where = ".".join(map(str, problem["loc"])) or "configuration"
    # The value of an unknown key may be a secret with a misspelt key.
    unknown = problem["type"] == "extra_forbidden"
    words = worded(where, problem, hidden=unknown or _SECRET.search(where) is not None)
    if problem["type"] == "union_tag_invalid":
        about = problem["ctx"]
        return words + did_you_mean(about["tag"], re.findall(r"\w+", about["expected_tags"]))
    if problem["type"] == "literal_error":
        return words + did_you_mean(str(problem["input"]), re.findall("'(.*?)'", problem["ctx"]["expected"]))
    return words + did_you_mean(str(problem["loc"][-1]), known) if unknown else words
