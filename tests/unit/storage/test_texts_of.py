"""NumPy's bytes as Arrow's strings and back."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from vflens.storage.arrow import in_bytes, texts_of

TEXTS = st.lists(st.text(max_size=9).map(lambda text: text.rstrip("\0")), min_size=1, max_size=12)


@given(texts=TEXTS, cut=st.integers(0, 12))
def test_both_ways(texts: list[str], cut: int) -> None:
    cells = np.array([text.encode() for text in texts])
    arrow = texts_of(cells)
    assert arrow.to_pylist() == texts
    parts = pa.chunked_array([arrow[:cut], arrow[cut:cut], arrow[cut:]], pa.string())
    back = in_bytes(parts)
    assert back.dtype == cells.dtype
    assert back.tolist() == cells.tolist()


def test_a_slice_is_of_its_own_cells() -> None:
    sliced = texts_of(np.array([b"one", b"three", b"four"]))[1:]
    assert in_bytes(pa.chunked_array([sliced])).tolist() == [b"three", b"four"]
    assert texts_of(np.array([b"a", b"b", b"c"])[::2]).to_pylist() == ["a", "c"]


def test_no_cells() -> None:
    assert texts_of(np.zeros(0, "S3")).to_pylist() == []
    assert in_bytes(pa.chunked_array([], pa.string())).tolist() == []
