"""``vflens`` with logs that keep no hash chain and no digests: what an auditor's evidence costs."""

from __future__ import annotations

from vflens.cli import main as program
from vflens.storage.chain import Chain
from vflens.storage.release_digests import ReleaseDigests


def leave_out() -> None:
    """From now on keep none, in this process."""
    Chain.append = lambda *_: None  # type: ignore[method-assign]
    ReleaseDigests.add = lambda *_: None  # type: ignore[method-assign]


def main() -> None:
    """Be such a process."""
    leave_out()
    program.main()
