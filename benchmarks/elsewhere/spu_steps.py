"""``make spu-check``: the steps by SPU, two parties (SEMI2K) and three (ABY3), in processes over sockets.

SEMI2K has its masks dealt by a trusted first party, as ours are by the coordinator. The sigmoid is SPU's own:
an exponential and a reciprocal. Bytes are those that SPU's profile counts.
"""

from __future__ import annotations

import os
import re
import socket
import tempfile
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.elsewhere.problem import COLUMNS, FIRST, RATE, ROWS, STEPS, Array, Taken, data, row

PROTOCOLS = {"SEMI2K": 2, "ABY3": 3}


def _config(protocol: str, *, counted: bool = False) -> Any:
    from spu import libspu  # type: ignore[import-not-found,unused-ignore]

    found = libspu.RuntimeConfig(protocol=getattr(libspu.ProtocolKind, protocol), field=libspu.FieldType.FM64)
    found.enable_pphlo_profile = counted
    return found


def _step(features: Any, labels: Any, theta: Any) -> Any:
    import jax  # type: ignore[import-not-found,unused-ignore]

    return theta - RATE / ROWS * (features.T @ (jax.nn.sigmoid(features @ theta) - labels))


def _compiled(arrays: list[Array]) -> bytes:
    from spu import libspu
    from spu.utils import frontend  # type: ignore[import-not-found,unused-ignore]

    secret = [libspu.Visibility.VIS_SECRET] * len(arrays)
    names = ["features", "labels", "theta"]
    made, _ = frontend.compile(frontend.Kind.JAX, _step, arrays, {}, names, secret, lambda _: ["theta"])
    found: bytes = made.SerializeToString()
    return found


def _party(
    rank: int, addresses: list[str], protocol: str, program: bytes, shares: list[Any]
) -> tuple[float, float, float, Any]:
    """What it took the party ``rank``, and its share of θ; SPU's own log goes to a file."""
    with tempfile.TemporaryFile() as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        found = _measured(rank, addresses, protocol, program, shares)
        log.seek(0)
        counts = re.findall(rb"total send bytes (\d+)", log.read())
    assert len(counts) == FIRST + STEPS
    return *found[:2], float(sum(map(int, counts[FIRST:]))), found[2]


def _measured(
    rank: int, addresses: list[str], protocol: str, program: bytes, shares: list[Any]
) -> tuple[float, float, Any]:
    from spu import api, libspu  # type: ignore[import-not-found,unused-ignore]

    parties, made = libspu.link.Desc(), libspu.Executable()
    for number, address in enumerate(addresses):
        parties.add_party(str(number), address)
    made.ParseFromString(program)
    link = libspu.link.create_brpc(parties, rank)
    runtime = api.Runtime(link, _config(protocol, counted=True))
    for name, share in zip(made.input_names, shares, strict=True):
        runtime.set_var(name, share)
    for _ in range(FIRST):
        runtime.run(made)
    link.barrier()
    began, core = perf_counter(), process_time()
    for _ in range(STEPS):
        runtime.run(made)
    taken = perf_counter() - began, process_time() - core
    link.barrier()
    return *taken, runtime.get_var("theta")


def _free_addresses(count: int) -> list[str]:
    with_ports = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    found = [f"127.0.0.1:{each.getsockname()[1]}" for each in with_ports]
    for each in with_ports:
        each.close()
    return found


def main() -> None:
    """Print a row of each protocol."""
    from spu import api, libspu

    features, labels = data()
    arrays = [a.astype(np.float32) for a in (features, labels, np.zeros(COLUMNS))]
    program = _compiled(arrays)
    for protocol, parties in PROTOCOLS.items():
        io = api.Io(parties, _config(protocol))
        shares = [io.make_shares(array, libspu.Visibility.VIS_SECRET) for array in arrays]
        addresses = _free_addresses(parties)
        with ProcessPoolExecutor(parties, get_context("spawn")) as pool:
            asked = [
                pool.submit(_party, rank, addresses, protocol, program, [share[rank] for share in shares])
                for rank in range(parties)
            ]
            seconds, cores, sents, thetas = zip(*(each.result() for each in asked), strict=True)
        taken = Taken(max(seconds), sum(cores), sum(sents), io.reconstruct(list(thetas)))
        row(f"SPU {protocol}, {parties} parties", taken)


if __name__ == "__main__":
    main()
