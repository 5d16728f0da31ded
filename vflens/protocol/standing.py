"""What parties compare when one of them was restarted."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Standing:
    """Where a party stands in a run.

    ``version`` is that of VFLens, ``incarnation`` the number of restarts, ``stage`` one of
    ``vflens.member.stage.Stage``, ``learned`` the last training step that it learned from (-1:
    none), ``released`` the number of prediction rows that it released, ``federation`` a digest (empty before
    alignment); ``stops``: early stopping ends training after the step ``learned``.
    """

    version: str
    incarnation: int
    stage: str
    learned: int
    released: int
    federation: bytes
    stops: bool = False
