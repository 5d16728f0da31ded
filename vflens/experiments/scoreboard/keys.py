"""The keys of results: a digest of what was set, and one of the code that decides something of it."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from vflens.errors import ConfigError
from vflens.experiments.scoreboard.grid import FEDERATIONS, UNDEFENDED, Place
from vflens.experiments.scoreboard.sources import digest
from vflens.plugins.attack import installed_attack
from vflens.plugins.malicious import breaks_protocol
from vflens.registry import ATTACKS, DATASETS, DEFENSES, MODELS, Registry
from vflens.types import Document

#: Attack → the key of its result, and its table in the experiment; :data:`COST` has none.
Keyed = dict[str, tuple[str, Document]]
COST = "cost"  # stands for an attack in rows of runs without attacks
#: The code of protected training: it decides nothing elsewhere.
_PROTECTION = "vflens.numerics.shares."


@cache
def sends(attack: str) -> bool:
    """Whether ``attack`` breaks the protocol: its party sends other things than are due."""
    kind = installed_attack(attack)
    return kind is not None and breaks_protocol(kind)


def experiment_of(settings: Document, attacks: Iterable[str]) -> Document:
    """The experiment of a place's ``settings``, which says so if one of ``attacks`` breaks the protocol."""
    return {**settings, **({"malicious": True} if any(map(sends, attacks)) else {})}


def keyed(place: Place, attacks: Sequence[str]) -> Keyed:
    """Those of ``attacks`` that fit ``place``, each with the key of its result there: a digest of settings,
    "-", and one of the code of its plug-ins.
    """
    tables = {name: _table(place.federation, place.data, name) for name in attacks}
    return with_keys(place, {name: table for name, table in tables.items() if table is not None})


def with_keys(place: Place, tables: Mapping[str, Document]) -> Keyed:
    """What :func:`keyed` gives, for attacks by their ``tables``."""
    settings = place.settings()
    family = settings.get("model", {}).get("family", "softmax_regression")
    apart = _apart(family, protected="protection" in settings["training"])
    code = [_code(DATASETS, place.data, apart), _code(MODELS, family, apart)]
    if place.defense != UNDEFENDED:
        code.append(_code(DEFENSES, place.defense, apart))

    def key(name: str, table: Document) -> str:
        own = _code(ATTACKS, name, apart) if table else ""
        return f"{_digest([experiment_of(settings, [name]), table])}-{_digest([*code, own])}"

    return {name: (key(name, table), table) for name, table in tables.items()}


@cache
def _apart(family: str, *, protected: bool) -> tuple[str, ...]:
    """The modules that decide nothing where ``family`` is trained: other families, and protected training."""
    others = (MODELS.get(name).__module__ for name in MODELS.names() if name != family)
    return (*others, *(() if protected else (_PROTECTION,)))


@cache  # a scoreboard asks for thousands, and a registry reads its folder each time
def _table(federation: str, data: str, attack: str) -> Document | None:
    return {} if attack == COST else FEDERATIONS[federation].attack(attack, data)


@cache
def _code(registry: Registry, name: str, apart: tuple[str, ...]) -> str:
    """A digest of the code of a plug-in; "" where it needs an extra that is not installed."""
    try:
        return digest(registry.get(name), apart)
    except ConfigError:
        return ""


def _digest(parts: Sequence[Any]) -> str:
    return hashlib.blake2b(json.dumps(parts, sort_keys=True).encode(), digest_size=12).hexdigest()
