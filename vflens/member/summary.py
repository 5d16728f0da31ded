"""``federation.json``: what a party knew of its run, for reports and for attacks on recorded transcripts."""

from __future__ import annotations

import platform
from importlib.metadata import version
from pathlib import Path
from typing import Protocol

from vflens.protocol.federation import Federation
from vflens.storage import journal
from vflens.storage.transcript import Transcript
from vflens.types import Role


class _Member(Protocol):
    name: str
    role: Role
    folder: Path
    transcript: Transcript
    in_process: bool

    @property
    def federation(self) -> Federation | None: ...

    @property
    def clipped(self) -> int: ...


def save_summary(party: _Member) -> None:
    """Write it into the party's folder; nothing before the run was aligned."""
    if party.federation is None:
        return
    party.federation.save(
        party.folder,
        party=party.name,
        role=party.role,
        in_process=party.in_process,
        clipped=party.clipped,
        versions={name: version(name) for name in ("vflens", "numpy", "grpcio", "protobuf")}
        | {"python": platform.python_version()},
        transcript_digest=journal.digest(party.folder / "transcript"),
    )
