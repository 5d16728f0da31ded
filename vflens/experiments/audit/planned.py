"""The plan of an audit in the description of a table: its table ``[audit]``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import ConfigDict, TypeAdapter

from vflens.config import plan_table, validate
from vflens.experiments.audit.bench import Plan
from vflens.types import Document, LabelKind


@dataclass(frozen=True, kw_only=True)
class AuditTable(Plan):
    """The keys of ``[audit]``: a plan, and the kind of the label."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    label_kind: LabelKind | None = None


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
