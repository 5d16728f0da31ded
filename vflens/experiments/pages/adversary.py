"""Where the adversary of a report sits, who is with it, and whether it keeps to the protocol."""

from collections.abc import Sequence

from vflens.experiments.results.record import RecordedRun
from vflens.experiments.results.titles import attacker, named, targets
from vflens.experiments.results.verdict import baseline


def adversary(runs: Sequence[RecordedRun]) -> str:
    """What the attacks of ``runs``, one at least, were allowed, in words."""
    undefended = runs[baseline(runs)]
    attacked = ", ".join(named(undefended, target) for target in targets(runs))
    seat = f"The adversary sits in {attacker(undefended)}" + (f" and attacks {attacked}" if attacked else "")
    joint = _coalitions(runs)
    together = f"Some attacks join what several parties know: {'; '.join(joint)}." if joint else ""
    honest = "It follows the protocol" + (
        ", except in runs marked MALICIOUS above," if any(run.malicious for run in runs) else ""
    )
    reads = "and reads what its party received, what was disclosed to it and what it owns, nothing else."
    return " ".join(filter(None, [f"{seat}.", together, honest, reads]))


def _coalitions(runs: Sequence[RecordedRun]) -> list[str]:
    """The parties that join in an attack of ``runs``, as "client-2 with client-3", each coalition once."""
    joint = (
        attacker(run, str(table["name"]))
        for run in runs
        for party in run.parties
        for table in party.settings.attacks
        if table.get("colluders")
    )
    return list(dict.fromkeys(joint))
