"""Names of parties, columns and plug-ins: their form, and repetitions."""

import re
from collections import Counter
from collections.abc import Hashable, Iterable
from difflib import get_close_matches
from typing import Annotated, TypeVar

from pydantic import Field

T = TypeVar("T", bound=Hashable)

NAME = r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"
_WITH = "with-"
_LABEL = 40  # characters of a label: a name of an attack has 64
_TITLE = r"^[A-Za-z0-9][A-Za-z0-9_. -]{0,63}$"
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_VISIBLE = "^[!-~]+$"
HEX_64 = "^[0-9a-f]{64}$"
HEX_64_OR_NONE = "^([0-9a-f]{64})?$"
Name = Annotated[str, Field(pattern=NAME)]
Title = Annotated[str, Field(pattern=_TITLE)]  # of runs and scenarios
Visible = Annotated[str, Field(pattern=_VISIBLE)]

#: The wanted form, for refusals.
REMEDIES = {
    NAME: "give 1 to 64 letters, digits, '_', '.' or '-', a letter or digit first",
    _TITLE: "give 1 to 64 letters, digits, '_', '.', '-' or spaces, a letter or digit first",
    _VISIBLE: "give visible ASCII characters only, without spaces",
    HEX_64: "64 hexadecimal digits are due",
    HEX_64_OR_NONE: "64 hexadecimal digits, or none, are due",
}


def repeated(names: Iterable[T]) -> T | None:
    """The first of ``names`` that occurs more than once."""
    return next((name for name, count in Counter(names).items() if count > 1), None)


def one_of(names: Iterable[str]) -> str:
    """``names`` as words: "a, b or c"."""
    return all_of(names, "or")


def all_of(names: Iterable[str], word: str = "and") -> str:
    """``names`` as words: "a, b and c"; "" of none."""
    *first, last = list(names) or [""]
    return f"{', '.join(first)} {word} {last}" if first else last


def listed(names: Iterable[str]) -> str:
    """``names`` as a flag takes them: separated by commas, quoted where they hold one, a quote, or a space at
    an end.
    """
    odd = re.compile(r'[,"]|^\s|\s$|^$')
    return ",".join('"' + n.replace('"', '""') + '"' if odd.search(n) else n for n in names)


def names_of(text: str) -> list[str]:
    """The names that :func:`listed` wrote as ``text``, or a person: spaces around a name are none of it."""
    found = re.findall(r'\s*(?:"((?:[^"]|"")*)"|([^,]*?))\s*(?:,|\Z)', f"{text},")
    return [quoted.replace('""', '"') or bare for quoted, bare in found][: -1 if text else None]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The question after a wrong ``name``, of the nearest of ``known``; "" if none is near."""
    near = get_close_matches(name, sorted(set(known) - {name}), n=3, cutoff=0.65)
    return f", did you mean {one_of(near)}?" if near else ""


def colluding(attack: str, others: Iterable[str]) -> str:
    """The name of ``attack`` with a label of the ``others`` that collude in it, unless it has one."""
    label = _WITH + "-".join(sorted(others))
    if ":" in attack or label == _WITH:
        return attack
    return f"{attack}:{label if len(label) <= _LABEL else f'{_WITH}others'}"


def has_controls(text: str) -> bool:
    """Whether ``text`` holds control characters or line ends: a name with them could forge text."""
    return _CONTROLS.search(text) is not None
