"""The generated tables of the docs: ``python docs/tables.py`` writes them,
``tests/unit/house/test_generated_docs.py`` compares them.

A table stands between ``<!-- table: NAME -->`` and ``<!-- end -->``; NAME is ``access``, ``direct``,
``horizontal``, ``commands``, ``codes``, ``metrics``, a model, a file of ``docs/reproduced``: what ``vflens
reproduce NAME --json`` printed; or ``knows-DEFENCE``, a sentence on the attacks that are made for it.
"""

from __future__ import annotations

import json
import re
import textwrap
import tomllib
import types
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import click
import typer
from annotated_types import Ge, Gt, Le, Lt, MaxLen, MinLen
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from vflens import errors
from vflens.cli.main import app
from vflens.config import (
    ActiveConfig,
    Align,
    AttackTable,
    ClientConfig,
    CoordinatorConfig,
    Disclosure,
    Limits,
    MetricsPage,
    PartyConfig,
    PassiveConfig,
    Peer,
    Plugin,
    Recording,
    Scoring,
    ServerConfig,
    Tls,
    VerticalConfig,
)
from vflens.experiments.run.any_experiment import AttackAt, Data, DefenseAt, Grant, NetworkSettings, Scenario
from vflens.experiments.run.dealing import Columns, Fraction, ImageChannels, ImageHalves, ImageTiles, Window
from vflens.experiments.run.horizontal.dealt_rows import ClientRows
from vflens.experiments.run.horizontal.experiment import Group, HorizontalExperiment
from vflens.experiments.run.vertical.experiment import Experiment, Members
from vflens.experiments.sweeps.sweep_file import HorizontalSweep, Sweep, SweptDefense
from vflens.models.families.split_network import SplitNetwork
from vflens.models.settings import Horizontal, Training
from vflens.plugins.attack import installed_attack
from vflens.protocol.access import Access
from vflens.protocol.horizontal.access import HORIZONTAL_ACCESS
from vflens.protocol.roles import ROLES
from vflens.protocol.vertical.access import ACCESS, DIRECT_ACCESS, SHARES_ACCESS
from vflens.registry import ATTACKS, DEFENSES
from vflens.storage.metrics import Name
from vflens.tables.description import PartyFile
from vflens.types import Role
from vflens.wire.messages import RPCS

MODELS: tuple[type[BaseModel], ...] = (
    PartyConfig, VerticalConfig, PassiveConfig, ActiveConfig, CoordinatorConfig, Peer, Tls, Plugin,
    AttackTable,
    ClientConfig, ServerConfig, Align, Disclosure, Scoring, Recording, Limits, MetricsPage, PartyFile,
    Training, Horizontal, SplitNetwork,
    HorizontalExperiment, ClientRows, Group,
    Experiment, Data, Columns, Fraction, ImageHalves, ImageTiles, ImageChannels, Window, Members, Grant,
    AttackAt, Scenario, DefenseAt, NetworkSettings, Sweep, HorizontalSweep, SweptDefense,
)  # fmt: skip
#: Defence → the attacks that know it.
KNOWN = {
    defense: [
        a for a in ATTACKS.names() if (kind := installed_attack(a)) is not None and defense in kind.knows
    ]
    for defense in DEFENSES.names()
}
PAGES = (
    "commands.md", "configuration.md", "threat-models.md", "protocol.md", "run-folder.md", "reproduces.md",
    *(f"defenses/{defense}.md" for defense in KNOWN),
)  # fmt: skip
#: "more": command → where it is explained, and what else it does; "remedies": word of a code → what to do.
COMMANDS = tomllib.loads((Path(__file__).parent / "commands.toml").read_text(encoding="utf-8"))
REPRODUCED = {file.stem: file for file in sorted((Path(__file__).parent / "reproduced").glob("*.json"))}
_BLOCK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
_SIGNS: dict[type, tuple[str, str]] = {
    Ge: ("≥", "ge"), Gt: (">", "gt"), Le: ("≤", "le"), Lt: ("<", "lt"),
    MinLen: ("length ≥", "min_length"), MaxLen: ("length ≤", "max_length"),
}  # fmt: skip
_WORDS = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Path: "path",
    object: "any",
    Role: " or ".join(f"`{role}`" for role in ROLES),
}


def written(page: str) -> str:
    """``page`` with every table as it must be."""
    return _BLOCK.sub(lambda block: f"{block[1]}\n{table(block[2])}\n\n{block[3]}", page)


def table(name: str) -> str:
    """The table called ``name``."""
    made: dict[str, Callable[[], str]] = {
        "access": lambda: _access(ACCESS),
        "direct": lambda: _access({a: who for a, who in DIRECT_ACCESS.items() if who != ACCESS[a]}),
        "shares": lambda: _access({a: who for a, who in SHARES_ACCESS.items() if who != ACCESS[a]}),
        "horizontal": lambda: _access({a: who for a, who in HORIZONTAL_ACCESS.items() if who}),
        "commands": _commands,
        "codes": _codes,
        "metrics": lambda: _table(("metric", "what"), [(f"`{name}`", name.meaning) for name in Name]),
    }
    if name in made:
        return made[name]()
    if name in REPRODUCED:
        return _reproduced(json.loads(REPRODUCED[name].read_text(encoding="utf-8")))
    if name.startswith("knows-"):
        return _adaptive(KNOWN[name.removeprefix("knows-")])
    return _fields(next(m for m in MODELS if m.__name__ == name))


def _adaptive(attacks: Sequence[str]) -> str:
    if not attacks:
        return "**Adaptive attack**: nobody here knows one. What other attacks find is no bound."
    named = " and ".join(f"[{attack}](../attacks/{attack}.md)" for attack in attacks)
    return textwrap.fill(
        f"**Adaptive attack**: {named}.", 120, break_long_words=False, break_on_hyphens=False
    )


def _reproduced(facts: dict[str, Any]) -> str:
    """First what its printed attacks miss; the tables of a figure's page but for those of the paper alone;
    below them rows, epochs, seeds and grants.
    """
    missed = re.findall(r"[^ ].*? as printed has .*? the defence's\.", facts.get("lead", ""))
    own = [t for t in facts["tables"] if not re.search("as printed$|paper only$", t["title"])]
    parts = [part for t in own for part in (t["title"], _table(t["heads"], t["rows"]))]
    text, notes = (
        [textwrap.fill(t, 120, break_on_hyphens=False) for t in of] for of in (missed, facts["notes"])
    )
    return "\n\n".join([*text, *parts, *notes])


def _access(access: Access) -> str:
    rows = [
        (
            f"`{act.__name__}`",
            callers,
            ", ".join(sorted(answering)),
            "stream" if RPCS[act].stream else "call",
            _first(act),
        )
        for act, pairs in access.items()
        for callers, answering in _by_callers(pairs).items()
    ]
    return _table(("act", "who may ask", "who answers", "over gRPC", "what"), rows)


def _by_callers(pairs: frozenset[tuple[Any, Any]]) -> dict[str, set[str]]:
    """Who answers whom, those who are asked by the same callers together."""
    found: dict[str, set[str]] = {}
    for callee in sorted({callee for _, callee in pairs}):
        found.setdefault(", ".join(sorted(a for a, b in pairs if b == callee)), set()).add(callee)
    return found


def _commands() -> str:
    """A table for each panel of ``vflens --help``: commands, arguments, first paragraphs."""
    panels: dict[str, list[tuple[str, ...]]] = {}
    for panel, path, command in _walk(typer.main.get_command(app), ""):
        arguments = [_argument(p) for p in command.params if p.param_type_name == "argument"]
        line, more = " ".join(["vflens", path, *arguments]), COMMANDS["more"].get(path, "")
        panels.setdefault(panel, []).append((f"`{line}`", _summary(command.help), more))
    tables = [f"### {panel}\n\n{_table(('command', 'does', 'more'), rows)}" for panel, rows in panels.items()]
    return "\n\n".join(tables)


def _argument(given: Any) -> str:
    words = given.name.upper() + ("…" if given.nargs == -1 else "")
    return words if given.required else f"[{words}]"


def _summary(text: str) -> str:
    """The first paragraph of a command's help, with its flags as code."""
    parts = " ".join(text.split("\n\n", 1)[0].split()).split("`")
    parts[::2] = [re.sub(r"--[a-z-]+", r"`\g<0>`", part) for part in parts[::2]]
    return "`".join(parts)


def _walk(group: Any, path: str, panel: str = "") -> Iterator[tuple[str, str, Any]]:
    """Panel, path and command of all that ``--help`` lists."""
    for name in group.list_commands(click.Context(group)):
        command = group.commands[name]
        where = panel or command.rich_help_panel
        if hasattr(command, "commands"):
            yield from _walk(command, f"{path} {name}".strip(), where)
        else:
            yield where, f"{path} {name}".strip(), command


def _codes() -> str:
    by_code = {cls.exit_code: cls for cls in errors.classes()}
    means = {code: (_first(cls), f"`{cls.__name__}`") for code, cls in by_code.items()}
    means |= {0: ("All is done.", ""), errors.INTERRUPTED: ("A signal ended it, such as Ctrl-C.", "")}
    rows = [
        (str(code), word, means[code][0], COMMANDS["remedies"][word], means[code][1])
        for code, word in errors.exit_codes().items()
    ]
    return _table(("code", "word", "means", "what to do", "in Python"), rows)


def _first(thing: type) -> str:
    """The first paragraph of the docstring, on one line."""
    first = " ".join((thing.__doc__ or "").split("\n\n", 1)[0].split())
    return re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", first).replace("``", "`")


def _fields(model: type[BaseModel]) -> str:
    bases = [m for m in MODELS if issubclass(model, m) and m is not model]
    shared = {n for base in bases if issubclass(base, PartyConfig) for n in base.model_fields}
    own = {n: f for n, f in model.model_fields.items() if n not in shared and n not in ("kind", "role")}
    if model is Peer:
        own["role"] = model.model_fields["role"]
    rows = [(f"`{n}`", _kind(f), _default(f), f.description or "") for n, f in own.items()]
    return _table(("field", "is", "default", "meaning"), rows) if rows else "No fields but `kind`."


def _kind(field: FieldInfo) -> str:
    limits = [limit for constraint in field.metadata for limit in _limits(constraint)]
    return ", ".join([_words(field.annotation), *limits])


def _limits(constraint: Any) -> list[str]:
    """What a constraint says; bounds that only keep numbers inside the wire's types are left out."""
    for kind, (sign, name) in _SIGNS.items():
        if isinstance(constraint, kind):
            bound = getattr(constraint, name)
            return [f"{sign} {bound:g}"] if bound < 1e6 else []
    return []


def _words(kind: Any) -> str:
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        return f"[{kind.__name__}](#{kind.__name__.lower()})"
    if origin is tuple and arguments[-1] is not Ellipsis:
        return f"[{', '.join(map(_words, arguments))}]"
    if origin in (Union, types.UnionType):
        return " or ".join(dict.fromkeys(_words(a) for a in arguments if a is not type(None)))
    words: dict[Any, Callable[[], str]] = {
        Annotated: lambda: _words(arguments[0]),
        Literal: lambda: " or ".join(f"`{a}`" for a in arguments),
        tuple: lambda: f"list of {_words(arguments[0])}",
        dict: lambda: f"table: name → {_words(arguments[1])}",
    }
    return words[origin]() if origin in words else _WORDS.get(kind, str(kind))


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if value is None or isinstance(value, BaseModel | tuple | dict):
        return ""
    return f"`{str(value).lower() if isinstance(value, bool) else value}`"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, tuple("---" for _ in header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)


if __name__ == "__main__":
    for name in PAGES:
        page = Path(__file__).parent / name
        page.write_text(written(page.read_text(encoding="utf-8")), encoding="utf-8")
