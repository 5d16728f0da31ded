"""The lists of ids that a data party has blinded in a run, on disk: each once, and no other."""

import re
from collections.abc import Collection
from hashlib import blake2b
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from vflens.errors import ProtocolError, StateError, StorageError, from_peer
from vflens.names import NAME
from vflens.protocol.vertical.alignment import AT_ONCE, DIGEST_BYTES
from vflens.protocol.vertical.row_ids import Blind
from vflens.storage.files import write_whole
from vflens.storage.json_file import in_words, read_as
from vflens.words import counted

_ANEW = "start all parties anew, each without --resume"


FILE = "blinded.json"


class BlindedList(BaseModel):
    """``ids`` of another party, a digest of each message of them so far, and of each answer."""

    ids: int
    messages: list[str]
    answers: list[str] = []


class Noted(BaseModel):
    """A digest of the run's salts, of each message of the party's own ids, and the ``lists`` by party."""

    salts: str = ""
    own: list[str] = []
    lists: dict[str, BlindedList] = {}


def noted_in(folder: Path) -> Noted | None:
    """What a data party noted in its ``folder``, None where it blinded nothing.

    Raises:
        StorageError: the file cannot be read.
    """
    file = folder / FILE
    try:
        return read_as(Noted, file) if file.exists() else None
    except (OSError, ValueError) as error:
        raise StorageError(
            f"{file} does not say what was blinded ({in_words(error)}): use a folder that nobody changed"
        ) from error


def _digest(elements: bytes) -> str:
    return blake2b(elements, digest_size=32).hexdigest()


class BlindedLists:
    """Notes in ``folder`` what was blinded, before it leaves: a restart repeats it, other ids are refused.

    Whoever gets its guesses blinded learns which of them are ids of the owner: so one list a party, one
    alignment a run, and at most ``most`` ids of all other parties together.

    Raises:
        StorageError: the file cannot be read.
    """

    def __init__(self, folder: Path, party: str, most: int) -> None:
        self._file, self._party, self._most = folder / FILE, party, most
        self._noted = noted_in(folder) or Noted()

    def begin(self, salts: bytes) -> None:
        """Take ``salts`` as those of the run's one alignment.

        Raises:
            StateError: it began with others.
            StorageError: the file cannot be written.
        """
        digest = _digest(salts)
        if self._noted.salts not in ("", digest):
            raise StateError(
                f"party {self._party!r} began to align with other salts: a party has another table or folder "
                f"since, and a run has one alignment. {_ANEW}"
            )
        if not self._noted.salts:
            self._write(salts=digest)

    def note_own(self, first: int, elements: bytes) -> None:
        """Note a message of the party's own ids, from ``first`` on.

        Raises:
            StorageError: the file cannot be written.
        """
        if first // AT_ONCE["psi"] == len(self._noted.own):
            self._write(own=[*self._noted.own, _digest(elements)])

    def note_answer(self, act: Blind, elements: bytes) -> None:
        """Note what this party made of ``act``.

        Raises:
            StorageError: the file cannot be written.
        """
        known = self._noted.lists[act.party]
        if act.first // AT_ONCE["psi"] == len(known.answers):
            longer = known.model_copy(update={"answers": [*known.answers, _digest(elements)]})
            self._write(lists={**self._noted.lists, act.party: longer})

    def note(self, act: Blind) -> bool:
        """Take ``act`` as the next message of its list, or a repeated one; whether the list begins with it.

        Raises:
            ProtocolError: it is no such message.
            StateError: this message came before with other ids, or the list is too long.
            StorageError: the file cannot be written.
        """
        known = self._noted.lists.get(act.party, BlindedList(ids=act.ids, messages=[]))
        self._check(act, known)
        number, digest = act.first // AT_ONCE["psi"], _digest(act.elements)
        if number == len(known.messages):
            longer = known.model_copy(update={"messages": [*known.messages, digest]})
            self._write(lists={**self._noted.lists, act.party: longer})
        elif known.messages[number] != digest:
            raise StateError(
                f"blinded ids of {act.party!r} from {act.first} on came with others before: a run has one "
                f"alignment. {_ANEW}"
            )
        return not known.messages

    def _check(self, act: Blind, known: BlindedList) -> None:
        if act.party == self._party or not re.fullmatch(NAME, act.party):
            raise ProtocolError(
                f"party {self._party!r} blinds no ids of {from_peer(act.party)!r}: those of other data "
                "parties are due"
            )
        if act.ids != known.ids:
            raise StateError(
                f"party {act.party!r} has {counted(act.ids, 'id')} and had {known.ids} before: a run has one "
                f"alignment. {_ANEW}"
            )
        others = sum(found.ids for party, found in self._noted.lists.items() if party != act.party)
        if others + act.ids > self._most:
            raise StateError(
                f"party {act.party!r} has {counted(act.ids, 'id')}: with them the other parties have more "
                f"than limits.max_ids = {self._most} at {self._party!r}, raise it if these are no guesses"
            )
        at_once, reached = AT_ONCE["psi"], len(known.messages) * AT_ONCE["psi"]
        if act.first % at_once or not 0 <= act.first <= reached or act.first >= act.ids:
            raise ProtocolError(
                f"blinded ids of {act.party!r} from {act.first} on, of {act.ids}: those from "
                f"{min(reached, act.ids)} on are due"
            )
        expected = min(at_once, act.ids - act.first)
        if len(act.elements) != expected * DIGEST_BYTES:
            raise ProtocolError(
                f"blinded ids of {act.party!r} from {act.first} on have {len(act.elements)} bytes: expected "
                f"{DIGEST_BYTES} of each of {expected}"
            )

    def check_parties(self, parties: Collection[str]) -> None:
        """Refuse a run whose ``parties`` are not those of the lists, this one aside.

        Raises:
            ProtocolError: names both.
        """
        lists, others = sorted(self._noted.lists), sorted({*parties} - {self._party})
        if lists != others:
            raise ProtocolError(
                f"{self._party!r} blinded the ids of {', '.join(lists) or 'nobody'}, and the other data "
                f"parties of the run are {', '.join(others)}: align anew, with the same parties"
            )

    def _write(self, **changes: Any) -> None:
        noted = self._noted.model_copy(update=changes)
        write_whole(self._file, noted.model_dump_json().encode())
        self._noted = noted
