"""Every error that VFLens raises on purpose, with its exit code.

::

    VflensError                    1
    ├── ConfigError                2   a configuration, a flag or a combination that cannot work
    ├── DataError                  3   a file, a column, a value of a table
    ├── AlignmentError             4   the parties share no rows, or name one twice
    ├── ProtocolError              5   a message that breaks the contract: shape, dtype, NaN, unknown row
    ├── StateError                 6   a well-formed message at the wrong moment
    ├── AccessError                7   a caller who may not call
    ├── KnowledgeError             8   an attack asked for what its party does not have
    ├── PluginError                9   an unknown, broken or contradictory plug-in
    ├── DefenseError              10   a configured defence that did nothing
    ├── UnavailableError          11   a party that never came, died, or missed a deadline
    ├── StorageError              12   a disk that is full, a folder that cannot be written
    ├── RefusedError              13   what another party answered, in its words
    ├── LogitRangeError           14   a model of protected training whose logits left the sigmoid's range
    ├── ThresholdError            15   more was reconstructed than a threshold allows
    └── UndecidedError            16   too few rows to say whether it was

Each message is one sentence that names the field, the value and the remedy. The command line prints it
and leaves with the class's ``exit_code``; over gRPC the class travels with the status, so that the
caller raises the same class again (:mod:`vflens.wire.status`), with the exit code of ``RefusedError``: a peer
must not choose with which code this process ends. Without an error a process ends with 0, and with 130 where
a signal interrupted it.
"""

from collections.abc import Mapping, Sequence
from typing import TypeVar

T = TypeVar("T")
_MOST_OF_PEER = 1_000  # characters of another party's sentence
INTERRUPTED = 130  # the exit code after Ctrl-C and other ending signals: 128 + SIGINT, as shells have it


def install_extra(name: str) -> str:
    """The remedy where the extra ``name`` is not installed."""
    return f"install the extra {name}, with pip install './WHEEL[{name}]', or make setup in the repository"


class VflensError(Exception):
    """An error that no other class names, or an unexpected one; base of all that are raised on purpose.

    ``exit_code`` is what the command line returns, ``word`` the code's name in its help.
    """

    exit_code, word = 1, "failed"


class ConfigError(VflensError):
    """A configuration file, flag or combination of settings that cannot work."""

    exit_code, word = 2, "configuration"


class DataError(VflensError):
    """A table that cannot be used: missing column, value out of bounds, unreadable file.

    ``shown``: of some of the rows meant, the identifier or the cell. Both are their owner's, and stand in no
    message; ``--show-ids`` alone prints them.
    """

    exit_code, word = 3, "data"

    def __init__(self, *message: str, shown: Sequence[str] = ()) -> None:
        super().__init__(*message)
        self.shown = tuple(shown)


class AlignmentError(VflensError):
    """Rows that cannot be aligned between the parties."""

    exit_code, word = 4, "alignment"


class ProtocolError(VflensError):
    """A message that breaks its contract."""

    exit_code, word = 5, "protocol"


class StateError(VflensError):
    """A well-formed message at the wrong moment: a stale step, a prediction before training."""

    exit_code, word = 6, "state"


class AccessError(VflensError):
    """A caller who may not make this call, or whose token is wrong."""

    exit_code, word = 7, "access"


class KnowledgeError(VflensError):
    """An attack read data that it did not declare, or that its party does not have."""

    exit_code, word = 8, "knowledge"


class PluginError(VflensError):
    """A plug-in that is unknown, does not import, or does not keep its contract."""

    exit_code, word = 9, "plug-in"


class DefenseError(VflensError):
    """A configured defence that never acted."""

    exit_code, word = 10, "defence"


class UnavailableError(VflensError):
    """A party that never came, that died, or that missed its deadline."""

    exit_code, word = 11, "unavailable"


class StorageError(VflensError):
    """A log or result that could not be written."""

    exit_code, word = 12, "storage"


class RefusedError(VflensError):
    """What another party answered: its refusal, of any class, in its words."""

    exit_code, word = 13, "refused"


class LogitRangeError(VflensError):
    """A protected training that may have gone wrong: logits left the range in which its sigmoid is one."""

    exit_code, word = 14, "range"


class ThresholdError(VflensError):
    """More was reconstructed than a threshold of ``--fail-if`` allows, beyond chance."""

    exit_code, word = 15, "threshold"


class UndecidedError(VflensError):
    """Too few rows, or nothing measured, to say whether a threshold of ``--fail-if`` is broken."""

    exit_code, word = 16, "undecided"


def classes() -> list[type[VflensError]]:
    """The tree above, in the order of exit codes."""
    own = (cls for cls in VflensError.__subclasses__() if cls.__module__ == __name__)
    return [VflensError, *sorted(own, key=lambda cls: cls.exit_code)]


def by_name(name: str) -> type[VflensError]:
    """The error class called ``name``; :class:`VflensError` when there is none."""
    return next((cls for cls in classes() if cls.__name__ == name), VflensError)


def by_exit_code(code: int) -> type[VflensError]:
    """The error class with which a process ends in ``code``; :class:`VflensError` when there is none."""
    return next((cls for cls in classes() if cls.exit_code == code), VflensError)


def first_cause(failed: Mapping[T, int]) -> T:
    """Who of ``failed``, with the exit codes of their ends, failed itself, before those that another one
    refused or that only lost one.
    """
    last = (RefusedError.exit_code, UnavailableError.exit_code)
    return min(failed, key=lambda who: last.index(failed[who]) + 1 if failed[who] in last else 0)


def exit_codes() -> dict[int, str]:
    """Every exit code of the command line and its word."""
    return {0: "done", **{cls.exit_code: cls.word for cls in classes()}, INTERRUPTED: "interrupted"}


def printable(text: str, keep: str = "") -> str:
    """``text`` with control and invisible characters (ESC, line ends, marks of direction) escaped, except
    ``keep``.
    """
    if text.translate(dict.fromkeys(map(ord, keep))).isprintable():  # pages repeat long files
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def from_peer(text: str) -> str:
    """Another party's text, as one printable sentence of bounded length."""
    return printable(shortened(text, _MOST_OF_PEER))


def shortened(sentence: str, most: int) -> str:
    """``sentence``, or ``most`` characters of its start and its end with the remedy: it may repeat a huge
    value.
    """
    if len(sentence) <= most:
        return sentence
    return f"{sentence[: most // 2]} … {sentence[-(most // 2) :]} ({len(sentence)} characters)"
