"""The warnings and errors of a party's ``events.jsonl``, read as it grows."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vflens.errors import printable, shortened
from vflens.storage.json_file import json_object
from vflens.storage.regular import opened

_LONGEST = 600  # characters of a sentence on the page
_MOST_BYTES = 1 << 22  # of the log at one reading
_MOST_KINDS = 20  # of events of one party that the page lists
#: Events that other panels show, from the metrics.
_ELSEWHERE = ("attack skipped", "attack failed")


@dataclass(frozen=True)
class Alarm:
    """``count`` events of one kind; ``last`` is the newest one's sentence, perhaps another party's."""

    kind: str
    count: int
    last: str


class Events:
    """What needs attention in the log ``file``; each reading continues where the last one ended.

    A party logs its first refusals each, later ones rarely: the count is of logged ones. A reading takes
    the last 4 MB at most; ``cut``: more had come.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._begin_anew(0)

    def _begin_anew(self, inode: int) -> None:
        self._inode, self._offset, self.cut = inode, 0, False
        self._alarms: dict[str, Alarm] = {}

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        """Warnings and errors by kind, that with the newest event last."""
        return tuple(self._alarms.values())

    def refresh(self) -> None:
        """Read what the log has grown by."""
        with suppress(OSError):
            for event in self._new():
                if event.get("level") in ("warning", "error") and event.get("event") not in _ELSEWHERE:
                    self._add(event)

    def _new(self) -> Iterator[dict[str, Any]]:
        with opened(self._file) as lines:
            facts = self._file.stat()
            if facts.st_ino != self._inode or facts.st_size < self._offset:
                self._begin_anew(facts.st_ino)
            if facts.st_size - self._offset > _MOST_BYTES:  # what a browser waits for is at the end
                self._offset, self.cut = facts.st_size - _MOST_BYTES, True
            lines.seek(self._offset)
            data = lines.read(_MOST_BYTES)
            whole = data[: data.rfind(b"\n") + 1]  # the rest is being written
            self._offset += len(whole) or (len(data) if len(data) == _MOST_BYTES else 0)
        for line in whole.splitlines():
            with suppress(ValueError):  # a full disk can cut a line
                yield json_object(line)

    def _add(self, event: dict[str, Any]) -> None:
        kind = " ".join(str(event[name]) for name in ("event", "kind") if name in event)
        kind = kind if kind in self._alarms or len(self._alarms) < _MOST_KINDS else "others"
        known = self._alarms.pop(kind, Alarm(kind, 0, ""))
        what = str(event.get("error") or event.get("reason") or _facts(event))
        self._alarms[kind] = Alarm(sentence(kind), known.count + 1, sentence(what))


def _facts(event: dict[str, Any]) -> str:
    known = ("party", "event", "kind", "level", "timestamp", "number", "exception")
    return ", ".join(f"{name} {value}" for name, value in event.items() if name not in known)


def sentence(text: str) -> str:
    """Text of a file on one line, with control characters escaped and a long middle left out."""
    return printable(shortened(text, _LONGEST))
