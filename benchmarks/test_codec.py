"""Encoding and decoding a 1,024 × 512 float32 tensor against copying its bytes."""

from __future__ import annotations

from time import perf_counter
from typing import Any

import numpy as np
import pytest

from benchmarks.ratios import alternate, report
from vflens.protos import vfl_pb2 as pb
from vflens.types import Exchange, Phase, Point, Released
from vflens.wire.codec import decode_released, encode_released

TENSOR = np.random.default_rng(0).random((1024, 512), dtype=np.float32)


@pytest.mark.benchmark(group="codec")
def test_two_mebibytes_there_and_back(benchmark: Any) -> None:
    rows = np.arange(len(TENSOR), dtype=np.int32)
    released = Released(
        "passive", Exchange("run", Phase.TRAIN, 0, 0), Point.EMBEDDING, rows, tensors={"embedding": TENSOR}
    )

    def there_and_back() -> None:
        decode_released(pb.Released.FromString(encode_released(released).SerializeToString()))

    candidates = {
        "memcpy": lambda: _milliseconds(TENSOR.copy),
        "encode and decode": lambda: _milliseconds(there_and_back),
    }
    figures = benchmark.pedantic(lambda: alternate(candidates, 15), rounds=1)
    report(benchmark, "1,024 × 512 float32", figures, "memcpy", "ms")


def _milliseconds(work: Any) -> float:
    began = perf_counter()
    for _ in range(20):
        work()
    return (perf_counter() - began) / 20 * 1e3
