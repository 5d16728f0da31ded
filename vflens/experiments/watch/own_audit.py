"""An audit that its owner starts in a browser of this machine: one table, and one audit at a time."""

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from vflens.errors import ConfigError, VflensError
from vflens.experiments.audit.advice import recommendation
from vflens.experiments.audit.bench import Bench
from vflens.experiments.audit.described import table_description
from vflens.experiments.audit.given import Source, begun, joint, linear_subject, utc_now
from vflens.experiments.audit.given_run import audit_given
from vflens.experiments.audit.record import AuditRecord
from vflens.experiments.audit.run import Keep, audit
from vflens.experiments.audit.words import exposed_file, predicted, sentences, write_audit, write_exposed
from vflens.experiments.evidence.declared import read_declared
from vflens.experiments.evidence.dpia import assess
from vflens.experiments.evidence.rendering import write_dpia
from vflens.experiments.evidence.sources import of_audit
from vflens.experiments.evidence.thresholds import check_columns, judge
from vflens.experiments.run.own_tables import check_tables
from vflens.experiments.watch.events import sentence
from vflens.experiments.watch.own_audit_form import Asked, FieldError, about, read_form
from vflens.experiments.weights.linear import LinearModel
from vflens.experiments.weights.read import MODELS, read_model
from vflens.storage.files import write_whole
from vflens.storage.json_file import finite
from vflens.tables.cells import SUFFIXES
from vflens.tables.description import PartyFile
from vflens.tables.files import check_party_table, column_names
from vflens.tables.own_check.flaw import LEFT_OUT, Flaw
from vflens.types import Document
from vflens.words import counted

_NOT_IN_NAMES = re.compile(r"[^\w.-]")
_LONGEST = 100  # characters of a file's name


class OwnAudit:
    """A table and its audit in ``folder``, which is the owner's alone."""

    def __init__(self, folder: Path) -> None:
        self._folder, self._lock = folder, threading.Lock()
        self._table: Path | None = None
        self._weights: Path | None = None
        self._state: Document = {"state": "empty"}

    @property
    def state(self) -> Document:
        """``state``: empty, described, running (with ``stage``, ``done``, ``total``), finished (with
        ``verdict``, and the sentences of ``thresholds``) or refused (with ``words`` of a ``field``).
        """
        return self._state

    @property
    def page(self) -> Path:
        """Where the page of a finished audit stands; the most exposed rows stand beside it."""
        return self._folder / "audit.html"

    @property
    def exposed(self) -> Path:
        """The most exposed rows, for the owner alone."""
        return exposed_file(self.page)

    @property
    def dpia(self) -> Path:
        """The page for a data protection officer, of what was measured; what is to declare it asks for."""
        return self._folder / "dpia.html"

    def refusal(self, error: VflensError) -> Document:
        """``error`` for the page: its ``words``, of files by their names, and its ``field``, "" of none."""
        words = re.sub(rf"{re.escape(str(self._folder))}/[^/]+/", "", str(error))
        return {"words": sentence(words), "field": error.field if isinstance(error, FieldError) else ""}

    def place(self, name: str, *, model: bool = False) -> Path:
        """Where the table, or the trained model, that its owner calls ``name`` is to be written.

        Raises:
            ConfigError: it is none, or an audit runs.
        """
        what, endings = ("model", MODELS) if model else ("table", tuple(SUFFIXES))
        if not name.endswith(endings):
            raise ConfigError(f"{sentence(name)!r} is no {what}: choose a file {', '.join(endings)}")
        self._refuse_while_running()
        apart = Path(mkdtemp(dir=self._folder))  # one of its own: an upload must not replace a table in use
        return apart / _NOT_IN_NAMES.sub("_", Path(name).name)[-_LONGEST:]

    def take_weights(self, file: Path) -> Document:
        """Use the trained model in ``file``; says of it in ``words`` how many inputs and classes it has.

        Raises:
            ConfigError, DataError: it cannot be read.
        """
        with self._kept(file):
            model = read_model(file)
            with self._lock:
                self._refuse_while_running()
                if self._weights not in (None, file):
                    self._weights.unlink(missing_ok=True)
                self._weights = file
        names = getattr(model, "names", ())
        inputs = f"{counted(model.width, 'input')}{': ' if names else ''}{', '.join(names)}"
        return {"words": sentence(f"{counted(model.classes, 'class')}, {inputs}")}

    def take(self, table: Path) -> Document:
        """Use ``table``, and describe it: see :meth:`described`.

        Raises:
            DataError: it cannot be read.
        """
        with self._kept(table):
            names = column_names(table)
            likely = [name for name in names if name.lower() == "id"]
            found = self._described(table, next(iter(likely), names[0]))
            with self._lock:  # an audit may have begun while the table was read
                self._refuse_while_running()
                if self._table not in (None, table):
                    self._table.unlink(missing_ok=True)
                self._forget()
                self._table, self._state = table, {"state": "described"}
        return found

    def described(self, id_column: str) -> Document:
        """``names`` of all columns, and of each but ``id_column`` whether to ``use`` it, the ``kind`` that
        makes numbers of it ("" for numbers), and in ``words`` what to know of it.

        Raises:
            ConfigError: there is no table.
            DataError: it has no such column.
        """
        return self._described(self._needed(), id_column)

    def start(self, form: object) -> None:
        """Begin the audit that ``form`` asks for.

        Raises:
            ConfigError: it does not fit, there is no table or no model, or an audit runs.
        """
        asked = read_form(form)
        with self._lock:
            self._refuse_while_running()
            table = self._needed()
            if asked.weights and self._weights is None:
                raise FieldError("weights", "there is no trained model: choose its file again")
            self._forget()
            self._tell("the table is read", 0, 1)
            weights = self._weights if asked.weights else None
        threading.Thread(target=self._run, args=(asked, table, weights), daemon=True).start()

    @contextmanager
    def _kept(self, upload: Path) -> Iterator[None]:
        """Remove ``upload`` at once where the block refuses it."""
        try:
            yield
        except VflensError:
            if upload not in (self._table, self._weights):
                upload.unlink(missing_ok=True)
            raise

    def _forget(self) -> None:
        """Remove what an earlier audit wrote."""
        for file in (self.page, self.exposed, self.dpia):
            file.unlink(missing_ok=True)

    def _needed(self) -> Path:
        if self._table is None:
            raise ConfigError("there is no table: choose a file first")
        return self._table

    def _refuse_while_running(self) -> None:
        if self._state["state"] == "running":
            raise ConfigError("an audit is running: wait for its end")

    def _tell(self, stage: str, done: int, total: int) -> None:
        self._state = {"state": "running", "stage": stage, "done": done, "total": total}

    def _run(self, asked: Asked, table: Path, weights: Path | None) -> None:
        try:
            self._state = {"state": "finished", **self._audited(asked, table, weights)}
        except VflensError as error:
            self._state = {"state": "refused", **self.refusal(error)}
        except Exception as error:  # the page must tell of every end
            words = (
                f"the audit failed ({type(error).__name__}: {error}): run vflens audit for the whole error"
            )
            self._state = {"state": "refused", "words": sentence(words), "field": ""}

    def _audited(self, asked: Asked, table: Path, weights: Path | None) -> Document:
        """The verdict, as the page begins, and the sentences of thresholds."""
        source, exposed = asked.source(table), dict[str, Any]()
        described = (source.columns, source.id_column, source.encode, source.missing)
        with about("columns"):
            checked = check_tables({"your table": table_description(table, *described).spec})
        with about(asked.model_field):
            files = source.files()
        made = begun([*files, *filter(None, [weights])])
        record = self._measured(asked, source, weights, exposed.update)
        made["tables"] = {name: check.record() for name, check in checked.items()}
        record = replace(record, **made, ended=utc_now())
        outcomes = judge(asked.read_thresholds(), asked.beats_blind, [of_audit(record)])
        write_exposed(exposed, self.page)
        write_audit(record, self.page)
        self._write_dpia(record)
        return {"verdict": _verdict(record), "thresholds": [sentence(o.sentence) for o in outcomes]}

    def _measured(self, asked: Asked, source: Source, weights: Path | None, keep: Keep) -> AuditRecord:
        """The audit of the planned model, or of the trained one in ``weights``."""
        model, plan = None if weights is None else read_model(weights), asked.plan()
        with about("columns"):
            names = [c.name for c in source.read(source.columns).columns]
        with about("thresholds"):
            check_columns(asked.read_thresholds(), names)
        if model is not None and not isinstance(model, LinearModel):
            assert weights is not None
            with about("weights"):
                rows = joint(source, model, plan)
            return audit_given(model, rows, Path(weights.name), self._tell, keep)
        with about(asked.model_field):
            subject = source.subject(source.classes) if model is None else linear_subject(source, model)
        with about("known"):
            Bench.set_up(subject, plan)
        return audit(subject, plan, self._tell, keep)

    def _write_dpia(self, record: AuditRecord) -> None:
        document = self.page.with_suffix(".json")
        write_whole(
            document, json.dumps(finite(record.json), ensure_ascii=False).encode(), remedy="another folder"
        )
        write_dpia(assess([document], read_declared(None)), self.dpia)

    def _described(self, table: Path, id_column: str) -> Document:
        check = check_party_table(PartyFile(file=table, id_column=id_column))
        assert check is not None  # it is no folder
        flaws = {flaw.column: flaw for flaw in reversed(check.flaws)}
        return {
            "names": list(column_names(table)),
            "rows": check.rows,
            "id_column": id_column,
            "columns": [_line(name, flaws.get(name)) for name in check.features],
            "rest": [sentence(flaw.sentence) for flaw in check.flaws if not flaw.column],
        }


def _verdict(record: AuditRecord) -> list[str]:
    if record.is_given:
        return sentences(record)
    decision, protection, column, *_ = sentences(record)
    return [decision, column, recommendation(record), *predicted(record), protection]


def _line(name: str, flaw: Flaw | None) -> Document:
    words = sentence(flaw.sentence) if flaw else ""
    kind = flaw.mends.get("encode", "") if flaw and flaw.flag else ""
    return {"name": name, "use": flaw is None or flaw.kind not in LEFT_OUT, "kind": kind, "words": words}
