"""The record of an audit, of planned models or of a given one: its view is the document of ``--json``.

Pages, advice, thresholds and data protection documents read it. :func:`read_audit` reads what they need back
from a file, and refuses a damaged one before it decides anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from vflens.errors import DataError
from vflens.experiments.audit.bench import Bench, Plan, Wanted
from vflens.experiments.audit.defenses import Chosen, Defended, Mean
from vflens.experiments.audit.outcomes import AttackOutcome, by_column, column_blind, columns_json
from vflens.experiments.outcome.finding import Finding
from vflens.experiments.results.findings import WorstCase
from vflens.experiments.results.theory import TOLERANCE
from vflens.names import HEX_64
from vflens.numerics.theory.closed_forms import Bounds
from vflens.plugins.attack import up_to_affine
from vflens.storage.json_file import Rows, Size, Word, in_words, read_as
from vflens.types import ColumnInfo, Document, Phase
from vflens.words import counted

_OF_PLANNED = (
    *("attacked_rows", "known_rows", "classes", "equations", "raw_outputs", "label", "trained"),
    *("real_labels", "real_others", "training", "bounds", "after_training", "column_entropy", "utility"),
    *("defenses", "left_out", "failed", "fitting"),
)
_OF_GIVEN = ("weights", "inputs", "others_drawn", "tells")
_FOLLOWS = ("theory_disagreements", "strongest", "leak", "worst_model")  # of planned models
_BY_COLUMN = ("by_column", "by_training")
_MADE = ("tables", "files", "began", "version", "ended")  # by the command


@dataclass(frozen=True, kw_only=True)
class NumericLabel(ColumnInfo):
    """A numeric label; ``assumed`` says what nobody stated of it."""

    assumed: str = ""


@dataclass(frozen=True)
class EarlyBounds(Bounds):
    """Theorem 2 before training, and the least error of any attack that answers around one point."""

    any_center: float


@dataclass(frozen=True)
class Closed:
    """Theorem 2 for a trained model: the error as a whole, and by column."""

    mse: float
    columns: tuple[float, ...]


@dataclass(frozen=True)
class TreeFile:
    """What the file of trees tells of training: its ``training_rows`` by leaf, ``training_boxes``, and why it
    is no more (``training_untold``); how many ``pruned_nodes`` it keeps, which are not read, and
    ``unused_trees``, which no score adds. A blind guess has ``blind_branches`` right, None if no tree splits
    an unknown column.
    """

    training_rows: Sequence[Document]
    training_boxes: Document
    training_untold: str | None
    pruned_nodes: int
    unused_trees: int
    blind_branches: float | None = None


@dataclass(frozen=True)
class ReadFile:
    """A file that was read, and its digest."""

    file: Word
    sha256: Annotated[str, Field(pattern=HEX_64)]


@dataclass(frozen=True, kw_only=True)
class AuditRecord:
    """What an audit found; ``weights`` is the file of a given model, "" of planned ones.

    ``units`` (d,): what 1 stands for in each column, () of pixels. ``blind``: MSE of blind guesses, of which
    ``blind_guess`` is the best. ``bounds`` and ``after_training`` are by attack, ``column_entropy`` in bits,
    None where a column takes many values. ``by_column``: the attack that takes most of each whole column,
    ``by_training`` that on training in the clear.
    ``failed`` and ``left_out`` say why, by name. ``fitting`` are the ``defenses`` that fit what is
    ``wanted``. ``tells``: by field of the model's file what it holds beyond its predictions. The last five
    the command adds.
    """

    subject: Word
    columns: Annotated[tuple[Word, ...], Field(min_length=1)]
    tolerance: Mapping[str, Size]
    units: tuple[Size, ...] = ()
    attacks: Annotated[tuple[AttackOutcome, ...], Field(min_length=1)]
    worst_cases: tuple[WorstCase, ...] = ()
    rows: int = 0
    table_rows: int = 0
    attacked_rows: Rows | None = None
    known_rows: int = 0
    categories: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    classes: int = 0
    equations: int = 0
    raw_outputs: bool = False
    model: str = ""
    label: NumericLabel | None = None
    clipped: int = 0
    trained: bool = False
    real_labels: bool = False
    real_others: bool = False
    training: Literal["clear", "secure"] | None = None
    blind: Mapping[str, float] = field(default_factory=dict)
    blind_guess: str = ""
    bounds: Mapping[str, EarlyBounds] = field(default_factory=dict)
    after_training: Mapping[str, Closed] = field(default_factory=dict)
    by_column: tuple[Finding, ...] = ()
    by_training: tuple[Finding, ...] = ()
    column_blind: tuple[float, ...] = ()
    column_entropy: tuple[float | None, ...] = ()
    utility: Mapping[str, Mean] = field(default_factory=dict)
    defenses: tuple[Defended, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    wanted: Wanted | None = None
    fitting: tuple[Chosen, ...] = ()
    plan: Plan = field(default_factory=Plan)
    weights: str = ""
    inputs: int = 0
    others_drawn: bool = False
    tells: tuple[tuple[str, str], ...] = ()
    trees: TreeFile | None = None
    tables: Document | None = None
    files: tuple[ReadFile, ...] | None = None
    began: str | None = None
    version: str | None = None
    ended: str | None = None

    def __post_init__(self) -> None:
        sized = {f"attacks.{i}.{n}": of for i, a in enumerate(self.attacks) for n, of in a.by_column.items()}
        for name, figures in {**sized, "units": self.units or self.columns}.items():
            if len(figures) != (d := len(self.columns)):
                raise ValueError(
                    f"{name}: it has {counted(len(figures), 'figure')}, of {counted(d, 'column')}"
                )
        if self.defenses and self.wanted is None:
            raise ValueError("wanted: it is missing")
        if unknown := sorted(self.tolerance.keys() - set(self.columns)):
            raise ValueError(f"tolerance: {unknown[0]!r} is none of the columns")

    @classmethod
    def of(cls, bench: Bench, attacks: Sequence[AttackOutcome], **own: Any) -> AuditRecord:
        """What ``attacks`` reach on the rows of ``bench``, and what one kind of audit has of its ``own``."""
        subject, plan = bench.subject, bench.plan
        counting = _counting(attacks, len(bench.rows))
        of_training = [a for a in counting if a.phase is Phase.TRAIN]
        return cls(
            subject=subject.name,
            columns=tuple(bench.names),
            categories={name: tuple(of) for name, of in bench.categories.items()},
            rows=len(subject.x),
            table_rows=subject.table_rows,
            clipped=subject.clipped,
            units=() if subject.units is None else tuple(subject.units.tolist()),
            blind=bench.blind,
            blind_guess=bench.blind_guess,
            column_blind=tuple(column_blind(bench.truth, bench.guesses(bench.rows)).tolist()),
            attacks=tuple(attacks),
            by_column=by_column(counting, subject, bench.failed),
            by_training=by_column(of_training, subject, bench.failed, len(counting)),
            wanted=plan.wanted(),
            plan=plan,
            **own,
        )

    @property
    def is_given(self) -> bool:
        """Whether a given model was audited, not planned ones."""
        return bool(self.weights)

    @property
    def aims(self) -> Wanted:
        """What the party asks for."""
        return self.wanted or self.plan.wanted()

    @property
    def is_kept(self) -> bool:
        """Whether every attack keeps to what the party asks for, without a defence."""
        return self.aims.keeps(self.strongest.mse, self.leak)

    @property
    def blind_error(self) -> float:
        """MSE of the best blind guess."""
        return self.blind[self.blind_guess]

    @property
    def counting(self) -> list[AttackOutcome]:
        """The attacks on enough rows to decide: of a slow one on some they are not."""
        return _counting(self.attacks, self.attacked_rows)

    @property
    def of_training(self) -> list[AttackOutcome]:
        """The attacks on training in the clear."""
        return [a for a in self.attacks if a.phase is Phase.TRAIN]

    @property
    def strongest(self) -> AttackOutcome:
        """That of least error: of two that are exact but for rounding the one that gives values."""
        return min(self.counting, key=by_error)

    @property
    def worst_model(self) -> AttackOutcome:
        """That which takes most of a column."""
        return max(self.counting, key=lambda a: (round(a.leak, 9), -a.mse))

    @property
    def leak(self) -> float:
        """What it takes."""
        return self.worst_model.leak

    @property
    def chosen(self) -> list[Defended]:
        """The fitting defences with their figures, the cheapest first; [] of a record from a file."""
        return [d for d in self.fitting if isinstance(d, Defended)]

    @property
    def theory_disagreements(self) -> list[str]:
        """A sentence for each attack whose error disagrees with theory on the same rows."""
        return [
            f"{a.attack} against {a.kind} models measured {a.unclipped:.6g}, RVG Theorem 2 says "
            f"{a.closed:.6g} (largest relative difference {a.disagreement:.1e})"
            for a in self.attacks
            if a.disagreement is not None and a.disagreement > TOLERANCE
        ]

    @property
    def own_units(self) -> list[Document]:
        """:attr:`by_column` under stable keys, and in words."""
        return columns_json(self.by_column)

    @property
    def json(self) -> Document:
        """It under stable keys: see ``docs/audit.md`` and ``docs/others.md``."""
        left, follows = (_OF_PLANNED, ()) if self.is_given else (_OF_GIVEN, _FOLLOWS)
        known = vars(self) | {name: getattr(self, name) for name in (*follows, "own_units")}
        unset = {name for name in _MADE if known[name] is None}
        by_name = {f: of for f, of in known.items() if f not in {*_BY_COLUMN, "trees", *left, *unset}}
        found: Document = _plain({**by_name, **(vars(self.trees) if self.trees else {})})
        return found


def by_error(outcome: AttackOutcome) -> tuple[float, bool]:
    """An order of attacks: of two that are exact but for rounding, the one that gives values comes first."""
    return round(outcome.mse, 12), up_to_affine(outcome.attack)


def _counting(attacks: Sequence[AttackOutcome], rows: int | None) -> list[AttackOutcome]:
    return [a for a in attacks if a.phase is Phase.TRAIN or a.rows == (rows or a.rows)]


def _plain(value: Any) -> Any:
    """``value`` of tables, lists, numbers and records."""
    if is_dataclass(value):
        by_field = {f.name: getattr(value, f.name) for f in fields(value)}
        return _plain(getattr(value, "json", by_field))
    if isinstance(value, Mapping):
        return {key: _plain(of) for key, of in value.items()}
    return [_plain(of) for of in value] if isinstance(value, list | tuple) else value


def read_audit(file: Path, due: str = "audit") -> AuditRecord:
    """The audit in ``file``, where what is ``due`` may be something else, too.

    Raises:
        DataError: it is none, or damaged; names the field, its value, and how to write it.
    """
    try:
        return read_as(AuditRecord, file)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{file} is no {due} ({in_words(error)}): write one with `vflens audit … --json > {file.name}`"
        ) from error
