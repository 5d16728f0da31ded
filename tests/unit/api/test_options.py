"""Editors and type checkers know every keyword of ``vl.audit`` and ``vl.release``, and no other."""

from __future__ import annotations

from dataclasses import fields
from inspect import signature
from typing import Unpack, get_type_hints

import vflens as vl
from vflens.api.options import DataKeys, ReleaseKeys
from vflens.experiments.release.options import ReleaseOptions
from vflens.tables.description import PartyFile


def test_every_keyword_has_its_type() -> None:
    released = {f.name for f in fields(ReleaseOptions)} - {"table", "out", "force", "excel_safe", "described"}
    assert set(get_type_hints(ReleaseKeys)) == released
    assert set(get_type_hints(DataKeys)) == {*PartyFile.model_fields} - {
        "file",
        "id_column",
        "classes",
        "delimiter",
        "encoding",
        "header",
    }
    assert signature(vl.release).parameters["options"].annotation == Unpack[ReleaseKeys]
    assert signature(vl.audit).parameters["description"].annotation == Unpack[DataKeys]
