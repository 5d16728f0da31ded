"""What a party records of its defences: what one suspects of the gradients that arrive, and which acted."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from vflens.storage.metrics import Metrics, Name
from vflens.types import Exchange

if TYPE_CHECKING:
    from structlog.typing import FilteringBoundLogger

    from vflens.member.member import Member


def suspicions(
    party: str, metrics: Metrics, log: FilteringBoundLogger
) -> Callable[[str, Exchange, float, bool], None]:
    """What records a detector's name, exchange, score and alarm: figures "hijack_score" and, with an alarm,
    "hijack_alarm" by detector and step, and a warning in the log.
    """

    def record(detector: str, exchange: Exchange, score: float, alarm: bool) -> None:
        metrics.add(Name.HIJACK_SCORE, score, target=party, detail=detector, step=exchange.step)
        if alarm:
            metrics.add(Name.HIJACK_ALARM, score, target=party, detail=detector, step=exchange.step)
            log.warning("hijacking suspected", detector=detector, step=exchange.step, score=round(score, 3))

    return record


def check_defenses(member: Member) -> None:
    """Refuse a finished run in which a defence of ``member`` never acted; record those that acted on what is
    granted only: they hide nothing that crosses the wire.

    Raises:
        DefenseError: naming the defence.
        StorageError: the figures cannot be written.
    """
    member.gate.check_fired()
    for name in member.chain.on_grants_only():
        member.metrics.add(Name.ON_GRANTS_ONLY, 1.0, target=member.name, detail=name)
    member.metrics.save()
