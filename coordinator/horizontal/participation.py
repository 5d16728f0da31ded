"""Which clients train in a round: drawn from those that are present, and who is absent from when on."""

import json
from collections.abc import Collection
from pathlib import Path

from pydantic import NonNegativeInt

from vflens.errors import StorageError
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.randomness import stream
from vflens.storage.files import write_whole
from vflens.storage.json_file import in_words, read_as


def drawn_participants(
    federation: HorizontalAgreement, number: int, secret: bytes, absent: Collection[str] = ()
) -> tuple[str, ...]:
    """The clients of round ``number`` in name order: of those that are not ``absent`` the first
    ``horizontal.participants`` of an order drawn for the round from the server's ``secret``, or all. All of
    them get the parameters after the last round.

    Rounds do not depend on each other, so a restart draws the same; and so do all scenarios of an experiment.
    """
    names = [party.name for party in federation.parties]
    order = stream(secret, "participants", number).permutation(len(names))
    present = [names[place] for place in order if names[place] not in absent]
    drawn = federation.horizontal.participants if number < federation.epochs else None
    return tuple(sorted(present[:drawn]))


class Absences:
    """Who is absent in which round, in ``file``: a change from a round on is on disk before the round begins.

    Raises:
        StorageError: it cannot be read, or no server wrote it.
    """

    def __init__(self, file: Path) -> None:
        self._file, self._from = file, {0: frozenset[str]()}
        if not file.exists():
            return
        try:
            self._from |= read_as(dict[NonNegativeInt, frozenset[str]], file)
        except (OSError, ValueError) as error:
            raise StorageError(
                f"{file} does not say which clients were absent ({in_words(error)}): use a folder that "
                "nobody changed"
            ) from error

    def at(self, number: int) -> frozenset[str]:
        """The absent clients in round ``number``."""
        return self._from[max(begin for begin in self._from if begin <= number)]

    def change(self, number: int, absent: Collection[str]) -> None:
        """From round ``number`` on these clients are ``absent``.

        Raises:
            StorageError: it cannot be written.
        """
        if frozenset(absent) == self.at(number):
            return
        earlier = {begin: names for begin, names in self._from.items() if begin < number}
        self._from = {**earlier, number: frozenset(absent)}
        written = {str(begin): sorted(names) for begin, names in self._from.items()}
        write_whole(self._file, json.dumps(written).encode())
