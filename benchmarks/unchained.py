"""``vflens`` with logs that keep no hash chain and no digests: what an auditor's evidence costs."""

from __future__ import annotations

from vflens.cli.main import main
from vflens.storage.chain import Chain
from vflens.storage.release_digests import ReleaseDigests


def leave_out() -> None:
    """From now on keep none, in this process."""
    Chain.append = lambda *_: None  # type: ignore[method-assign]
    ReleaseDigests.add = lambda *_: None  # type: ignore[method-assign]


if __name__ == "__main__":
    leave_out()
    main()
