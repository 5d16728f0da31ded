"""The nonce of the run, which its leader draws and every party states: two runs of one name and one
configuration differ in it alone.
"""

from collections import Counter
from collections.abc import Sequence

from vflens.experiments.results.record import RecordedRun
from vflens.experiments.verify_log.finding import Found
from vflens.experiments.verify_log.heads import Held
from vflens.experiments.verify_log.words import Word

_SHOWN = 8  # digits of a nonce


def of_one_run(run: RecordedRun, held: Sequence[Held], faults: Found) -> tuple[RecordedRun, Sequence[Held]]:
    """The folders and statements of the run that most are of, proven ones before others.

    Those of another run are found, named after who shows them. They enter no other comparison: a genuine
    head of an earlier run would make honest parties differ from themselves.
    """
    nonces = {party.name: party.federation.nonce for party in run.parties if party.federation.parties}
    if not any((*nonces.values(), *(one.nonce for one in held))):
        faults.notes.append(
            "no party states a nonce of the run, as in an earlier release: it is not told apart from other "
            "runs of its name and configuration"
        )
        return run, held
    due, sure = _due(nonces, held)
    for party, nonce in nonces.items():
        if nonce != due or not sure:
            faults.differs(party, "federation.json", f"it is {_of(nonce)}, {_others(due, sure=sure)}")
    for one in held:
        if one.nonce != due and sure:
            stated = f"its heads of {one.owner!r} are {_of(one.nonce)} ({one.word})"
            faults.differs(one.holder, "heads.json", f"{stated}, {_others(due, sure=sure)}")
    mine = tuple(party for party in run.parties if nonces.get(party.name, due) == due)
    return RecordedRun(run.name, mine), [one for one in held if one.nonce == due]


def _due(nonces: dict[str, str], held: Sequence[Held]) -> tuple[str, bool]:
    """The nonce that most state, where it is proven before where it is not; and whether one is ahead."""
    proven = Counter(one.nonce for one in held if one.word is Word.PROVEN)
    count = Counter([*nonces.values(), *(one.nonce for one in held)])
    first, *others = sorted(filter(None, count), key=lambda nonce: (proven[nonce], count[nonce]))[::-1]
    same = (proven[first], count[first])
    return first, all((proven[nonce], count[nonce]) != same for nonce in others)


def _others(due: str, *, sure: bool) -> str:
    if sure:
        return f"most of the others say {due[:_SHOWN]}…"
    return "as many say another: which of them is of another run cannot be told from these folders"


def _of(nonce: str) -> str:
    return f"of the run with the nonce {nonce[:_SHOWN]}…" if nonce else "without a nonce of the run"
