"""``vl.audit`` and ``vl.release``: a party's own data frame, before it joins a federation."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, Unpack

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import Field, TypeAdapter
from threadpoolctl import threadpool_limits

from vflens.api.frames import as_arrow, like, numbered
from vflens.api.html import paragraphs, table
from vflens.api.options import DataKeys, ReleaseKeys
from vflens.config import validate
from vflens.errors import ConfigError, VflensError
from vflens.experiments.audit import advice, charts, words
from vflens.experiments.audit.bench import Plan
from vflens.experiments.audit.record import AuditRecord
from vflens.experiments.audit.run import audit as run_audit
from vflens.experiments.audit.subject import subject_of
from vflens.experiments.outcome.finding import Finding
from vflens.experiments.release.options import ReleaseOptions
from vflens.experiments.release.page import headline
from vflens.experiments.release.planned import as_text
from vflens.experiments.release.run import release as release_file
from vflens.experiments.run.own_tables import check_tables
from vflens.storage.files import write_whole
from vflens.storage.private import owner_only
from vflens.tables.description import PartyFile
from vflens.types import Document

#: Where a command has what is an argument here.
_PLANNED = r", in \[(?:audit|release)\] of a description,| in \[(?:audit|release)\] of a description"


@dataclass(frozen=True, eq=False, repr=False)
class Audit:
    """What a federation would learn of a table: its ``record``.

    ``exposed`` are the ids of the most exposed rows by phase and attack: keep them to yourself.
    """

    record: AuditRecord
    exposed: Document = field(default_factory=dict)

    def __repr__(self) -> str:
        return f"<Audit of {self.record.subject}: {self.decision}>"

    def __str__(self) -> str:
        return "\n".join([*self.flaws, self.verdict])

    @property
    def facts(self) -> Document:
        """The record under the keys of ``vflens audit --json``."""
        return self.record.json

    @property
    def decision(self) -> str:
        """Join as planned, join with a defence, or not as planned; in words."""
        return advice.decision(self.record)

    @property
    def findings(self) -> list[Finding]:
        """What is found of each column beside a blind guess, with its state, the most exposed first."""
        return list(self.record.by_column)

    @property
    def flaws(self) -> list[str]:
        """What is to be mended in the frame, a line for each flaw with the setting that mends it."""
        return [line for checked in (self.record.tables or {}).values() for line in checked["lines"]]

    @property
    def verdict(self) -> str:
        """What bounds and attacks mean, in words."""
        return "\n".join([*words.alarms(self.record), *words.sentences(self.record)])

    @property
    def recommendation(self) -> str:
        """The cheapest defence that helps, in words."""
        return advice.recommendation(self.record)

    def write(self, page: Path | str) -> Path:
        """Write the page of ``vflens audit``, and the ids of the most exposed rows beside it.

        Raises:
            StorageError: they cannot be written.
        """
        words.write_exposed(self.exposed, Path(page))
        words.write_audit(self.record, Path(page))
        return Path(page)

    def _repr_html_(self) -> str:
        header, *rows = charts.table(self.record)
        return paragraphs(*self.flaws, *self.verdict.splitlines(), self.recommendation) + table(header, rows)


def audit(
    frame: Any,
    *,
    classes: int | None = None,
    id_column: str | None = "id",
    models: int = 10,
    rows: int = 1000,
    known: int = 50,
    seed: int = 0,
    most_leak: float | None = None,
    least_error: float | None = None,
    most_loss: float = 0.01,
    training: Literal["clear", "secure"] = "clear",
    tolerance: Mapping[str, float] | None = None,
    **description: Unpack[DataKeys],
) -> Audit:
    """Bounds, attacks and defences for one party's own columns, before any training; see ``docs/audit.md``.

    Args:
        frame: a pandas, polars or Arrow table, or a mapping from names to arrays (n,); one row per person.
        classes: of the planned model; None where ``description`` has a ``label_column``.
        id_column: a column that only identifies rows; None, or without a column "id": rows by number.
        models: simulated models of each kind.
        rows: at most so many of the frame's rows are used.
        known: so many of them are known to the adversary.
        seed: one seed, one result.
        most_leak: the share of what a blind guess leaves open that an attack may take of a column; None: .2.
        least_error: instead of that the MSE over all columns that the party wants at least.
        most_loss: the AUC of two classes, R² of a number, else accuracy, that it gives for it at most.
        training: "clear": its messages are read; "secure": nobody sees them.
        tolerance: column → how far from the truth, in its own unit, an answer counts as found.
        description: ``columns``, ``bounds``, ``encode``, ``missing`` and other keys of a party's ``[data]``.

    Raises:
        ConfigError: an unknown key or column, or a number out of its range.
        DataError: the frame cannot be used.
    """
    if "file" in description:
        raise ConfigError("audit takes no `file`: the frame stands for it")
    numbers = {"models": models, "rows": rows, "known": known, "seed": seed, "classes": classes}
    wanted = {"most_leak": most_leak, "least_error": least_error, "most_loss": most_loss}
    chosen = {"training": training, "tolerance": tolerance or {}}
    plan = validate(TypeAdapter(_Asked), {**numbers, **wanted, **chosen}, "audit")
    given = as_arrow(frame)
    absent = id_column == "id" and id_column not in given.column_names
    given, ids = numbered(given) if id_column is None or absent else (given, id_column)
    with _written(given) as file, threadpool_limits(1):  # the same bits as `vflens audit`
        spec = validate(TypeAdapter(PartyFile), {**description, "file": file, "id_column": ids}, "the frame")
        checks = check_tables({"the frame": spec})
        subject = subject_of("the frame", spec, plan.classes)
        tables = {party: check.record() for party, check in checks.items()}
        exposed: Document = {}
        record = run_audit(subject, plan, _silent, exposed.update)
        return Audit(replace(record, tables=tables), exposed)


@dataclass(frozen=True, kw_only=True)
class _Asked(Plan):
    """The arguments of an audit that are numbers."""

    def stated(self, key: str, value: object) -> str:
        """The argument, as :meth:`Plan.stated`."""
        return f"{key} = {value!r}"

    classes: Annotated[int, Field(ge=2)] | None


@dataclass(frozen=True, eq=False)
class Certificate:
    """What the noise of a release hides and what it does not; ``facts`` as in the certificate's JSON."""

    facts: Document = field(repr=False)
    page: str = field(repr=False)  # with the code of its plots: megabytes

    def __str__(self) -> str:
        return self.headline

    @property
    def headline(self) -> str:
        """The bound in one sentence."""
        return headline(self.facts)

    def write(self, page: Path | str) -> Path:
        """Write the certificate's page.

        Raises:
            StorageError: it cannot be written.
        """
        write_whole(Path(page), self.page.encode())
        return Path(page)

    def _repr_html_(self) -> str:
        warnings = (f"warning: {warning}" for warning in self.facts["warnings"])
        return paragraphs(self.headline, *warnings) + table(
            ["not protected"], [[thing] for thing in self.facts["not_protected"]]
        )


def release(frame: Any, **options: Unpack[ReleaseKeys]) -> tuple[Any, Certificate]:
    """A table under noise, with its certificate; see ``docs/release.md``.

    Args:
        frame: a pandas, polars or Arrow table, or a mapping from names to arrays (n,).
        options: those of ``vflens release`` by the same names: ``mechanism`` (default "gaussian"),
            ``lambda_``, ``target_mse``, ``epsilon``, ``delta``, ``diameter``, ``pi``, ``label``, ``ids``,
            ``encode`` (kinds by column, as in ``audit``), ``missing``, ``seed`` and the others.

    Returns:
        the noisy table, in the kind of ``frame`` (Arrow for a kind that is not known), and the certificate.
        The index of a pandas frame is left out, its rows are numbered anew: to release it as it is, make it a
        column with ``frame.reset_index()`` and name that in ``ids``, with ``keep_ids=True``.

    Raises:
        ConfigError: an unknown option, or options that do not go together.
        DataError: the frame cannot be released.
    """
    with _written(as_arrow(frame)) as file, threadpool_limits(1):
        done = release_file(_options(file, {**options}), _silent)
        return like(pq.read_table(done.table), frame), Certificate(done.facts, done.page.read_text("utf-8"))


def _options(file: Path, given: dict[str, Any]) -> ReleaseOptions:
    known = ReleaseKeys.__annotations__
    unknown = next((name for name in given if name not in known), None)
    if unknown is not None:
        raise ConfigError(f"release has no option {unknown!r}: it has {', '.join(sorted(known))}")
    options: dict[str, Any] = {"mechanism": "gaussian", **given}
    options |= {name: as_text(given[name]) for name in given if name in ("diameter", "lower", "upper")}
    options |= {name: _list(given[name]) for name in given if name in ("ids", "encode")}
    options |= {"table": file, "out": file.with_name("released.parquet")}
    return validate(TypeAdapter(ReleaseOptions), options, "release")


def _list(value: Any) -> Any:
    if isinstance(value, Mapping):
        return tuple(f"{column}={kind}" for column, kind in value.items())
    return (value,) if isinstance(value, str) else value


@contextmanager
def _written(frame: pa.Table) -> Iterator[Path]:
    """``frame`` as a parquet file that its owner alone can read, gone afterwards.

    An error that names the file, or a flag or a key of the command's plan, names the frame or the argument.
    """
    with TemporaryDirectory(prefix="vflens-") as folder:
        file = Path(folder) / "frame.parquet"
        try:
            with owner_only():
                pq.write_table(frame, file)
            yield file
        except VflensError as error:
            sentence = re.sub(_PLANNED, "", str(error).replace(str(file), "the frame"))
            raise type(error)(re.sub(r"(?<![\w-])--([a-z][a-z-]*)", _argument, sentence)) from None


def _argument(flag: re.Match[str]) -> str:
    return {"lambda": "lambda_", "id": "ids"}.get(flag[1], flag[1].replace("-", "_"))


def _silent(stage: str, done: int, total: int) -> None:
    """No progress bar."""
