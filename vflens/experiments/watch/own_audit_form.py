"""What the page of an own audit asks for, and refusals that say which of its fields they are of."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from vflens.config.reading import refused
from vflens.errors import ConfigError, VflensError
from vflens.experiments.audit.bench import Plan
from vflens.experiments.audit.given import Source
from vflens.experiments.evidence.thresholds import Threshold, read_threshold, tolerances
from vflens.names import names_of

_Few = Annotated[list[str], Field(max_length=100)]


class FieldError(ConfigError):
    """A refusal of one ``field`` of the page."""

    def __init__(self, field: str, words: str) -> None:
        super().__init__(words)
        self.field = field


@contextmanager
def about(field: str) -> Iterator[None]:
    """Inside, every refusal is of ``field``.

    Raises:
        FieldError: in the words of the refusal.
    """
    try:
        yield
    except FieldError:
        raise
    except VflensError as error:
        raise FieldError(field, str(error)) from error


class FormPlan(Plan):
    """A plan of the form; what has no field there is stated in a terminal."""

    def stated(self, key: str, value: object) -> str:
        """The field, or :meth:`Plan.stated`."""
        known = f"{value} as 'Rows of yours that it has already'"
        fields = {"training": "'Nobody sees the messages of training' on the form", "known": known}
        return fields.get(key, f"{super().stated(key, value)}, in a terminal,")


class Asked(BaseModel):
    """What the form asks for; ``columns``: column → how its text becomes numbers, "" of numbers.

    ``weights``: the trained model that was sent is audited; ``inputs``: all of its inputs, comma-separated.
    ``label``: the column that a planned model predicts, "" of none, and its kind, "" as it looks.
    ``thresholds`` are texts as those of ``--fail-if``.
    """

    model_config = ConfigDict(extra="forbid")

    id_column: str
    columns: dict[str, str]
    missing: Literal["refuse", "drop_row", "mean"]
    weights: bool = False
    inputs: str = ""
    label: str = ""
    label_kind: Literal["", "classes", "number"] = ""
    classes: Annotated[int, Field(ge=2, le=1000)] | None
    known: Annotated[int, Field(ge=0, le=100_000)]
    training: Literal["clear", "secure"]
    thresholds: _Few = []
    beats_blind: bool = False

    def source(self, table: Path) -> Source:
        """What is asked of ``table``."""
        return Source(
            str(table),
            None if self.weights or self.label else self.classes,
            list(self.columns),
            self.id_column,
            inputs=names_of(self.inputs) if self.inputs.strip() else None,
            encode={column: kind for column, kind in self.columns.items() if kind},
            missing=self.missing,
            label=self.label or None,
            label_kind=self.label_kind or None,
        )

    @property
    def model_field(self) -> str:
        """The field that says which model it is."""
        return "weights" if self.weights else "label" if self.label else "classes"

    def read_thresholds(self) -> tuple[Threshold, ...]:
        """Its thresholds.

        Raises:
            FieldError: a text is none, or two state different distances of a column.
        """
        with about("thresholds"):
            found = tuple(map(read_threshold, self.thresholds))
            tolerances(found)
        return found

    def plan(self) -> Plan:
        """What the audit is to do: with a threshold slow attacks try all rows, as ``vflens audit`` has it."""
        judged = bool(self.thresholds or self.beats_blind)
        return FormPlan(
            known=self.known,
            training=self.training,
            tolerance=tolerances(self.read_thresholds()),
            slow_rows=Plan.rows if judged else None,
        )


def read_form(form: object) -> Asked:
    """``form`` as the page sends it.

    Raises:
        FieldError: it does not fit.
    """
    try:
        asked = Asked.model_validate(form)
    except ValidationError as error:
        place = error.errors()[0]["loc"]
        raise FieldError(str(place[0]) if place else "", str(refused(error, "the form"))) from None
    if not asked.columns:
        raise FieldError(
            "columns", "no column is ticked: tick those that you would share, or choose a table that has some"
        )
    asked.read_thresholds()
    if asked.label and asked.weights:
        raise FieldError("label", "a trained model needs no labels: choose none")
    if asked.inputs.strip() and not asked.weights:
        raise FieldError("inputs", "the inputs are those of a trained model: choose its file too")
    return asked
