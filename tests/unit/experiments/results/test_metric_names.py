"""Every metric has a writer, and a reader or people who look at the file."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from runfolder import metric, write_party

from vflens.errors import DataError
from vflens.experiments.results.folders import read_party
from vflens.storage.metrics import Name

ROOT = Path(__file__).parents[4]
WRITERS = ("clients", "coordinator", "vflens/member", "vflens/score", "vflens/experiments/run")
READERS = ("vflens/experiments",)
#: Read by nothing here: `vflens score` prints some, the others are in the file for who wants them.
FOR_PEOPLE = {
    *(Name.AFFINE_MSE, Name.COLUMN_MATCH, Name.COLUMN_BLIND_MATCH),
    *(Name.ROUNDS, Name.HIJACK_SCORE, Name.LARGEST_LOGIT),
}


def _named(folders: tuple[str, ...]) -> set[Name]:
    sources = (f.read_text(encoding="utf-8") for folder in folders for f in (ROOT / folder).rglob("*.py"))
    return {Name[found] for source in sources for found in re.findall(r"\bName\.([A-Z]\w+)", source)}


def test_every_metric_is_written() -> None:
    assert _named(WRITERS) == set(Name)


def test_every_metric_is_read_or_for_people() -> None:
    assert set(Name) - _named(READERS) == FOR_PEOPLE


def test_a_metric_of_another_version_is_refused_in_one_sentence(tmp_path: Path) -> None:
    write_party(tmp_path / "run/passive", "passive", metrics=[metric("nonesuch", 1.0)])
    with pytest.raises(DataError, match=r"\(metric 'nonesuch' is not one of this version\): copy it anew"):
        read_party(tmp_path / "run/passive")
