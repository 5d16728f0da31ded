"""The subject of an audit: one passive party's columns, from its own file, a data set, or the folder of a
run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from types import MappingProxyType

import numpy as np

from vflens.array import ScaledColumns
from vflens.config import load_party
from vflens.datasets._resolve import dataset
from vflens.errors import ConfigError, DataError
from vflens.experiments.audit.described import Labelled, passive, stated_tolerance, table_description
from vflens.experiments.results.folders import read_party
from vflens.experiments.weights.linear import RAW_OUTPUTS
from vflens.models.families.linear_regression import LINEAR_REGRESSION
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.family import ModelFamily, checked_model
from vflens.numerics.linear_system import first_differences
from vflens.numerics.measures.rarity import VARYING, Rarity, drawn
from vflens.registry import DATASETS
from vflens.score.worst import letters_of
from vflens.services.folder import exclusive
from vflens.tables.cells import SUFFIXES
from vflens.tables.description import PartyFile
from vflens.tables.files import read_party_table
from vflens.tables.scaling import Scaler
from vflens.tables.table import Table
from vflens.types import Array, ColumnInfo, Document, LabelKind
from vflens.words import counted

_AS_DESCRIBED: Mapping[str, str] = MappingProxyType({})
FEWEST_ROWS = 10
_MOST_CLASSES = 1000  # minutes, and 8 MB of scores for a thousand rows


@dataclass(frozen=True, eq=False)
class AuditSubject:
    """One passive party.

    ``x`` (n, d) its columns scaled to [0, 1], ``clipped`` values of which lay outside; ``columns`` their
    public metadata, in the file's units. ``label`` is the metadata of a numeric label that the planned model
    learns, ``classes`` is then 1. Where they are known: ``other`` (n, m), the active party's columns, and
    ``labels`` (n,), numbers in [0, 1] of their bounds; after training ``weight`` (k, d), the party's own
    block of the model, whose outputs leave ``raw`` or through a softmax. ``units`` (d,) is what 1 stands for
    in each column of ``x``, in the file's units; None of pixels. ``bounds`` (d, 2) are the values, in these
    units, that are 0 and 1 in ``x``; None of a run folder. ``ids`` (n,) tell the owner which row is which:
    the file's in bytes, of a run folder the row's numbers. ``tolerance`` is that of the party's
    configuration: column → how far from the truth, in its unit, an answer counts as found. ``assumed`` says
    what nobody stated of the label. ``letters`` are the values of each column of few in the whole table, by
    position, None: in ``x``; ``there`` tells of the whole table, of which ``x`` may be a draw. ``one_hot``:
    the column of the file that a one-hot column is of, by its name.
    """

    name: str
    columns: tuple[ColumnInfo, ...]
    x: Array
    classes: int
    label: ColumnInfo | None = None
    clipped: int = 0
    other: Array | None = None
    labels: Array | None = None
    weight: Array | None = None
    raw: bool = False
    units: Array | None = None
    bounds: Array | None = None
    ids: Array | None = None
    tolerance: Mapping[str, float] = field(default_factory=dict)
    assumed: str = ""
    letters: Mapping[int, Array] | None = None
    there: Rarity | None = None
    one_hot: Mapping[str, str] = field(default_factory=dict)

    @property
    def family(self) -> ModelFamily:
        """The planned model: linear regression of a numeric label, else softmax regression, or its logits."""
        of_classes = RAW_OUTPUTS if self.raw else SOFTMAX_REGRESSION
        return of_classes if self.label is None else LINEAR_REGRESSION

    @property
    def equations(self) -> int:
        """How many a prediction gives to who knows the parameters."""
        return len(self.system(np.zeros((self.classes, 0))))

    def system(self, weight: Array) -> Array:
        """A (m, d) of these equations A x = b under the party's block ``weight`` (k, d)."""
        as_it_is = self.raw or self.label is not None
        return weight if as_it_is else first_differences(self.classes) @ weight

    def sample(self, rows: int, rng: np.random.Generator) -> AuditSubject:
        """At most ``rows`` of its rows: see :func:`vflens.numerics.measures.rarity.drawn`."""
        there = self.there or Rarity.of(self.whole_x)
        chosen = drawn(self.x, self.few, rows, rng)
        other, labels, ids = (None if a is None else a[chosen] for a in (self.other, self.labels, self.ids))
        return replace(
            self, x=self.x[chosen], other=other, labels=labels, ids=ids, there=there, letters=self.few
        )

    @cached_property
    def few(self) -> Mapping[int, Array]:
        """The values of each column of few: :func:`vflens.score.worst.letters_of`."""
        if self.letters is not None:
            return self.letters
        return letters_of(ScaledColumns(self.x, self.units), self.columns)

    @cached_property
    def whole(self) -> list[tuple[str, list[int]]]:
        """The columns as the file has them: name, and the places of its one-hot columns, or its own one."""
        found: dict[str, list[int]] = {}
        for j, column in enumerate(self.columns):
            found.setdefault(self.one_hot.get(column.name, column.name), []).append(j)
        return list(found.items())

    @property
    def whole_x(self) -> Array:
        """The rows (n, w) of :attr:`whole` columns: of a category the number of its one-hot column."""
        return np.column_stack([category(self.x, places) for _, places in self.whole])

    @cached_property
    def varies(self) -> list[bool]:
        """Whether enough rows of each whole column differ from its most frequent value to decide."""
        return [count >= VARYING for count in Rarity.of(self.whole_x).differing.tolist()]

    @property
    def table_rows(self) -> int:
        """The rows of the table, of which some may be read."""
        return len(self.x) if self.there is None else self.there.rows

    @property
    def deciding(self) -> list[int]:
        """How many rows of the table would decide on each whole column; 0: it never varies."""
        return (self.there or Rarity.of(self.whole_x)).deciding


def category(x: Array, places: Sequence[int]) -> Array:
    """The column of ``x`` (n, d) at the one of ``places``; of several which is the largest, int64 (n,)."""
    found: Array = x[:, list(places)].argmax(axis=1) if len(places) > 1 else x[:, places[0]]
    return found


def load_subject(
    source: str,
    *,
    classes: int | None,
    columns: Sequence[str] | None,
    id_column: str,
    encode: Mapping[str, str] = _AS_DESCRIBED,
    missing: str | None = None,
    label: str | None = None,
    label_kind: LabelKind | None = None,
) -> AuditSubject:
    """The party that ``source`` names.

    Args:
        source: a .csv, plain or compressed, or .parquet file of the party's own columns; a .toml file that
            describes one (a party's configuration, or the keys of its ``[data]``); a data set's name, by
            default the second half of its columns; or a passive party's run folder, after training.
        classes: of the planned model; None where the source knows them.
        columns: the party's columns; None: all (of a data set, the second half).
        id_column: of a bare file.
        encode: kinds by column (:mod:`vflens.tables.encodings`), before those of the description.
        missing: what becomes of gaps, before what the description says; None: as it says.
        label: the file's column of labels, with which models are trained; None: as the description says.
        label_kind: its kind; see :func:`vflens.experiments.audit.described.labelled`.

    Raises:
        ConfigError: an unknown source, a missing, wrong or contradictory number of classes, an unknown
            column.
        DataError: a file that cannot be used.
    """
    path = Path(source)
    of_table_only = {"--encode": encode, "--missing": missing, "--label": label, "label_kind": label_kind}
    if (given := next((f for f, v in of_table_only.items() if v), None)) and not is_table(source):
        raise ConfigError(f"{given} with {source!r}: it is no file of columns, leave it out")
    if path.is_dir():
        subject = _of_run(path, columns)
    elif source in DATASETS.names() or source.startswith("openml:"):
        subject = _of_dataset(source, columns)
    elif is_table(source):
        settings: Document = {"id_column": id_column, "encode": encode, "missing": missing}
        described = partial(table_description, path, **settings, label=label, label_kind=label_kind)
        subject = _of_file(
            path, described(columns=columns), lambda: _party_table(described(columns=None).spec), classes
        )
    else:
        raise ConfigError(
            f"{source!r} is no file, run folder or data set: give a {', '.join(SUFFIXES)} or .toml file, "
            f"a passive party's run folder, or one of {', '.join(DATASETS.names())}"
        )
    return _checked(subject, classes)


def _of_file(path: Path, chosen: Labelled, whole: Callable[[], Table], classes: int | None) -> AuditSubject:
    table, assumed = _party_table(chosen.spec), chosen.assumed
    tolerance = stated_tolerance(path, table, whole)
    if path.suffix == ".toml" and not (classes or table.n_classes or table.label):
        classes = 2
        assumed = "No label is named, a model of two classes is assumed: give --classes or --label."
    subject = of_table(path.name, table, table.n_classes or classes or 0)
    return replace(subject, tolerance=tolerance, assumed=assumed)


def read_columns(
    source: str,
    columns: Sequence[str] | None,
    id_column: str,
    encode: Mapping[str, str] = _AS_DESCRIBED,
    missing: str | None = None,
) -> Table:
    """The ``columns`` of a file or data set, in this order and in its units, a text as its encoded columns;
    None: those of the party.

    Raises:
        ConfigError: a source without a table, or a data set without a column.
        DataError: a file that cannot be used, or without a column.
    """
    if is_table(source):
        return _party_table(table_description(Path(source), columns, id_column, encode, missing).spec)
    if source in DATASETS.names() or source.startswith("openml:"):
        table = dataset(source, {}).load()
        columns = columns or [c.name for c in table.columns[len(table.columns) // 2 :]]
    else:
        raise ConfigError(f"{source!r} is no file or data set: with --weights give one")
    names = [c.name for c in table.columns]
    if absent := [name for name in columns or () if name not in names]:
        raise DataError(f"{source}: column {absent[0]!r} is missing: it has {', '.join(names)}")
    return table.take([names.index(name) for name in columns or names])


def is_table(source: str) -> bool:
    """Whether ``source`` names a file of columns, which knows no number of classes."""
    return source.endswith((*SUFFIXES, ".toml")) and not Path(source).is_dir()


def subject_of(name: str, spec: PartyFile, classes: int | None) -> AuditSubject:
    """The party called ``name`` whose file ``spec`` describes, for a model of ``classes``; None: its label's.

    Raises:
        ConfigError: too few or too many classes.
        DataError: the file cannot be used.
    """
    table = read_party_table(spec)
    return _checked(of_table(name, table, table.n_classes or classes or 0), classes)


def _checked(subject: AuditSubject, classes: int | None) -> AuditSubject:
    if classes is not None and subject.classes != classes:
        has = f"a number as label, {subject.label.name!r}" if subject.label else subject.classes
        raise ConfigError(f"--classes {classes}: {subject.name} has {has}, leave it out")
    if subject.classes < 2 and subject.label is None:
        raise ConfigError(
            "--classes is missing: how many classes will the planned model have, at least 2? Or name the "
            "column that it predicts with --label"
        )
    if subject.classes > _MOST_CLASSES:
        raise ConfigError(
            f"--classes {subject.classes}: an audit simulates models of 2 to {_MOST_CLASSES:,} classes, give "
            f"fewer ({subject.x.shape[1] + 1} already determine your columns)"
        )
    return subject


def check_rows(name: str, rows: int, known: int = 0, fewer: str = "") -> None:
    """Raise DataError of fewer ``rows`` than an audit needs, so many ``known`` to the adversary: enough rows
    for ``fewer``, as one states it.
    """
    if rows < max(FEWEST_ROWS, known + 2):
        beside = f", and 2 more than known = {known}" if known else ""
        mended = f"state {fewer}" if rows >= FEWEST_ROWS else "add rows"
        raise DataError(
            f"{name} has {counted(rows, 'row')} here: an audit needs at least {FEWEST_ROWS}{beside}: {mended}"
        )


def _party_table(spec: PartyFile) -> Table:
    try:
        return read_party_table(spec)
    except DataError as error:
        if f"column {spec.id_column!r} is missing" in str(error):
            raise DataError(f"{error}: name the one that identifies a row with --id-column") from error
        raise


def of_table(name: str, table: Table, classes: int) -> AuditSubject:
    """The party called ``name`` with all columns of ``table``, scaled by their bounds or extremes.

    Raises:
        DataError: no columns, or bounds that cannot be.
    """
    if not table.columns:
        raise DataError(f"{name} holds no columns besides its ids: an audit needs at least one")
    scaler = Scaler.fit(table.columns, table.features)
    x, clipped = scaler.transform(table.features)
    bounds = np.stack([scaler.low, scaler.high], axis=1)
    of_file: Document = {"units": scaler.high - scaler.low, "bounds": bounds, "ids": table.ids}
    labelled: Document = {"label": table.label, "labels": table.targets, "one_hot": table.one_hot}
    return AuditSubject(name, table.columns, x, classes, clipped=clipped, **labelled, **of_file)


def _of_dataset(name: str, columns: Sequence[str] | None) -> AuditSubject:
    table = dataset(name, {}).load()
    names = [c.name for c in table.columns]
    unknown = next((c for c in columns or () if c not in names), None)
    if unknown is not None:
        raise ConfigError(f"--columns names {unknown!r}: {name} has {', '.join(names)}")
    mine = [names.index(c) for c in columns] if columns else list(range(len(names) // 2, len(names)))
    others = [j for j in range(len(names)) if j not in mine]
    labelled: Document = {"label": table.label, "labels": table.targets}
    subject = replace(of_table(name, table.take(mine), table.n_classes), **labelled)
    return replace(subject, other=of_table(name, table.take(others), 0).x) if others else subject


def _of_run(folder: Path, columns: Sequence[str] | None) -> AuditSubject:
    from vflens.services.members import resumed  # loads every kind of party: only a run has one

    if columns is not None:
        raise ConfigError("--columns with a run folder: its columns are those of the run, leave it out")
    config = passive(load_party(folder / "config.toml"), f"{folder} belongs to")
    with exclusive(config.out):  # two writers would spoil its logs
        federation = read_party(config.out).federation
        model = checked_model(federation.model)
        if model not in (SOFTMAX_REGRESSION, LINEAR_REGRESSION):
            raise ConfigError(
                f"{folder} trained {model.title}: an audit simulates softmax or linear regression only, give "
                "it the folder of such a run"
            )
        with resumed(config, in_process=federation.in_process) as party:
            run = party.run
            predict = run.federation.predict
            return AuditSubject(
                f"run {config.run!r}, party {config.party!r}",
                party.table.columns,
                run.truth[predict],
                run.federation.n_classes,
                label=run.federation.active.label,
                clipped=run.clipped,
                weight=run.model.parameters()["weight"],
                units=run.truth.units,
                ids=predict,
                tolerance=config.scoring.tolerance,
                one_hot=party.table.one_hot,
            )
