"""``vflens dpia``: what a data protection officer signs, from runs, audits and sweeps.

Measured, declared, combined: no figure stands without its interval and its baseline, nothing is made up, and
what was not tested is said. There are no bands and no colours: the law has none.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

from vflens.errors import DataError
from vflens.experiments.audit.record import read_audit
from vflens.experiments.evidence import matrix, untested, words
from vflens.experiments.evidence.declared import Declaration
from vflens.experiments.evidence.measured import as_json, measured, rows, statistic, target, term, unit, what
from vflens.experiments.evidence.mitigations import (
    Mitigation,
    Worth,
    of_audit_tried,
    of_runs_tried,
    of_sweep_tried,
)
from vflens.experiments.evidence.provenance import (
    Digest,
    Made,
    Transfer,
    audit_time,
    audited,
    digests,
    ledger_notes,
    of_file,
    received,
    times,
)
from vflens.experiments.evidence.sources import of_audit, of_sweep, refused_in
from vflens.experiments.outcome.finding import Finding, Findings
from vflens.experiments.outcome.words import figures
from vflens.experiments.results.findings import of_runs
from vflens.experiments.results.record import RecordedRun, read_runs
from vflens.experiments.results.utility import UTILITY
from vflens.storage.arrow import parquet_table
from vflens.storage.json_file import in_words
from vflens.storage.metrics import Name
from vflens.types import Document

SWEEP = "sweep.parquet"
UNDEFENDED = "undefended"  # as sweeps call it
_MEASURED = (
    *(
        "source",
        "where",
        "recipient",
        "of",
        "term",
        "what",
        "case",
        "found",
        "95 % interval",
        "blind guess",
        "unit",
    ),
    *("attack", "rows"),
)


class Cells(NamedTuple):
    """A table of a section: its head and its rows."""

    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


class Section(NamedTuple):
    """A part of the document: sentences, then tables."""

    title: str
    sentences: list[str]
    tables: list[Cells]


@dataclass
class Dpia:
    """The document, before it is written."""

    declared: Declaration
    measured: list[Finding] = field(default_factory=list)
    tried: list[Mitigation] = field(default_factory=list)
    untested: list[str] = field(default_factory=list)
    recipients: list[Transfer] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    digests: list[Digest] = field(default_factory=list)
    times: list[Made] = field(default_factory=list)
    written: str = ""

    @property
    def json(self) -> Document:
        """It under stable keys: see ``docs/evidence.md``."""
        head, body = matrix.rows(self.measured)
        return {
            "written": self.written,
            "declared": self.declared.model_dump(),
            "missing": list(self.declared.missing),
            "measured": [as_json(m) for m in self.measured],
            "found": matrix.sentence(self.measured),
            "matrix": [dict(zip(head, row, strict=True)) for row in body],
            "residual": words.residual(self.measured),
            "combined": words.combined(self.measured, self.declared),
            "mitigations": [m.json for m in self.tried],
            "recipients": [r._asdict() for r in self.recipients],
            "untested": self.untested,
            "sources": [t._asdict() for t in self.times],
            "digests": [d._asdict() for d in self.digests],
        }

    def sections(self) -> list[Section]:
        """It for readers, in their order."""
        asks = type(self.declared).model_fields
        declared = [
            (name, asks[name].description or "", text)
            for name, text in words.declared_lines(self.declared).items()
        ]
        found = [_cells(m) for m in self.measured]
        made = f"Written {self.written} with VFLens {version('vflens')}."
        return [
            Section("What each recipient finds", [matrix.sentence(self.measured)], [self._matrix()]),
            Section("Combined with what is declared", words.combined(self.measured, self.declared), []),
            Section(
                "Declared",
                words.missing(self.declared),
                [Cells(("field", "what it says", "declared"), declared)],
            ),
            Section("Measured", [], [Cells(_MEASURED, found)]),
            Section("Mitigations tried, and their cost", [], [_mitigated(self.tried)]),
            Section("Recipients", self.notes, [_received(self.recipients)]),
            Section("Not tested", [*self.untested, *untested.ALWAYS], []),
            Section("Who and when", [*words.who(self.declared), made], [_made(self.times)]),
            Section(
                "Inputs and logs",
                [],
                [Cells(("source", "file", "kind", "digest"), [tuple(d) for d in self.digests])],
            ),
            Section("Footnotes: the residual risk, one by one", words.residual(self.measured), []),
        ]

    def _matrix(self) -> Cells:
        return Cells(*matrix.rows(self.measured))


def _cells(m: Finding) -> tuple[str, ...]:
    place = m.source, m.where, m.adversary, target(m), term(m), what(m), statistic(m)
    return (*place, *figures(m), unit(m), m.attack, f"{m.rows:,} {rows(m)}")


def _mitigated(tried: Sequence[Mitigation]) -> Cells:
    head = (
        "source",
        "defence",
        "still found most",
        "found",
        "95 % interval",
        "blind guess",
        "measure",
        "the model's worth",
        "95 % interval",
        "without it",
    )
    rows = []
    for m in tried:
        worst = ("–", "–", "–") if m.worst is None else figures(m.worst)
        worth = [(_measure(name, f), *_noted(f.words(), m.words)) for name, f in m.worth.items()]
        for cost in worth or [("–", m.words or "–", "–", "–")]:
            rows.append((m.source, m.where, what(m.worst) if m.worst else m.unfound, *worst, *cost))
    return Cells(head, rows)


def _noted(figures: tuple[str, str, str], words: str) -> tuple[str, str, str]:
    """``figures``, with ``words`` on their interval behind it."""
    value, ends, baseline = figures
    return value, f"{ends} ({words})" if words else ends, baseline


def _measure(name: Name, figure: Worth) -> str:
    """What ``figure`` measures, with its unit where it has one."""
    return f"RMSE, {figure.unit}" if name is Name.RMSE else UTILITY[name]


def _received(recipients: Sequence[Transfer]) -> Cells:
    head = ("source", "where", "from", "to", "what", "messages", "bytes", "defended by")
    return Cells(head, [tuple(map(str, r)) for r in recipients])


def _made(times: Sequence[Made]) -> Cells:
    return Cells(("source", "began (UTC)", "ended (UTC)", "VFLens"), [tuple(t) for t in times])


def assess(sources: Sequence[Path], declared: Declaration) -> Dpia:
    """The document on ``sources``: run folders, documents of ``vflens audit --json``, folders of sweeps.

    Raises:
        ConfigError, DataError: a source is none of these, or damaged.
    """
    made = Dpia(declared, written=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"))
    distinct = list({s.resolve(): s for s in sources}.values())
    folders = [s for s in distinct if s.is_dir() and not (s / SWEEP).exists()]
    if folders:
        _add_runs(made, read_runs(folders))
    others = [s for s in distinct if s not in folders]
    for source, name in zip(others, _short_names(others), strict=True):
        if source.is_dir() or source.name == SWEEP:
            _add_sweep(made, source / SWEEP if source.is_dir() else source, f"sweep {name}")
        else:
            _add_audit(made, source, f"audit {name}")
    return made


def _short_names(files: Sequence[Path]) -> list[str]:
    """The ends of the paths of distinct ``files``, as short as tells them apart."""
    parts = [file.resolve().parts for file in files]
    longest = max(map(len, parts), default=1)
    ends = (["/".join(p[-n:]) for p in parts] for n in range(1, longest + 1))
    return next(names for names in ends if len(set(names)) == len(names))


def _add_runs(made: Dpia, runs: Sequence[RecordedRun]) -> None:
    evidence = of_runs(runs)
    found = list(measured(evidence))
    made.measured += found
    made.tried += of_runs_tried(runs, found)
    made.untested += untested.by_runs(runs)
    for e in evidence:
        _add_gaps(made, [e], e.source)
    made.recipients += received(runs)
    made.notes += ledger_notes(runs)
    made.digests += digests(runs)
    made.times += times(runs)


def _add_gaps(made: Dpia, evidence: Sequence[Findings], source: str) -> None:
    made.untested += untested.without_interval(evidence, source)
    made.untested += untested.without_imputation(evidence, source)


def _add_audit(made: Dpia, file: Path, source: str) -> None:
    record = read_audit(file, "run folder, sweep or audit")
    evidence = replace(of_audit(record, source), where="without a defence")
    made.measured += measured([evidence])
    made.tried += of_audit_tried(record, source)
    made.untested += untested.by_audit(record, source)
    _add_gaps(made, [evidence], source)
    made.digests += [of_file(source, file), *audited(record, source)]
    made.times.append(audit_time(record, source))
    made.notes.append(_without_log(source))


def _add_sweep(made: Dpia, file: Path, source: str) -> None:
    try:
        table = parquet_table(file)
        rows, refused = table.to_pylist(), refused_in(table)
        cells = [replace(e, source=source) for e in of_sweep(rows, UNDEFENDED, refused or ())]
        found = list(measured(cells))
        tried = list(of_sweep_tried(rows, refused or (), found, UNDEFENDED, source))
        without = list(untested.by_refusals(refused, UNDEFENDED, source))
        digest = of_file(source, file)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{file} is no sweep ({in_words(error)}): give the folder of `vflens sweep`"
        ) from error
    made.measured += found
    made.tried += tried
    made.untested += without
    attempted = {r["attack"] for r in (*rows, *(refused or ())) if r.get("attack")}
    made.untested += untested.by_sweep(attempted, cells, source)
    _add_gaps(made, cells, source)
    made.digests.append(digest)
    made.times.append(Made(source, *["not recorded"] * 3))
    made.notes.append(_without_log(source))


def _without_log(source: str) -> str:
    return (
        f"{source[:1].upper()}{source[1:]} keeps no log of messages: who receives what is not recorded there."
    )
