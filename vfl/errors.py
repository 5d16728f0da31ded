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
    └── StorageError              12   a disk that is full, a folder that cannot be written

Each message is one sentence that names the field, the value and the remedy. The command line prints it
and leaves with the class's ``exit_code``; over gRPC the class travels with the status, so that the
caller raises the same class again (:mod:`vfl.wire.status`).
"""

_MOST_OF_PEER = 1_000  # characters of a sentence that another party wrote


class VflensError(Exception):
    """Base of all errors raised on purpose; ``exit_code`` is what the command line returns."""

    exit_code = 1


class ConfigError(VflensError):
    """A configuration file, flag or combination of settings that cannot work."""

    exit_code = 2


class DataError(VflensError):
    """A table that cannot be used: missing column, value out of bounds, unreadable file."""

    exit_code = 3


class AlignmentError(VflensError):
    """Rows that cannot be aligned between the parties."""

    exit_code = 4


class ProtocolError(VflensError):
    """A message that breaks its contract, whoever sent it."""

    exit_code = 5


class StateError(VflensError):
    """A well-formed message at the wrong moment: a stale step, a prediction before training."""

    exit_code = 6


class AccessError(VflensError):
    """A caller who may not make this call, or who could not prove who it is."""

    exit_code = 7


class KnowledgeError(VflensError):
    """An attack read something it did not declare, or that was never given to its party."""

    exit_code = 8


class PluginError(VflensError):
    """A plug-in that is unknown, does not import, or does not keep its contract."""

    exit_code = 9


class DefenseError(VflensError):
    """A configured defence that never acted."""

    exit_code = 10


class UnavailableError(VflensError):
    """A party that never came, that died, or that missed its deadline."""

    exit_code = 11


class StorageError(VflensError):
    """A log or result that could not be written."""

    exit_code = 12


def by_name(name: str) -> type[VflensError]:
    """The error class called ``name``; :class:`VflensError` when there is none."""
    known = {cls.__name__: cls for cls in VflensError.__subclasses__()}
    return known.get(name, VflensError)


def printable(text: str, keep: str = "") -> str:
    """``text`` with what a terminal obeys or does not show (ESC, line ends, marks of direction) written out, but for the characters in ``keep``."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in keep else c.encode("unicode_escape").decode() for c in text)


def from_peer(text: str) -> str:
    """What another party wrote, as one printable sentence of bounded length."""
    return printable(shortened(text, _MOST_OF_PEER))


def shortened(sentence: str, most: int) -> str:
    """``sentence``, or ``most`` characters of its begin and its end, where the remedy is: it may repeat a value as long as a file."""
    if len(sentence) <= most:
        return sentence
    return f"{sentence[: most // 2]} … {sentence[-(most // 2) :]} ({len(sentence)} characters)"
