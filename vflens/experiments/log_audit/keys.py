"""The public keys of masks: whether a server gave every client the keys that the clients sent."""

from __future__ import annotations

from vflens.experiments.log_audit.finding import Found
from vflens.experiments.results.folders import Run


def compare_keys(run: Run, found: Found) -> None:
    """Compare the keys of masks in ``federation.json`` of each party with those of their owners.

    A client takes no federation that gives it another key than its own.
    """
    held = {p.name: {info.name: info.mask_key for info in p.federation.parties} for p in run.parties}
    for party, keys in held.items():
        for owner, key in keys.items():
            if owner in held and key != held[owner].get(owner, key):
                found.differs(
                    party,
                    "federation.json",
                    f"its key of masks of {owner!r} is not that of {owner!r}: who put it there could read "
                    "updates",
                )
