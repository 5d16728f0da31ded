"""A data party's part in the alignment: its salt, and the keyed digests of its row ids."""

from vflens.config import ActiveConfig, PassiveConfig
from vflens.errors import StateError
from vflens.protocol.acts import Identities
from vflens.protocol.vertical.alignment import digests, in_order, salted, sorted_places
from vflens.randomness import derive
from vflens.tables.table import Table
from vflens.types import Array


class Identification:
    """The salt and the digests of the party with ``config`` and ``secret``."""

    def __init__(self, config: PassiveConfig | ActiveConfig, secret: bytes) -> None:
        self._config, self._secret = config, secret
        self._salt = b""
        self._sent: Array | None = None  # rows of the file in the order of the digests sent

    def salt(self, table: Table) -> bytes:
        """Its part of the salt. It differs for other rows, another run or another secret; the scenarios of
        one experiment share it.
        """
        if not self._salt:
            experiment = self._config.run.partition("/")[0]
            self._salt = derive(self._secret, "alignment", experiment, table.digest().tobytes().hex())
        return self._salt

    def identities(self, table: Table, salts: bytes) -> Identities:
        """Keyed digests of the row ids. Outside lab mode they are keyed by the ``salts`` of all data parties
        too, and sorted.

        Raises:
            ProtocolError: the salts lack this party's own, so that the digests might be those of another run.
        """
        key = self._config.alignment_key.encode()
        if self._config.lab:  # one owner, who gets the same order of rows in every run
            return Identities(digests(table.ids, key), table.split)
        found = digests(table.ids, salted(key, salts, self.salt(table), self._config.party))
        self._sent = sorted_places(found)
        return in_order(Identities(found, table.split), self._sent)

    def file_rows(self, order: Array, table: Table, salts: bytes) -> Array:
        """The rows of the file int32 (N,) at the coordinator's ``order``, positions among the sent digests.
        A process that sent none computes them again, with the ``salts`` if there are any.

        Raises:
            StateError: outside lab mode, this process sent none: the places are among another process's
                digests.
        """
        if self._config.lab:  # digests are sent in the file's order
            return order
        if self._sent is None and salts:
            self.identities(table, salts)
        if self._sent is None:
            raise StateError(
                f"party {self._config.party!r} has sent no digests since it was started: ask it for its "
                "digests first, then send the rows"
            )
        rows: Array = self._sent[order]
        return rows
