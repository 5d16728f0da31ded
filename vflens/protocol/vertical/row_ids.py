"""The acts that come before rows are aligned: salts, digests of row ids, blinded ids."""

from dataclasses import dataclass

from vflens.protocol.acts import Act
from vflens.types import AlignMode, Array


@dataclass(frozen=True)
class Salted:
    """A data party's part of the salt of the run's digests, 32 bytes; how it aligns, "hmac" or "psi"; and how
    many ``ids`` it has.
    """

    salt: bytes
    mode: AlignMode
    ids: int


@dataclass(frozen=True)
class Salt(Act[Salted]):
    """Which salt do you add to the digests of this run?"""

    run: str


@dataclass(frozen=True, eq=False)
class Identities:
    """Digests of a party's row ids, 32 bytes a row, keyed or blinded: see :class:`Identify`.

    ``split`` uint8 (n,), 0 train and 1 predict, if the file has a split.
    """

    digests: bytes
    split: Array | None


@dataclass(frozen=True)
class Identify(Act[Identities]):
    """Which rows have you, from the digest ``first`` on, as many as one message takes? ``salts`` are those of
    all data parties, one after the other.
    """

    run: str
    salts: bytes
    first: int


@dataclass(frozen=True)
class Blinded:
    """Blinded ids, 32 bytes each."""

    elements: bytes


@dataclass(frozen=True)
class Blind(Act[Blinded]):
    """Blind these ``elements``, those from ``first`` on of the ``ids`` that ``party`` has, under your key."""

    run: str
    salts: bytes
    party: str
    first: int
    ids: int
    elements: bytes
