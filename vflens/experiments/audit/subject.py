"""The subject of an audit: one passive party's columns, from its own file, a data set, or the folder of a
run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

import numpy as np
from pydantic import TypeAdapter

from vflens.config import PartyConfig, PassiveConfig, load_description, load_party, read_toml, validate
from vflens.datasets._resolve import dataset
from vflens.errors import ConfigError, DataError
from vflens.experiments.results.folders import read_party
from vflens.models.family import checked_model
from vflens.registry import DATASETS
from vflens.services.folder import exclusive
from vflens.services.members import resumed
from vflens.tables.description import PartyFile
from vflens.tables.files import read_party_table
from vflens.tables.scaling import Scaler
from vflens.tables.table import Table
from vflens.types import Array, ColumnInfo, Document
from vflens.words import counted

_FILES = (".csv", ".csv.gz", ".parquet")
_AS_DESCRIBED: Mapping[str, str] = MappingProxyType({})
_MOST_CLASSES = 1000  # minutes, and 8 MB of scores for a thousand rows


@dataclass(frozen=True, eq=False)
class AuditSubject:
    """One passive party.

    ``x`` (n, d) its columns scaled to [0, 1], ``clipped`` values of which lay outside; ``columns`` their
    public metadata, in the file's units. Where they are known: ``other`` (n, m), the active party's columns,
    and ``labels`` (n,); after training ``weight`` (k, d), the party's own block of the model. ``units``
    (d,) is what 1 stands for in each column of ``x``, in the file's units; None of pixels. ``bounds`` (d, 2)
    are the values, in these units, that are 0 and 1 in ``x``; None of a run folder.
    """

    name: str
    columns: tuple[ColumnInfo, ...]
    x: Array
    classes: int
    clipped: int = 0
    other: Array | None = None
    labels: Array | None = None
    weight: Array | None = None
    units: Array | None = None
    bounds: Array | None = None

    def sample(self, rows: int, rng: np.random.Generator) -> AuditSubject:
        """At most ``rows`` of its rows, drawn without replacement."""
        if len(self.x) <= rows:
            return self
        drawn = np.sort(rng.permutation(len(self.x))[:rows])
        other, labels = (None if a is None else a[drawn] for a in (self.other, self.labels))
        return replace(self, x=self.x[drawn], other=other, labels=labels)


def load_subject(
    source: str,
    *,
    classes: int | None,
    columns: Sequence[str] | None,
    id_column: str,
    encode: Mapping[str, str] = _AS_DESCRIBED,
    missing: str | None = None,
) -> AuditSubject:
    """The party that ``source`` names.

    Args:
        source: a .csv, .csv.gz or .parquet file of the party's own columns; a .toml file that describes one
            (a party's configuration, or the keys of its ``[data]``); a data set's name, of which the party
            has ``columns``, by default the second half; or a passive party's run folder, for an audit after
            training.
        classes: of the planned model; None where the source knows them.
        columns: the party's columns; None: all (of a data set, the second half).
        id_column: of a bare file.
        encode: kinds by column (:mod:`vflens.tables.encodings`), before those of the description.
        missing: what becomes of gaps, before what the description says; None: as it says.

    Raises:
        ConfigError: an unknown source, a missing, wrong or contradictory number of classes, an unknown
            column.
        DataError: a file that cannot be used.
    """
    path = Path(source)
    if (encode or missing) and not is_table(source):
        flag = "--encode" if encode else "--missing"
        raise ConfigError(f"{flag} with {source!r}: it is no file of columns, leave it out")
    if path.is_dir():
        if columns is not None:
            raise ConfigError("--columns with a run folder: its columns are those of the run, leave it out")
        subject = _of_run(path)
    elif source in DATASETS.names() or source.startswith("openml:"):
        subject = _of_dataset(source, columns)
    elif is_table(source):
        table = _party_table(path, columns, id_column, encode, missing)
        subject = of_table(path.name, table, classes or 0)
    else:
        raise ConfigError(
            f"{source!r} is no file, run folder or data set: give a {', '.join(_FILES)} or .toml file, "
            f"a passive party's run folder, or one of {', '.join(DATASETS.names())}"
        )
    return _checked(subject, classes)


def read_columns(
    source: str,
    columns: Sequence[str] | None,
    id_column: str,
    encode: Mapping[str, str] = _AS_DESCRIBED,
    missing: str | None = None,
) -> Table:
    """The ``columns`` of a file or data set, in this order and in its units; None: those of the party.

    Raises:
        ConfigError: a source without a table, or a data set without a column.
        DataError: a file that cannot be used, or without a column.
    """
    if is_table(source):
        table = _party_table(Path(source), columns, id_column, encode, missing)
    elif source in DATASETS.names() or source.startswith("openml:"):
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
    return source.endswith((*_FILES, ".toml")) and not Path(source).is_dir()


def subject_of(name: str, spec: PartyFile, classes: int) -> AuditSubject:
    """The party called ``name`` whose file ``spec`` describes, for a model of ``classes``.

    Raises:
        ConfigError: too few or too many classes.
        DataError: the file cannot be used.
    """
    return _checked(of_table(name, read_party_table(spec), classes), classes)


def _checked(subject: AuditSubject, classes: int | None) -> AuditSubject:
    if classes is not None and subject.classes != classes:
        raise ConfigError(f"--classes {classes}: {subject.name} has {subject.classes}, leave it out")
    if subject.classes < 2:
        raise ConfigError("--classes is missing: how many classes will the planned model have, at least 2?")
    if subject.classes > _MOST_CLASSES:
        raise ConfigError(
            f"--classes {subject.classes}: an audit simulates models of 2 to {_MOST_CLASSES:,} classes, give "
            "fewer "
            f"({subject.x.shape[1] + 1} already determine your columns)"
        )
    if len(subject.x) < 2:
        raise DataError(f"{subject.name} has {counted(len(subject.x), 'row')}: an audit needs at least 2")
    return subject


def _party_table(
    path: Path,
    columns: Sequence[str] | None,
    id_column: str,
    encode: Mapping[str, str],
    missing: str | None,
) -> Table:
    spec = table_description(path, columns, id_column, encode, missing)
    try:
        return read_party_table(spec)
    except DataError as error:
        if f"column {spec.id_column!r} is missing" in str(error):
            raise DataError(f"{error}: name the one that identifies a row with --id-column") from error
        raise


def table_description(
    path: Path,
    columns: Sequence[str] | None,
    id_column: str,
    encode: Mapping[str, str],
    missing: str | None = None,
) -> PartyFile:
    """The description of the table in ``path``, or in the file that the TOML file ``path`` describes.

    Raises:
        ConfigError: the description, a kind or the choice of columns is wrong.
    """
    spec = (
        _description(path) if path.suffix == ".toml" else PartyFile(file=path.resolve(), id_column=id_column)
    )
    changes: Document = {"encode": {**spec.encode, **encode}}
    if columns is not None:
        changes["columns"] = tuple(columns)
    if missing is not None:
        changes["missing"] = missing
    return validate(TypeAdapter(PartyFile), {**spec.model_dump(), **changes}, str(path))


def _description(path: Path) -> PartyFile:
    settings = read_toml(path)
    if "role" in settings:
        return _passive(load_party(path), f"{path} configures").data
    return load_description(path)


def _passive(config: PartyConfig, file: str) -> PassiveConfig:
    """``config``, if it is a passive party's; ``file`` begins the refusal of another."""
    if not isinstance(config, PassiveConfig):
        raise ConfigError(f"{file} the {config.role} party: an audit is a passive one's")
    return config


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
    of_file = {"units": scaler.high - scaler.low, "bounds": bounds}
    return AuditSubject(name, table.columns, x, classes, clipped=clipped, labels=table.labels, **of_file)


def _of_dataset(name: str, columns: Sequence[str] | None) -> AuditSubject:
    table = dataset(name, {}).load()
    names = [c.name for c in table.columns]
    unknown = next((c for c in columns or () if c not in names), None)
    if unknown is not None:
        raise ConfigError(f"--columns names {unknown!r}: {name} has {', '.join(names)}")
    mine = [names.index(c) for c in columns] if columns else list(range(len(names) // 2, len(names)))
    others = [j for j in range(len(names)) if j not in mine]
    subject = of_table(name, table.take(mine), len(table.class_names))
    if not others:
        return replace(subject, labels=table.labels)
    rest = of_table(name, table.take(others), 0)
    return replace(subject, other=rest.x, labels=table.labels)


def _of_run(folder: Path) -> AuditSubject:
    config = _passive(load_party(folder / "config.toml"), f"{folder} belongs to")
    with exclusive(config.out):  # two writers would spoil its logs
        federation = read_party(config.out).federation
        model = checked_model(federation.model)
        if not model.closed_forms:
            raise ConfigError(
                f"{folder} trained {model.title}: an audit simulates scores of softmax regression only, "
                "give it the folder of such a run"
            )
        with resumed(config, in_process=federation.in_process) as party:
            run = party.run
            predict = run.federation.predict
            return AuditSubject(
                f"run {config.run!r}, party {config.party!r}",
                party.table.columns,
                run.truth[predict],
                run.federation.n_classes,
                clipped=run.clipped,
                weight=run.model.parameters()["weight"],
                units=run.truth.units,
            )
