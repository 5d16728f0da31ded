"""An audit's subject beside a model that another framework trained: which inputs are the party's columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import ClassVar, NamedTuple

import numpy as np
from pydantic import ConfigDict, TypeAdapter

from vflens.config import plan_table, validate
from vflens.errors import ConfigError, DataError
from vflens.experiments.audit.bench import Answer, Bench, Plan
from vflens.experiments.audit.described import stated_tolerance, table_description
from vflens.experiments.audit.record import ReadFile
from vflens.experiments.audit.subject import (
    AuditSubject,
    check_rows,
    is_table,
    load_subject,
    of_table,
    read_columns,
)
from vflens.experiments.weights.linear import LinearModel
from vflens.experiments.weights.network import Graph
from vflens.experiments.weights.read import AnyModel
from vflens.experiments.weights.trees import TreeModel
from vflens.names import repeated
from vflens.numerics.measures.rarity import Rarity, drawn
from vflens.tables.description import PartyFile
from vflens.tables.files import digest_of
from vflens.tables.table import Table
from vflens.types import Array, Document, LabelKind
from vflens.words import counted

_MOST_ROWS = {Graph: 200, TreeModel: 60}  # seconds
_OF_A_RUN = ("config.toml", "federation.json", "data.parquet", "order.npz")
#: The flags of what sources without a description state.
FLAGS = {"training": "--training", "rows": "--rows", "known": "--known", "slow_rows": "--slow-rows"}
_MOST_ROWS_WITH_OTHERS = 60  # in a network each row is then attacked alone


@dataclass(frozen=True)
class Source:
    """What was asked for: the table ``source``, the party's ``columns``, all ``inputs`` of the model, the
    kinds to ``encode`` columns by, what becomes of ``missing`` values, the column of the ``label`` and its
    kind.
    """

    source: str
    classes: int | None
    columns: Sequence[str] | None
    id_column: str
    inputs: Sequence[str] | None
    encode: Mapping[str, str] = field(default_factory=dict)
    missing: str | None = None
    label: str | None = None
    label_kind: LabelKind | None = None

    def subject(self, classes: int | None) -> AuditSubject:
        """The party for ``classes``: see :func:`vflens.experiments.audit.subject.load_subject`."""
        return load_subject(
            self.source,
            classes=classes,
            columns=self.columns,
            id_column=self.id_column,
            encode=self.encode,
            missing=self.missing,
            label=self.label,
            label_kind=self.label_kind,
        )

    def read(self, columns: Sequence[str] | None) -> Table:
        """Its ``columns``; see :func:`vflens.experiments.audit.subject.read_columns`."""
        return read_columns(self.source, columns, self.id_column, self.encode, self.missing)

    def files(self) -> list[Path]:
        """The files that are read: the table and its description, or those of a run; none of a data set."""
        path = Path(self.source)
        if path.is_dir():
            return [path / name for name in _OF_A_RUN if (path / name).is_file()]
        if not is_table(self.source):
            return []
        return list({file.resolve(): file for file in (path, self.described(path).file)}.values())

    def described(self, path: Path) -> PartyFile:
        """The description of its table, in ``path``.

        Raises:
            ConfigError, DataError: see :func:`vflens.experiments.audit.subject.table_description`.
        """
        asked = self.columns, self.id_column, self.encode, self.missing
        return table_description(path, *asked, label=self.label, label_kind=self.label_kind).spec


@dataclass(frozen=True, kw_only=True)
class AuditTable(Plan):
    """The keys of ``[audit]``: a plan, and the kind of the label."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    label_kind: LabelKind | None = None


class FlagPlan(Plan):
    """A plan of a data set or a run folder, which have no description."""

    def stated(self, key: str, value: object) -> str:
        """The flag, as :meth:`Plan.stated`."""
        return f"{FLAGS[key]} {value}"


def planned(source: Path) -> Document:
    """What ``[audit]`` of the description ``source`` states, by the fields of :class:`AuditTable`; {} of
    another source.

    Raises:
        ConfigError: an unknown key, a value out of its range, or two thresholds for the same.
    """
    stated = plan_table(source, "audit")
    found = validate(TypeAdapter(AuditTable), stated, f"{source}: [audit]")
    found.wanted()
    return {name: getattr(found, name) for name in stated}


def begun(files: Sequence[Path]) -> Document:
    """The digests of the ``files`` that an audit reads, when it ``began`` (UTC), and the ``version``."""
    read = [digest_of(file) for file in files]
    found = tuple(ReadFile(**file) for file in read if file)
    return {"files": found, "began": utc_now(), "version": version("vflens")}


def utc_now() -> str:
    """The time, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Reading(NamedTuple):
    """An attack's ``answer`` from what a model ``released``, and what it says of itself: fields of its
    outcome.
    """

    released: str
    answer: Answer
    facts: Document


@dataclass(frozen=True, eq=False)
class Joint:
    """Rows of all inputs of a model.

    ``bench`` has the party's columns and the attacked rows, ``x`` (n, D) their inputs in the table's
    units, ``mine`` int (d,) the places of the party's columns among them; ``drawn`` says that the others' are
    random.
    """

    bench: Bench
    x: Array
    mine: Array
    drawn: bool

    @property
    def bounds(self) -> Array:
        """The least and largest value of each of the party's columns (d, 2)."""
        assert self.bench.subject.bounds is not None
        return self.bench.subject.bounds


def places(names: Sequence[str], inputs: Sequence[str], width: int, source: str) -> Array:
    """The place of each column of ``names``, in ``source``, among the ``width`` inputs of a model.

    Raises:
        ConfigError: another number of inputs, one that is named twice, or a column that is none of them.
    """
    if len(inputs) != width:
        raise ConfigError(
            f"the model has {counted(width, 'input')}, not {len(inputs)}: name all of them in their order "
            "with --inputs"
        )
    if (twice := repeated(inputs)) is not None:
        raise ConfigError(f"--inputs names {twice!r} twice: name each input once")
    place = {name: number for number, name in enumerate(inputs)}
    if missing := [name for name in names if name not in place]:
        raise ConfigError(
            f"column {missing[0]!r} of {source} is no input of the model: choose yours with --columns, or "
            "name the model's inputs with --inputs"
        )
    return np.array([place[name] for name in names])


def linear_subject(asked: Source, model: LinearModel) -> AuditSubject:
    """The party with its block of ``model``, for columns in [0, 1].

    With x = low + (high − low) u the weights of u are W (high − low).

    Raises:
        ConfigError: columns, inputs and classes do not fit, or a subject with a model of its own.
        DataError: a table that cannot be used.
    """
    classes = (asked.classes or model.classes) if is_table(asked.source) else asked.classes
    subject = asked.subject(classes)
    if subject.bounds is None:
        raise ConfigError(f"--weights with {subject.name}: its model is that of the run, leave it out")
    _check_classes(subject.classes, subject.name, model)
    names = [c.name for c in subject.columns]
    mine = places(names, asked.inputs or names, model.width, subject.name)
    width = subject.bounds[:, 1] - subject.bounds[:, 0]
    return replace(subject, weight=np.ascontiguousarray(model.weight[:, mine] * width), raw=model.raw)


def _check_classes(classes: int | None, name: str, model: AnyModel) -> None:
    if classes not in (None, model.classes):
        raise ConfigError(
            f"the model has {counted(model.classes, 'class')} and {name} {classes}: give the model that was "
            "trained for it"
        )


def joint(asked: Source, model: Graph | TreeModel, plan: Plan) -> Joint:
    """The rows of an audit of ``model``; inputs that the table lacks are drawn where trees split them.

    Raises:
        ConfigError: columns, inputs and classes do not fit.
        DataError: a table that cannot be used, or that lacks inputs of a network.
    """
    _check_classes(asked.classes, asked.source, model)
    own = asked.read(asked.columns)
    names = [c.name for c in own.columns]
    inputs = list(asked.inputs or model.names or names)
    mine = places(names, inputs, model.width, asked.source)
    whole = _whole(asked, model, own, inputs)
    table = own if whole is None else whole.take(mine.tolist())
    tolerance = stated_tolerance(Path(asked.source), own, partial(asked.read, None))
    subject = replace(of_table(Path(asked.source).name, table, model.classes), tolerance=tolerance)
    check_rows(asked.source, len(subject.x))
    most = min(plan.rows, _MOST_ROWS[type(model)] if len(mine) == model.width else _MOST_ROWS_WITH_OTHERS)
    kept = drawn(subject.x, subject.few, most, plan.rng("rows"))
    there = Rarity.of(subject.whole_x)
    subject = replace(subject, x=subject.x[kept], ids=table.ids[kept], there=there, letters=subject.few)
    x = (
        _drawn(model, own, mine, plan, kept)
        if whole is None
        else whole.features[kept].astype(_compared(model))
    )
    everything, none = np.arange(len(kept), dtype=np.int32), np.zeros(0, np.int32)
    return Joint(Bench(subject, plan, everything, none, failed={}), x, mine, whole is None)


def _compared(model: Graph | TreeModel) -> type:
    return model.dtype if isinstance(model, TreeModel) else np.float32


def _whole(asked: Source, model: Graph | TreeModel, own: Table, inputs: list[str]) -> Table | None:
    """The table with all ``inputs``; None if it lacks those of others, and trees tell their range."""
    if len(inputs) == len(own.columns):
        return own.take([[c.name for c in own.columns].index(name) for name in inputs])
    try:
        return asked.read(inputs)
    except DataError as error:
        if "is missing" not in str(error):
            raise
        if isinstance(model, Graph):
            raise DataError(
                f"{error}: a network is audited on rows with all inputs, add the others' columns to the file "
                "and name yours with --columns"
            ) from error
        return None


def _drawn(model: Graph | TreeModel, own: Table, mine: Array, plan: Plan, kept: Array) -> Array:
    """The party's columns of the rows ``kept`` among drawn ones, (n, D): each interval between the
    thresholds of a feature is equally likely. A feature that no tree splits is 0.
    """
    assert isinstance(model, TreeModel)
    rng = plan.rng("others")
    x: Array = np.zeros((len(kept), model.width), model.dtype)
    features, thresholds = (
        np.concatenate([getattr(tree, name) for tree in model.trees]) for name in ("feature", "threshold")
    )
    order = np.argsort(features, kind="stable")
    split, begins = np.unique(features[order], return_index=True)
    for feature, found in zip(split, np.split(thresholds[order], begins[1:]), strict=True):
        if feature >= 0 and feature not in mine:
            t = np.unique(found)
            inside = np.concatenate([[t[0] - 1], (t[1:] + t[:-1]) / 2, [t[-1] + 1]])
            x[:, feature] = rng.choice(inside, len(own.features))[kept]
    x[:, mine] = own.features[kept]
    return x
