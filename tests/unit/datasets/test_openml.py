"""Data sets of OpenML, from a cache as its client writes it; nothing is fetched."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path

import pytest
from loaded import counts, load

from vflens.datasets._build import integers
from vflens.errors import DataError
from vflens.testing.datasets import assert_sound
from vflens.types import ColumnInfo

ARFF = """@RELATION tiny
@ATTRIBUTE size REAL
@ATTRIBUTE colour {red,green}
@ATTRIBUTE class {no,yes}
@DATA
1.5,red,no
2.5,green,yes
3.5,?,no
"""


def cache_openml(home: Path, arff: str, target: str = "class") -> None:
    """What scikit-learn's cache holds once ``openml:7`` was fetched."""
    body = arff.encode()
    folder = "https://www.openml.org/data/v1/download/7/tiny.arff"
    description = {
        "id": "7",
        "name": "tiny",
        "version": "1",
        "format": "ARFF",
        "status": "active",
        "description": "",
        "url": folder,
        "file_id": "7",
        "md5_checksum": hashlib.md5(body).hexdigest(),
    }
    flags = {"is_ignore": "false", "is_row_identifier": "false", "number_of_missing_values": "0"}
    kinds = {"size": "numeric", "colour": "nominal", "class": "nominal"}
    features = [
        {"index": str(j), "name": name, "data_type": kind, "is_target": str(name == target).lower(), **flags}
        for j, (name, kind) in enumerate(kinds.items())
    ]
    files = {
        "api/v1/json/data/7": json.dumps({"data_set_description": description}).encode(),
        "api/v1/json/data/features/7": json.dumps({"data_features": {"feature": features}}).encode(),
        "api/v1/json/data/qualities/7": json.dumps(
            {"data_qualities": {"quality": [{"name": "NumberOfInstances", "value": "3"}]}}
        ).encode(),
        "data/v1/download/7/tiny.arff": body,
    }
    for name, content in files.items():
        file = home / "openml" / "openml.org" / f"{name}.gz"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(gzip.compress(content))


def test_openml_reads_what_was_fetched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    cache_openml(tmp_path, ARFF)
    table = load("openml:7")
    assert_sound(table)
    assert table.columns == (ColumnInfo("size"), integers("colour", 0, 2))
    assert table.features.tolist() == [[1.5, 2], [2.5, 1], [3.5, 0]]  # sorted: "?", green, red
    assert counts(table) == {"no": 2, "yes": 1}
    assert table.ids.tolist() == [b"openml-7-000000", b"openml-7-000001", b"openml-7-000002"]


@pytest.mark.parametrize(
    ("arff", "target", "message"),
    [
        (ARFF.replace("1.5", "?"), "class", "data set openml:7: column 'size' misses 1 number"),
        (ARFF, "size", "data set openml:7 has no single target of classes"),
        (ARFF, "", "data set openml:7 has no single target of classes"),
    ],
)
def test_openml_sets_that_cannot_serve_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arff: str, target: str, message: str
) -> None:
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))
    cache_openml(tmp_path, arff, target)
    with pytest.raises(DataError, match=message):
        load("openml:7")


def test_openml_out_of_reach_is_a_data_error(monkeypatch: pytest.MonkeyPatch) -> None:
    import sklearn.datasets

    def unreachable(**_: object) -> None:
        raise OSError("no route to host")

    monkeypatch.setattr(sklearn.datasets, "fetch_openml", unreachable)
    with pytest.raises(DataError, match=r"openml:61 cannot be fetched \(no route to host\): check"):
        load("openml:61")
