"""The nonce of the run, which its leader draws and every party states: two runs of one name and one
configuration differ in it alone.
"""

from collections import Counter
from collections.abc import Sequence

from vflens.experiments.results.record import RecordedRun
from vflens.experiments.verify_log.finding import Found
from vflens.experiments.verify_log.heads import Held

_SHOWN = 8  # digits of a nonce


def compare_nonces(run: RecordedRun, held: Sequence[Held], found: Found) -> None:
    """Find folders and statements of another run than most are of."""
    told = {party.name: party.federation.nonce for party in run.parties if party.federation.parties}
    count = Counter([*told.values(), *(one.nonce for one in held)])
    if not any(count):
        found.notes.append(
            "no party states a nonce of the run, as in an earlier release: it is not told apart from other "
            "runs of its name and configuration"
        )
        return
    due = max((nonce for nonce in count if nonce), key=lambda nonce: count[nonce])
    for party, nonce in told.items():
        if nonce != due:
            found.differs(
                party, "federation.json", f"it is {_of(nonce)}, most of the others say {due[:_SHOWN]}…"
            )
    for one in held:
        if one.nonce != due:
            stated = f"its heads of {one.owner!r} are {_of(one.nonce)} ({one.word})"
            problem = f"{stated}, most of the others say {due[:_SHOWN]}…"
            found.differs(one.holder, "heads.json", problem)


def _of(nonce: str) -> str:
    return f"of the run with the nonce {nonce[:_SHOWN]}…" if nonce else "without a nonce of the run"
