"""A metrics file with a changed bit is read, or refused with an error that readers of folders expect."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from vflens.storage.metrics import parquet_rows


def _fails_as(file: Path) -> type[BaseException] | None:
    """What Arrow raises for ``file``."""
    try:
        pq.ParquetFile(file, read_dictionary=["attack"]).read(use_threads=False).to_pylist()
    except Exception as error:
        return type(error)
    return None


def test_a_word_that_its_dictionary_lacks_is_an_error_of_value(tmp_path: Path) -> None:
    file = tmp_path / "metrics.parquet"
    pq.write_table(pa.table({"attack": ["ls"] * 9}), file, compression="none")
    whole, odd = file.read_bytes(), []
    for place in range(4, whole.index(b"attack")):  # the pages; what describes them follows
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 8]) + whole[place + 1 :])
        if not issubclass(_fails_as(file) or ValueError, OSError | ValueError):
            odd.append(place)
            with pytest.raises(ValueError, match=r"."):
                parquet_rows(file, limited=True)
    assert odd, "no change led to an error that is no ValueError"
