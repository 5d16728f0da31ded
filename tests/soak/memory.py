"""Memory, threads and descriptors of party processes that serve five hundred predictions a second."""

from __future__ import annotations

import subprocess
import time
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psutil
from processes import ENVIRONMENT, VFLENS, Federation, dealt, eventually

from vflens.config import OPERATOR, ActiveConfig, load_party
from vflens.protocol.acts import Query
from vflens.services.identity import counterpart
from vflens.wire.grpc_link import GrpcLink

RATE = 500  # predictions a second
MOST_MIB_PER_HOUR = 8.0
_WARM_UP = 0.3  # share of the time
_SAMPLE_SECONDS = 0.5
_ROWS = {"name": "synthetic", "rows": 2_000, "features": 8, "classes": 3, "informative": 4}


class Sample(dict[str, tuple[int, int, int]]):
    """Resident bytes, threads and descriptors by party, ``at`` monotonic seconds."""

    def __init__(self, processes: Mapping[str, psutil.Process]) -> None:
        super().__init__(
            {n: (p.memory_info().rss, p.num_threads(), p.num_fds()) for n, p in processes.items()}
        )
        self.at = time.monotonic()


def slope(seconds: Sequence[float], resident: Sequence[int]) -> float:
    """MiB an hour, by least squares."""
    return float(np.polyfit(seconds, resident, 1)[0]) * 3600 / 2**20


def soak(seconds: float) -> dict[str, Any]:
    """Serve for about ``seconds``.

    Returns:
        Figures, and the failures: memory that grows, threads or descriptors that are not as many in the end.
    """
    with TemporaryDirectory(prefix="vfl") as home, dealt(Path(home), data=_ROWS, after="serve") as federation:
        processes = {party: psutil.Process(_start(federation, party)) for party in federation.roles}
        eventually(lambda: "serving predictions" in federation.said("coordinator"), 300)
        asked, samples = _ask(federation, processes, seconds)
    began = time.monotonic() - samples[0].at
    return {"planned": round(seconds * RATE), "ran": asked, "seconds": round(began)} | judged(samples)


def _start(federation: Federation, party: str) -> int:
    """Start ``party`` in a Python of its own, as in a real federation; its process."""
    command = [*VFLENS, "serve", federation.roles[party], "--config", str(federation.config(party))]
    with (federation.home / party / "output.log").open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=ENVIRONMENT)
    federation.processes[party] = process
    return process.pid


def _ask(
    federation: Federation, processes: Mapping[str, psutil.Process], seconds: float
) -> tuple[int, list[Sample]]:
    """Ask for one row after the other, all of which were released before; how many, and the samples."""
    config = load_party(federation.config("active"))
    assert isinstance(config, ActiveConfig)
    token = tomllib.loads(federation.config("active").read_text(encoding="utf-8"))["operator_token"]
    tls = counterpart(config.party, config.role, config)
    link = GrpcLink(config.party, config.address, caller=OPERATOR, token=token, limits=config.limits, tls=tls)
    began, asked, samples = time.monotonic(), 0, [Sample(processes)]
    with closing(link):
        while (now := time.monotonic()) < began + seconds:
            link.call(Query(str(asked % 200)))
            asked += 1
            if now > samples[-1].at + _SAMPLE_SECONDS:
                samples.append(Sample(processes))
            time.sleep(max(0.0, began + asked / RATE - time.monotonic()))
    return asked, samples


def judged(samples: Sequence[Sample]) -> dict[str, Any]:
    """The figures of each party in ``samples`` after its warm-up, and the failures."""
    warm = samples[int(_WARM_UP * len(samples)) :]
    times = [sample.at for sample in warm]
    figures: dict[str, Any] = {"failures": []}
    for party in samples[0]:
        resident, threads, descriptors = zip(*(sample[party] for sample in warm), strict=True)
        grown = slope(times, resident)
        figures[party] = {
            "mib_per_hour": round(grown, 2),
            "resident_mib": [round(size / 2**20, 1) for size in (resident[0], resident[-1])],
            "threads": [threads[0], threads[-1]],
            "descriptors": [descriptors[0], descriptors[-1]],
        }
        if grown > MOST_MIB_PER_HOUR or threads[-1] > threads[0] or descriptors[-1] > descriptors[0]:
            figures["failures"].append({"cell": "memory", "error": f"{party}: {figures[party]}"})
    return figures


def repeat() -> None:
    """Serve again, for six minutes.

    Raises:
        AssertionError: it fails again.
    """
    found = soak(360)
    assert not found["failures"], found
