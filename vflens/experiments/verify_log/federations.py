"""The federation that each party was told of, members, model and training, against those of others."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from vflens.errors import StorageError, VflensError
from vflens.experiments.results.files import FederationFile
from vflens.experiments.results.folders import PartyRun
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.verify_log.finding import Found
from vflens.experiments.verify_log.heads import Held
from vflens.experiments.verify_log.words import Word
from vflens.recorded.agreements import AGREEMENTS

_TOLD = "who leads the run told them of different federations, or one of the files was changed"


def compare_federations(run: RecordedRun, held: Iterable[Held], faults: Found) -> None:
    """Find parties that were told of different federations: as their folders say, and as they signed."""
    aligned = [party for party in run.parties if party.federation.parties]
    for party in aligned[1:]:
        facts, others = _facts(party.federation), _facts(aligned[0].federation)
        differing = [fact for fact in facts if facts[fact] != others[fact]]
        if differing:
            fact, first = differing[0], aligned[0].name
            problem = f"its {fact} are not those of {first!r}{_names(fact, facts, others)}: {_TOLD}"
            faults.differs(party.name, "federation.json", problem)
    _compare_signed({party.name: party for party in aligned}, held, faults)


def _digest(party: PartyRun) -> str:
    """The digest of the federation in the folder of ``party``, in hexadecimal."""
    return AGREEMENTS[party.federation.setting].digest_in(party.folder).hex()


def _facts(aligned: FederationFile) -> dict[str, Any]:
    """What all parties agree on; keys of masks and numbers of rows are compared one by one elsewhere."""
    return {
        "members": [(info.name, str(info.role)) for info in aligned.parties],
        "columns": [replace(info, mask_key="", train_rows=0) for info in aligned.parties],
        "settings of training": aligned.training,
        "settings of rounds": aligned.horizontal,
        "model": aligned.model,
        "aggregator and lab mode": (aligned.aggregator, aligned.lab),
    }


def _names(fact: str, mine: dict[str, Any], others: dict[str, Any]) -> str:
    if fact != "members":
        return ""
    lists = (", ".join(name for name, _ in facts[fact]) for facts in (mine, others))
    return " ({}, and {})".format(*lists)


def _compare_signed(aligned: dict[str, PartyRun], held: Iterable[Held], faults: Found) -> None:
    """The digest that a party sent with its heads, against its file and what the others sent."""
    first: Held | None = None
    for one in (h for h in held if h.federation):
        first = first or one
        if one.federation != first.federation:
            faults.differs(
                one.owner,
                "federation.json",
                f"it sent {one.holder!r} the digest of another federation ({one.word}) than {first.owner!r} "
                f"sent {first.holder!r} ({first.word}): {_TOLD}",
            )
        party, own = aligned.get(one.owner), None
        try:
            own = _digest(party) if party else None
        except StorageError:  # a copy without rows.npz
            pass
        except VflensError as error:  # no party trains so: whoever shows it wrote it
            faults.damaged(one.owner, "federation.json", str(error))
        if own is not None and own != one.federation:
            problem = f"it is not the federation whose digest {one.owner!r} sent {one.holder!r} ({one.word})"
            faults.damaged(one.owner, "federation.json", problem)
            if one.word is not Word.PROVEN:
                faults.differs(
                    one.holder, "heads.json", f"its digest of the federation of {one.owner!r}: {problem}"
                )
