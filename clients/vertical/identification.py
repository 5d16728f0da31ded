"""A data party's part in the alignment: its salt, and the digests of its row ids, keyed or blinded."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

import numpy as np

from vflens.config import ActiveConfig, PassiveConfig
from vflens.errors import ConfigError, ProtocolError
from vflens.member.start_nonce import start_nonce
from vflens.protocol.acts import Prepare
from vflens.protocol.vertical.alignment import (
    AT_ONCE,
    check_own_salt,
    digests,
    salted,
    sorted_places,
)
from vflens.protocol.vertical.blinded_lists import BlindedLists
from vflens.protocol.vertical.blinding import blinded_again, blinded_ids, blinding_key
from vflens.protocol.vertical.row_ids import Blind, Identify, Identities, Salted
from vflens.randomness import derive
from vflens.tables.table import Table
from vflens.types import AlignMode, Array
from vflens.words import counted


class Identification(ABC):
    """What the party with ``config`` and ``secret`` says of its row ids; it writes into its ``log``."""

    mode: ClassVar[AlignMode]

    def __init__(self, config: PassiveConfig | ActiveConfig, secret: bytes, log: Any) -> None:
        self._config, self._secret, self._log = config, secret, log
        self._salt = b""
        self._ordered: tuple[bytes, Array] | None = None  # salts, and the order of the digests under them

    def salt(self, table: Table) -> Salted:
        """Its part of the salt, how it aligns, and how many ids it has."""
        if not self._salt:  # kept: the table loses its values when the run begins
            experiment, nonce = self._config.run.partition("/")[0], self._nonce()
            names = [experiment, table.digest().tobytes().hex(), *([nonce] if nonce else [])]
            self._salt = derive(self._secret, "alignment", *names)
        return Salted(self._salt, self.mode, len(table.ids))

    def _nonce(self) -> str:
        """What makes the salt another one in a repeated run, "" for nothing."""
        return ""

    def identities(self, table: Table, act: Identify) -> Identities:
        """The digests from ``act.first`` on that one message takes.

        Raises:
            ProtocolError: there are none; or the salts lack this party's own, so that the digests might be
                those of another run.
        """
        if not 0 <= act.first < len(table.ids):
            raise ProtocolError(
                f"row ids from {act.first} on: party {self._config.party!r} has "
                f"{counted(len(table.ids), 'row')}"
            )
        rows = self._order(table, act.salts)[act.first : act.first + AT_ONCE[self.mode]]
        split = None if table.split is None else table.split[rows]
        return Identities(self._digests(table.ids[rows], act), split)

    def file_rows(self, table: Table, act: Prepare) -> Array:
        """The rows of the file int32 (N,) at the places ``act.order`` among the digests under its salts.

        Raises:
            ProtocolError: the salts lack this party's own; or lists of others are not those of the run.
        """
        rows: Array = self._order(table, act.salts)[act.order]
        self._ordered = None
        return rows

    def _order(self, table: Table, salts: bytes) -> Array:
        """The rows of the file int32 (n,) in the order of the digests sent under ``salts``."""
        self._check(table, salts)
        if self._ordered is None or self._ordered[0] != salts:
            self._ordered = salts, sorted_places(digests(table.ids, self._key(salts)))
        return self._ordered[1]

    def _check(self, table: Table, salts: bytes) -> None:
        """Refuse ``salts`` without this party's own."""
        check_own_salt(salts, self.salt(table).salt, self._config.party)

    @abstractmethod
    def _key(self, salts: bytes) -> bytes:
        """The key of the order."""

    @abstractmethod
    def _digests(self, ids: Array, act: Identify) -> bytes:
        """What the party answers to ``act`` of ``ids`` (n,)."""

    @abstractmethod
    def blind(self, table: Table, act: Blind) -> bytes:
        """The blinded ids of another party, blinded by this one too.

        Raises:
            ConfigError, ProtocolError, StateError: it does not blind these.
        """


class KeyedIdentification(Identification):
    """Digests keyed by the ``alignment_key``, outside lab mode by the salts of all data parties too."""

    mode = "hmac"

    def _order(self, table: Table, salts: bytes) -> Array:
        if self._config.lab:  # one owner, who gets the same order of rows in every run: the file's
            return np.arange(len(table.ids), dtype=np.int32)
        return super()._order(table, salts)

    def _key(self, salts: bytes) -> bytes:
        assert self._config.alignment_key is not None
        key = self._config.alignment_key.encode()
        return key if self._config.lab else salted(key, salts)

    def _digests(self, ids: Array, act: Identify) -> bytes:
        return digests(ids, self._key(act.salts))

    def blind(self, table: Table, act: Blind) -> bytes:
        raise ConfigError(
            f"party {self._config.party!r} aligns by hmac and was asked to blind ids: set align.mode alike "
            "at all data parties"
        )


class BlindIdentification(Identification):
    """Ids blinded under a key of this run only: see :mod:`vflens.protocol.vertical.blinding`.

    The salts of all data parties are in the key, and in this party's salt a nonce of its folder: no other
    run has the key, and a restart has it again.
    """

    mode = "psi"

    def __init__(self, config: PassiveConfig | ActiveConfig, secret: bytes, log: Any) -> None:
        super().__init__(config, secret, log)
        self._lists = BlindedLists(config.out, config.party, config.limits.max_ids)

    def _nonce(self) -> str:
        return start_nonce(self._config.out, lab=self._config.lab)

    def file_rows(self, table: Table, act: Prepare) -> Array:
        self._lists.check_parties({party.name for party in act.federation.parties})
        return super().file_rows(table, act)

    def _check(self, table: Table, salts: bytes) -> None:
        super()._check(table, salts)
        self._lists.begin(salts)

    def _key(self, salts: bytes) -> bytes:
        return derive(self._secret, "order of ids", salts.hex())

    def _digests(self, ids: Array, act: Identify) -> bytes:
        blinded = blinded_ids(ids, blinding_key(self._secret, act.salts), act.salts)
        self._lists.note_own(act.first, blinded)
        return blinded

    def blind(self, table: Table, act: Blind) -> bytes:
        self._check(table, act.salts)
        if self._lists.note(act):
            self._log.info("blinds ids", of=act.party, ids=act.ids)
        blinded = blinded_again(act.elements, blinding_key(self._secret, act.salts), act.party)
        self._lists.note_answer(act, blinded)
        return blinded


def identification(config: PassiveConfig | ActiveConfig, secret: bytes, log: Any) -> Identification:
    """That of the party with ``config``, by its ``align.mode``."""
    kinds = (KeyedIdentification, BlindIdentification)
    return next(kind for kind in kinds if kind.mode == config.aligns_by)(config, secret, log)
