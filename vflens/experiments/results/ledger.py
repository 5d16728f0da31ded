"""The ledger of runs: who sent what to whom, how much, of how many rows, in which phase, defended by what."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from vflens.errors import printable, shortened
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.results.titles import describe, labels
from vflens.plugins.defense import GATE_HOOKS, installed_defense
from vflens.protocol.roles import ROLES
from vflens.recorded.crossings import Crossing
from vflens.types import Document, Phase, Point

if TYPE_CHECKING:  # only a terminal needs it
    from rich.table import Table

_HOOKS = {point.value: hook for point, hook in GATE_HOOKS.items()}
_LONGEST_NAME = 40  # characters of a party's name in texts and plots; JSON has all
_LONGEST_DEFENSE = 200


@dataclass(frozen=True)
class Line:
    """Messages of one kind; ``defenses`` of the sender act on them as they leave.

    None: the sender's folder was not given.
    """

    crossing: Crossing
    defenses: tuple[str, ...] | None

    def cells(self) -> tuple[str, ...]:
        """Sender, receiver, kind, messages, bytes, rows and defences in words."""
        c = self.crossing
        kind = f"{c.point} ({c.withheld:,} withheld)" if c.withheld else c.point
        size = "–" if c.nbytes is None else in_bytes(c.nbytes)
        who = (shown(c.sender), shown(c.receiver) or "not recorded")
        return (*who, shown(kind), f"{c.count:,}", size, self._rows(), self.defended)

    @property
    def phase(self) -> str:
        """The phase, on one line."""
        return shown(self.crossing.phase)

    @property
    def defended(self) -> str:
        """The defences in words; "–" without one."""
        if self.defenses is None:
            return "not known: the sender's folder was not given"
        return ", ".join(printable(shortened(d, _LONGEST_DEFENSE)) for d in self.defenses) or "–"

    def _rows(self) -> str:
        """The number of rows; "–": the messages name none, or their bytes are not there."""
        c = self.crossing
        if not c.rows:
            return "–"
        return f"≥ {c.rows:,}" if c.unrecorded else f"{c.rows:,}"


def shown(name: str) -> str:
    """Text of a file on one line, with control characters escaped and a long middle left out."""
    return printable(shortened(name, _LONGEST_NAME))


def in_bytes(nbytes: float) -> str:
    """Bytes with a unit: "812 B", "1.5 MB"."""
    units = ("B", "kB", "MB", "GB")
    power = next((p for p in range(3) if nbytes < 1000 ** (p + 1)), 3)
    return f"{nbytes / 1000**power:,.{1 if power else 0}f} {units[power]}"


def lines(run: RecordedRun) -> list[Line]:
    """What crossed the wire in ``run``, phase by phase, then by sender, receiver and kind.

    Receivers record it, but for masks that are dealt. What a party released to receivers whose folders were
    not given, and these masks, its own logs have: without the bytes and rows of training and disclosures, of
    which they keep digests only.

    Raises:
        DataError, StorageError: a log is damaged.
    """
    received = [c for party in run.parties for c in party.crossings()]
    kinds = {(c.sender, c.phase, c.point) for c in received}
    sent = [
        _received(run, c)
        for p in run.parties
        for c in p.releases()
        if (c.sender, c.phase, c.point) not in kinds
    ]
    phases = [phase.value for phase in Phase]
    order = {
        phase: i for i, phase in enumerate(dict.fromkeys([*phases, *(c.phase for c in received + sent)]))
    }
    found = sorted(received + sent, key=lambda c: (order[c.phase], c.sender, c.receiver, c.point))
    return [Line(_with_rows(run, c), _defenses(run, c)) for c in found]


def _received(run: RecordedRun, crossing: Crossing) -> Crossing:
    """Masks are dealt to the active party, which does not record them."""
    if crossing.phase != Phase.TRAIN or crossing.point != Point.SHARES:
        return crossing
    active = (name for name, info in run.infos().items() if ROLES[info.role].labelled)
    return replace(crossing, receiver=next(active, ""))


def _with_rows(run: RecordedRun, crossing: Crossing) -> Crossing:
    """An update names no rows: it is of all training rows of its client."""
    client = run.infos().get(crossing.sender)
    if crossing.point not in (Point.UPDATE, Point.MASKED_UPDATE) or client is None:
        return crossing
    return replace(crossing, rows=client.train_rows or None)


def _defenses(run: RecordedRun, crossing: Crossing) -> tuple[str, ...] | None:
    masks = ("secure aggregation",) if crossing.point == Point.MASKED_UPDATE else ()
    sender = next((p for p in run.parties if p.name == crossing.sender), None)
    if sender is None:
        return masks or None
    hook = _HOOKS.get(crossing.point)
    acting = (describe(t) for t in sender.settings.defenses if hook in _hooks(str(t.get("name"))))
    return (*acting, *masks)


def _hooks(defense: str) -> frozenset[str]:
    plugin = installed_defense(defense)
    return frozenset() if plugin is None else plugin.hooks()


def absent(run: RecordedRun, found: Sequence[Line] = ()) -> list[str]:
    """The parties whose folders were not given, sorted: those that a folder describes, and with ``found``
    also senders and configured peers.
    """
    peers = {str(peer.get("name", "?")) for p in run.parties for peer in p.settings.peers if found}
    known = run.infos().keys() | peers | {line.crossing.sender for line in found}
    return sorted(known - {p.name for p in run.parties})


def sampled(run: RecordedRun) -> dict[str, int]:
    """Party → n, of those that recorded the training messages of one epoch in n."""
    every = {p.name: p.settings.transcript.get("every", 1) for p in run.parties}
    return {party: n for party, n in every.items() if n > 1}


def to_json(runs: Sequence[RecordedRun]) -> Document:
    """The ledger as a JSON document."""
    return {"runs": [_run_json(run, title) for run, title in zip(runs, labels(runs), strict=True)]}


def _run_json(run: RecordedRun, title: str) -> Document:
    found = lines(run)
    as_json = [{**asdict(line.crossing), "defenses": line.defenses} for line in found]
    return {
        "run": run.name,
        "title": title,
        "lines": [{**line, "receiver": line["receiver"] or None} for line in as_json],
        "not_given": absent(run, found),
        "sampled": sampled(run),
        "in_process": any(p.federation.in_process for p in run.parties),
        "lab": any(p.federation.lab for p in run.parties),
        "malicious": run.malicious,
    }


def notes(run: RecordedRun, found: Sequence[Line]) -> Iterator[str]:
    """What the ledger ``found`` of ``run`` does not show, and where numbers are bounds."""
    if missing := absent(run, found):
        names = ", ".join(map(shown, missing))
        yield f"The folders of {names} were not given: what only they received is missing here."
    for party, every in sampled(run).items():
        yield (
            f"{shown(party)} recorded the training messages of one epoch in {every}: messages and bytes "
            "count all, rows those recorded."
        )
    if not all(line.crossing.receiver for line in found):
        yield (
            "A party's own log of releases names no receiver: it is a party whose folder was not given, or "
            "one that asked for predictions."
        )
    yield from (f"MALICIOUS: {printable(sentence)}." for sentence in run.malicious)
    if any(p.federation.in_process for p in run.parties):
        yield "In one process: isolation between the parties was a convention, not security."
    if any(p.federation.lab for p in run.parties):
        yield "Lab mode: one owner holds all parties."


def tables(runs: Sequence[RecordedRun]) -> Iterator[Table | str]:
    """For each run its title, one table for each phase, and notes."""
    for run, title in zip(runs, labels(runs), strict=True):
        found = lines(run)
        yield f"{shown(run.name)}: {shown(title)}" + ("" if found else "\nno message was recorded")
        for phase in dict.fromkeys(line.crossing.phase for line in found):
            yield _table(phase, [line for line in found if line.crossing.phase == phase])
        yield "\n".join(f"note: {note}" for note in notes(run, found))


def _table(phase: str, found: Sequence[Line]) -> Table:
    from rich.table import Table

    grid = Table(title=f"phase {shown(phase)}", title_justify="left", box=None, pad_edge=False)
    heads = ("from", "to", "what", "messages", "bytes", "rows", "defended by")
    for head in heads:
        number = head in ("messages", "bytes", "rows")
        grid.add_column(head, justify="right" if number else "left", no_wrap=number, overflow="fold")
    for line in found:
        grid.add_row(*line.cells())
    return grid
