"""The titles of runs, by their defences, who attacks in them, and the order of names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from vflens.experiments.results.folders import PartyRuns
from vflens.names import all_of
from vflens.numerics.measures.intervals import least_first
from vflens.protocol.roles import ROLES, SEATS
from vflens.types import Facts, Role

if TYPE_CHECKING:
    from vflens.experiments.results.record import RecordedRun

ON_GRANTS_ONLY = "acts on what is granted only"  # of a defence that hides nothing that crosses the wire


def defenses(run: RecordedRun) -> list[str]:
    """The configured defences with their parameters, in words, party by party."""
    return [_worded(run, party.name, table) for party in run.parties for table in party.settings.defenses]


def _worded(run: RecordedRun, party: str, table: Facts) -> str:
    """A defence of ``party`` in words, and whether it acts on grants alone."""
    only = (party, table.get("name")) in run.on_grants_only
    return describe(table) + (f" ({ON_GRANTS_ONLY})" if only else "")


def describe(plugin: Facts) -> str:
    """A plug-in's table in words, e.g. "rounding (digits 2)"."""
    parameters = ", ".join(f"{k} {v}" for k, v in plugin.items() if k != "name")
    return str(plugin.get("name", "?")) + (f" ({parameters})" if parameters else "")


def labels(runs: Sequence[RecordedRun]) -> list[str]:
    """A title for each run: its defences; also its name if two titles are equal or the defences unknown."""
    plain = [_defended(r) or ("no defence" if tells_defenses(r) else r.name) for r in runs]
    return [f"{p} · {r.name}" if plain.count(p) > 1 else p for p, r in zip(plain, runs, strict=True)]


def _defended(run: RecordedRun) -> str:
    """Each configured defence once; with its holders where only some of several clients have it."""
    holders: dict[str, list[str]] = {}
    for party in run.parties:
        for table in party.settings.defenses:
            holders.setdefault(_worded(run, party.name, table), []).append(party.name)
    every = run.alike
    some = {d: "" if set(h) >= set(every) else f" at {', '.join(h)}" for d, h in holders.items()}
    return " + ".join(f"{d}{where}" for d, where in some.items())


def places(runs: Sequence[RecordedRun]) -> list[str]:
    """Each run by its defences, in a sentence: "with no defence", "with unknown defences"."""
    shows = [tells_defenses(r) or bool(defenses(r)) for r in runs]
    unknown = "unknown defences" if shows.count(False) == 1 else "unknown defences · {name}"
    return [
        f"with {label if known else unknown.format(name=r.name)}"
        for known, label, r in zip(shows, labels(runs), runs, strict=True)
    ]


def tells_defenses(run: RecordedRun) -> bool:
    """Whether the folders are there that name the defences: the coordinator's, or those of all clients."""
    everyone = set(run.alike)
    return run.holds(Role.COORDINATOR) or (bool(everyone) and everyone <= {p.name for p in run.parties})


def targets(runs: Sequence[RecordedRun]) -> list[str]:
    """Every target of a scored attack, in order of appearance."""
    return list(dict.fromkeys(r.target for run in runs for r in run.results))


def ranking(runs: Sequence[RecordedRun]) -> dict[str, int]:
    """The rank of each attack over all runs, the most successful first."""
    everything = sorted((r for run in runs for r in run.results), key=lambda r: least_first(r.relative))
    return {attack: rank for rank, attack in enumerate(dict.fromkeys(r.attack for r in everything))}


def attacker(run: PartyRuns, attack: str | None = None) -> str:
    """The party that runs ``attack``, in words, with those that collude in it; any attacking party otherwise,
    or the active party, or the server.
    """
    tables = [(p.name, a) for p in run.parties for a in p.settings.attacks if attack in (None, a.get("name"))]
    names = list(dict.fromkeys(name for name, _ in tables)) or run.attackers
    words = all_of(named(run, n) for n in names) or "the active party"
    colluders = sorted({str(name) for _, table in tables if attack for name in table.get("colluders", ())})
    return f"{words} with {all_of(colluders)}" if colluders else words


def named(run: PartyRuns, party: str) -> str:
    """A party in words: its role, and its name if that differs; of a horizontal run as it is called."""
    info = run.infos().get(party)
    if info is None:
        return SEATS[Role.OPERATOR].words if party == Role.OPERATOR else f"party {party}"
    other = "" if party == info.role else f" {party}"
    return ROLES[info.role].words.format(role=info.role, name=party, other=other)


def things(run: PartyRuns, target: str) -> str:
    """The word for what is estimated of the target: "pixels", "columns", or its numeric "label"."""
    pixels = (columns := run.columns_of(target)) and all(c.pixel for c in columns)
    return "label" if run.label_of(target) else "pixels" if pixels else "columns"


def by_name(name: str) -> list[tuple[int, str]]:
    """Key of an order of names in which "client-2" comes before "client-10"."""
    parts = re.findall(r"\d{1,18}|\D+|\d+", name)
    return [(int(part), "") if part.isdecimal() and len(part) < 19 else (-1, part) for part in parts]
