"""A wrong flag, value or command in one sentence: what was given, what is due, and where the help is."""

import re
from enum import Enum
from typing import Any, Literal, NamedTuple, Self, get_args, get_origin, get_type_hints

from typer.models import ParameterInfo

from vflens.names import did_you_mean, one_of


def is_usage(error: BaseException) -> bool:
    """Whether the command line's library raised ``error`` because of what was typed."""
    return any(kind.__name__ == "UsageError" for kind in type(error).__mro__)


def sentence(error: Any) -> str:
    """The refusal of what was typed.

    ``error`` is Typer's; its classes are private and move from version to version, so that their names count.
    "": it is a group without a command, whose help was printed.
    """
    command = error.ctx.command_path if error.ctx is not None else "vflens"
    text = _SAID.get(type(error).__name__, _usage)(error)
    return f"{text} (see {command} --help)" if text else ""


class _Parameter(NamedTuple):
    """What the command's signature says of one parameter: its ``kind``, and what Typer shows of it."""

    kind: Any
    info: ParameterInfo | None

    @classmethod
    def of(cls, error: Any, name: str) -> Self:
        """The parameter ``name`` of the command that refused."""
        hint = get_type_hints(error.ctx.command.callback, include_extras=True).get(name, str)
        kind, *info = (
            get_args(hint) if get_origin(hint) is not None and hasattr(hint, "__metadata__") else [hint]
        )
        return cls(_inner(kind), next((i for i in info if isinstance(i, ParameterInfo)), None))

    @property
    def choices(self) -> list[str]:
        """The texts that it takes; [] of any."""
        if get_origin(self.kind) is Literal:
            return list(map(str, get_args(self.kind)))
        is_enum = isinstance(self.kind, type) and issubclass(self.kind, Enum)
        return [str(member.value) for member in self.kind] if is_enum else []

    @property
    def due(self) -> str:
        """What is to be given, in words; "" where any text is."""
        if self.choices:
            return one_of(self.choices)
        noun = {int: "a whole number", float: "a number"}.get(self.kind, "")
        return noun and f"{noun}{self._range}"

    @property
    def _range(self) -> str:
        low, high = getattr(self.info, "min", None), getattr(self.info, "max", None)
        if low is not None and high is not None:
            return f" from {low:g} to {high:g}"
        if low is not None:
            return f" of at least {low:g}"
        return f" of at most {high:g}" if high is not None else ""


def _inner(kind: Any) -> Any:
    """The kind of one value, of a list or of a value that may be left out."""
    while get_origin(kind) is not Literal and (args := [a for a in get_args(kind) if a is not type(None)]):
        kind = args[0]
    return kind


def _flag(param: Any) -> str:
    """A parameter as it is typed: the long form of an option, the name of an argument in capitals."""
    return max(param.opts, key=len) if param.param_type_name == "option" else str(param.name).upper()


def _bad_value(error: Any) -> str:
    if error.param is None:
        return str(error.message)
    asked, flag = _Parameter.of(error, error.param.name), _flag(error.param)
    problems = error.__cause__.errors() if hasattr(error.__cause__, "errors") else []
    if not (problems and asked.due):
        return f"{flag}: {str(error.message).rstrip('.')}"
    value = str(problems[0]["input"])
    return f"{flag} {value!r}: give {asked.due}{did_you_mean(value, asked.choices)}"


def _missing(error: Any) -> str:
    asked = _Parameter.of(error, error.param.name)
    due = asked.due or getattr(asked.info, "help", None) or "it"
    return f"{_flag(error.param)} is missing: give {due}"


def _unknown_option(error: Any) -> str:
    known = [option for param in error.ctx.command.params for option in param.opts]
    near = did_you_mean(error.option_name, known)
    return f"{error.option_name} is no option of {error.ctx.command_path}{near}"


def _option_misused(error: Any) -> str:
    if "not take" in error.message:
        return f"{error.option_name} takes no value: leave the value out"
    return f"{error.option_name} has no value: give one behind it"


def _usage(error: Any) -> str:
    """An unknown command, or an argument too many."""
    message = str(error.message)
    if named := re.match("No such command '(.*?)'", message):
        group = error.ctx.command
        known = [name for name in group.list_commands(error.ctx) if not group.commands[name].hidden]
        return f"{named[1]} is no command of {error.ctx.command_path}{did_you_mean(named[1], known)}"
    if extra := re.match(r"Got unexpected extra arguments?(?:\(s\))? \((.*)\)", message, re.DOTALL):
        return f"{extra[1]!r} is one argument too many: leave it out"
    return message.rstrip(".")


_SAID = {
    "BadParameter": _bad_value,
    "MissingParameter": _missing,
    "NoSuchOption": _unknown_option,
    "BadOptionUsage": _option_misused,
}
