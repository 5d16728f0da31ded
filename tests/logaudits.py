"""What an audit finds in the folders of a run, and a log with a changed bit."""

from __future__ import annotations

from pathlib import Path

from vflens.experiments.verify_log.verify import VerifiedRun, verify_logs


def audit_of(home: Path) -> VerifiedRun:
    (audited,) = verify_logs([home])
    return audited


def problems_in(home: Path) -> list[str]:
    return [str(finding) for finding in audit_of(home).found.findings]


# --- what was changed is found


def flip(file: Path, place: int) -> None:
    data = bytearray(file.read_bytes())
    data[place] ^= 1
    file.write_bytes(data)
