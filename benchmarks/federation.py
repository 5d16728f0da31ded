"""Federations to measure: real processes on this machine, small tables, the logs of a real run."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch

from pydantic import TypeAdapter

from vflens.clients.vertical.active import ActiveParty
from vflens.config import ActiveConfig, Limits, load_party
from vflens.experiments.results.record import read_runs
from vflens.experiments.run import processes as launch
from vflens.experiments.run.dealer import deal_tables, write_parties
from vflens.experiments.run.processes import Processes, prepared
from vflens.experiments.run.run import run
from vflens.experiments.run.vertical.experiment import Experiment
from vflens.services.hall import start_server
from vflens.services.process import link_to
from vflens.storage.metrics import Name
from vflens.wire.channel import open_aio_channel, open_channel

STEP = bytes(256 * (4 + 2 * 8) + 100)  # a position and two float64 a row of a batch, and a head


def experiment(
    out: Path, *, rows: int, batch: int, epochs: int, features: int = 20, **more: Any
) -> Experiment:
    """Softmax regression on ``features`` made-up columns, half of them passive, in local processes."""
    settings = {
        "name": "benchmark",
        "out": out,
        "data": {"name": "synthetic", "rows": rows, "features": features, "classes": 2},
        "split": {"kind": "fraction", "fraction": 0.5},
        "training": {"epochs": epochs, "batch_size": batch, "learning_rate": 0.01},
        "network": {"transport": "unix"},
        **more,
    }
    return TypeAdapter(Experiment).validate_python(settings)


def training_steps_per_second(
    out: Path, steps: int, batch: int = 256, *, entry: str = "vflens.cli.main", **more: Any
) -> float:
    """Training steps a second of three processes whose program is the module ``entry``."""
    with patch.object(launch, "ENTRY", entry), _importable():
        return measured(training(out, steps, batch, **more), Name.STEPS_PER_SECOND)


def training(
    out: Path, steps: int, batch: int = 256, *, staleness: int = 0, learning_rate: float = 0.01, **more: Any
) -> Experiment:
    """An experiment of ``steps`` training steps, 40 an epoch."""
    epochs, per_epoch = max(1, steps // 40), 40
    setup = experiment(out, rows=int(per_epoch * batch / 0.8), batch=batch, epochs=epochs)
    trained = setup.training.model_dump() | {"staleness": staleness, "learning_rate": learning_rate}
    return experiment(
        out, rows=int(per_epoch * batch / 0.8), batch=batch, epochs=epochs, training=trained, **more
    )


def measured(setup: Experiment, metric: Name) -> float:
    """Run ``setup``; the figure called ``metric``."""
    value = read_runs(run(setup).scenarios)[0].value(metric)
    assert value is not None
    return value


def _importable() -> Any:
    """Let the party processes import this package."""
    return patch.dict(os.environ, PYTHONPATH=str(Path(__file__).parents[1]))


@contextmanager
def predicting(out: Path, rows: int, **more: Any) -> Iterator[ActiveParty]:
    """A trained federation whose active party lives here; coordinator and passive party are processes."""
    setup = experiment(out, rows=rows, batch=256, epochs=1, predict_share=0.9, **more)
    configs = write_parties(setup, setup.scenarios[0], deal_tables(setup), out / "parties")
    config = load_party(configs.pop("active"))
    assert isinstance(config, ActiveConfig)
    roles = {party: role.value for party, role in setup.roles().items()}
    links = {p.name: link_to(p, config) for p in config.peers}
    with prepared([setup.model]) as forks, Processes(configs, roles, forks):
        party = ActiveParty(config, links)
        server = start_server(party, config, party.log)
        assert party.begun.wait(60)
        try:
            yield party
        finally:
            server.stop(1).wait()
            party.close()
            for link in links.values():
                link.close()


@contextmanager
def echo() -> Iterator[Callable[[bytes], bytes]]:
    """A unary call to a process that answers with what it was sent."""
    with _echo_server() as address, open_channel(address, Limits()) as channel:
        call: Any = channel.unary_unary("/benchmark.Echo/Echo")
        yield call


def bare_steps_per_second(steps: int) -> float:
    """Training steps a second of three processes that only pass on as many bytes: what gRPC leaves for all
    the rest.
    """
    with _echo_server() as passive, _echo_server() as active:
        return asyncio.run(_relay((passive, active), steps))


async def _relay(addresses: tuple[str, ...], steps: int) -> float:
    channels = [open_aio_channel(address, Limits()) for address in addresses]
    streams: list[Any] = [channel.stream_stream("/benchmark.Echo/Stream")() for channel in channels]

    async def relay(count: int) -> None:
        for _ in range(count):
            for stream in streams:
                await stream.write(STEP)
                await stream.read()

    await relay(steps // 10)
    began = perf_counter()
    await relay(steps)
    seconds = perf_counter() - began
    for stream, channel in zip(streams, channels, strict=True):
        stream.cancel()
        await channel.close()
    return steps / seconds


@contextmanager
def _echo_server() -> Iterator[str]:
    """The address of a server that answers with what it is sent."""
    command = [sys.executable, "-m", "benchmarks.echo"]
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    yield server.stdout.readline().strip()
    server.communicate()
