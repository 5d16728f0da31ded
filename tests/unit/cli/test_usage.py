"""Whatever is typed wrongly, the command line says in one sentence: what, what is due, where the help is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import typer
from commandline import Refused, Run, refused, vflens

from vflens.cli.main import app

_FIXTURES = (refused, vflens)  # used by name
FOREIGN = (
    "Input should",
    "Value error",
    "Invalid value",
    "Usage:",
    "╭",
    "unable to parse",
    "validation error",
)


def _commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _commands(command, (*path, name))
        else:
            yield (*path, name), command


def _takes(command: Any, option: Any) -> str:
    """What the help says that an option takes: "<int range>", "<clear|secure>", "<str>", …"""
    return str(option.display_type(typer.Context(command)))


def _options() -> list[tuple[tuple[str, ...], str, str]]:
    """Command, flag and what it takes, of every option that takes a value."""
    group = typer.main.get_command(app)
    return [
        (path, max(option.opts, key=len), _takes(command, option))
        for path, command in _commands(group)
        for option in command.params
        if option.param_type_name == "option" and not getattr(option, "is_flag", False)
    ]


OPTIONS = _options()
NUMBERS = [o for o in OPTIONS if any(kind in o[2] for kind in ("int", "float"))]
CHOICES = [o for o in OPTIONS if "|" in o[2]]


def _named(case: tuple[tuple[str, ...], str, str]) -> str:
    return " ".join((*case[0], case[1]))


def test_there_are_options_of_each_kind() -> None:
    assert len(OPTIONS) > 60
    assert len(NUMBERS) > 20
    assert len(CHOICES) >= 3
    assert {kind for _, _, takes in NUMBERS for kind in ("int", "float") if kind in takes} == {"int", "float"}
    assert {"--most-leak", "--models", "--port"} <= {flag for _, flag, _ in NUMBERS}
    assert {"--training", "--rows", "--missing"} <= {flag for _, flag, _ in CHOICES}


@pytest.mark.parametrize("case", NUMBERS, ids=_named)
@pytest.mark.parametrize("value", ["many", "1.5.2", "", "1e", "0x1f", "½"])
def test_what_is_no_number_is_refused(
    refused: Refused, case: tuple[tuple[str, ...], str, str], value: str
) -> None:
    command, flag, takes = case
    sentence = refused(2, *command, f"{flag}={value}")
    noun = "a whole number" if "int" in takes else "a number"
    assert sentence.startswith(f"{flag} {value!r}: give {noun}")
    assert sentence.endswith(f"(see vflens {' '.join(command)} --help)")
    assert not any(phrase in sentence for phrase in FOREIGN)


@pytest.mark.parametrize("case", [o for o in NUMBERS if "int" in o[2]], ids=_named)
@pytest.mark.parametrize("value", ["1.5", "nan", "inf", "1e400"])
def test_a_fraction_is_no_whole_number(
    refused: Refused, case: tuple[tuple[str, ...], str, str], value: str
) -> None:
    command, flag, _ = case
    assert refused(2, *command, f"{flag}={value}").startswith(f"{flag} {value!r}: give a whole number")


@pytest.mark.parametrize("case", [o for o in NUMBERS if "range" in o[2]], ids=_named)
@pytest.mark.parametrize("value", ["-1000000000000", "nan"])
def test_a_number_out_of_its_range_is_refused_with_it(
    refused: Refused, case: tuple[tuple[str, ...], str, str], value: str
) -> None:
    command, flag, takes = case
    sentence = refused(2, *command, f"{flag}={value}")
    noun = "a whole number" if "int" in takes else "a number"
    assert sentence.startswith(
        (f"{flag} {value!r}: give {noun} from ", f"{flag} {value!r}: give {noun} of at ")
    )
    assert not any(phrase in sentence for phrase in FOREIGN)


@pytest.mark.parametrize("case", CHOICES, ids=_named)
def test_an_unknown_choice_is_refused_with_all_of_them(
    refused: Refused, case: tuple[tuple[str, ...], str, str]
) -> None:
    command, flag, takes = case
    choices = takes.strip("<>[]").split("|")
    near = choices[0][:-1] + "xx"
    sentence = refused(2, *command, f"{flag}={near}")
    assert sentence.startswith(f"{flag} {near!r}: give {', '.join(choices[:-1])} or {choices[-1]}")
    if len(near) > 5:
        assert f"did you mean {choices[0]}?" in sentence
    assert not any(phrase in sentence for phrase in FOREIGN)


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        (
            ["audit", "x.csv", "--most-leak", "nan"],
            "--most-leak 'nan': give a number from 0 to 1 (see vflens audit --help)",
        ),
        (
            ["audit", "x.csv", "--moodels", "3"],
            "--moodels is no option of vflens audit, did you mean --models or --details? "
            "(see vflens audit --help)",
        ),
        (["audit", "x.csv", "--zz"], "--zz is no option of vflens audit (see vflens audit --help)"),
        (["auditt"], "auditt is no command of vflens, did you mean audit? (see vflens --help)"),
        (["certs", "ini"], "ini is no command of vflens certs, did you mean init? (see vflens certs --help)"),
        (["audit"], "SOURCE is missing: give your .csv or .parquet, a .toml"),
        (
            ["attack", "x"],
            "--attack is missing: give a name of `vflens attacks`, or a file with one attack, mine.py (see "
            "vflens attack --help)",
        ),
        (["audit", "a", "b", "c"], "'b c' is one argument too many: leave it out (see vflens audit --help)"),
        (["audit", "a", "--models"], "--models has no value: give one behind it"),
        (["audit", "a", "--json=5"], "--json takes no value: leave the value out"),
    ],
)  # fmt: skip
def test_what_was_typed_wrongly_is_named(refused: Refused, typed: list[str], words: str) -> None:
    assert refused(2, *typed).startswith(words)


@pytest.mark.parametrize("typed", [[], ["certs"], ["datasets"]], ids=str)
def test_a_group_alone_shows_its_help_and_no_error(vflens: Run, typed: list[str]) -> None:
    ended = vflens(*typed)
    assert ended.code in (0, 2)
    assert "Usage: vflens" in ended.out
    assert "error" not in ended.err
