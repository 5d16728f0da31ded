"""What no measurement can say of a processing, from a TOML file: asked for by name, never made up."""

from pathlib import Path
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, Field, Strict, TypeAdapter

from vflens.config import Settings, read_toml, validate
from vflens.errors import ConfigError
from vflens.storage.files import write_whole


def _said(text: str) -> str:
    """``text`` without spaces around it.

    Raises:
        ValueError: nothing else is there.
    """
    if not text.strip():
        raise ValueError("it is blank: say it, or leave the field out")
    return text.strip()


Said: TypeAlias = Annotated[str, AfterValidator(_said)]


class Declaration(Settings):
    """What its controller declares of a processing; what is missing is asked for by name."""

    controller: Said | None = Field(None, description="who is responsible for the processing")
    purpose: Said | None = Field(None, description="what the model is trained for")
    people: Annotated[int, Strict()] | None = Field(
        None, gt=0, description="of how many people the table holds data"
    )
    prior: Annotated[float, Strict()] | None = Field(
        None,
        gt=0,
        lt=1,
        description="how likely it is, before anything is seen, that a person is in the table",
    )
    safeguards: tuple[Said, ...] | None = Field(
        None, min_length=1, description="other safeguards, such as contracts and access control"
    )
    ran_by: Said | None = Field(None, description="who ran the runs, audits and sweeps")
    assessor: Said | None = Field(None, description="who made this assessment")

    @property
    def missing(self) -> dict[str, str]:
        """Field that is not declared → what it asks for."""
        return {
            name: field.description or ""
            for name, field in type(self).model_fields.items()
            if getattr(self, name) is None
        }


def write_form(file: Path) -> None:
    """Write a ``file`` with every field, commented out, and what it asks for.

    Raises:
        ConfigError: it is there.
        StorageError: it cannot be written.
    """
    if file.exists():
        raise ConfigError(f"{file} is there: give another name with --to")
    empty = '""'
    examples = {"people": "1000", "prior": "0.1", "safeguards": '["contracts"]'}
    lines = [
        f"# {field.description}\n# {name} = {examples.get(name, empty)}\n"
        for name, field in Declaration.model_fields.items()
    ]
    write_whole(file, "\n".join(lines).encode(), remedy="another --to")


def read_declared(file: Path | None) -> Declaration:
    """What ``file`` declares; nothing without one.

    Raises:
        ConfigError: it cannot be read, is no TOML, or has an unknown or wrong field.
    """
    return Declaration() if file is None else validate(TypeAdapter(Declaration), read_toml(file), str(file))
