"""The acts of protected training alone: seeds of masks, and what the dealer makes of them."""

from dataclasses import dataclass

from vflens.protocol.acts import Act
from vflens.types import Array


@dataclass(frozen=True)
class Seeded:
    """The ``seed``, 32 bytes, of a party's shares of all masks in protected training."""

    seed: bytes


@dataclass(frozen=True)
class Seed(Act[Seeded]):
    """From which seed do you draw your shares of masks?"""

    run: str


@dataclass(frozen=True, eq=False)
class MaskShares:
    """The active party's shares of what follows from the masks of some steps, uint64 (m,)."""

    numbers: Array


@dataclass(frozen=True)
class Deal(Act[MaskShares]):
    """Ask the dealer for some steps, training ``step`` among them."""

    run: str
    step: int
