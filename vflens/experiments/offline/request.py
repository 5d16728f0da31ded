"""What an attack on a recorded transcript is asked for."""

from dataclasses import dataclass
from pathlib import Path

from vflens.config import PartyConfig
from vflens.plugins.attack import Attack
from vflens.protocol.agreement import Agreement
from vflens.types import Phase, Progress


@dataclass(frozen=True, kw_only=True)
class Request:
    """``attack``, called ``name``, on ``target`` (None: the only one), from the ``folder`` of the party of
    ``config``, with which the parties of the folders ``together`` collude, in ``federation``; the estimate
    goes to ``out``. ``scored`` is the kind of rows, ``verify``
    how many are solved again.
    """

    attack: Attack
    name: str
    folder: Path
    together: tuple[Path, ...]
    config: PartyConfig
    federation: Agreement
    target: str | None
    out: Path
    scored: Phase
    verify: int
    progress: Progress
