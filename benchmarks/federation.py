"""Federations to measure: real processes on this machine, small tables, everything logged as in a real run."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import TypeAdapter

from clients.active import ActiveParty
from experiments.config import Experiment
from experiments.dealer import deal_tables, write_parties
from experiments.folders import read_runs
from experiments.launch import Processes
from experiments.run import run
from services.process import link_to, start_server
from vfl.config import ActiveConfig, load_party
from vfl.types import Role


def experiment(out: Path, *, rows: int, batch: int, epochs: int, features: int = 20, **more: object) -> Experiment:
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


def training_steps_per_second(out: Path, steps: int, batch: int = 256) -> float:
    """Training steps a second of three processes, gate, transcript and recovery log on."""
    per_epoch = 40
    setup = experiment(out, rows=int(per_epoch * batch / 0.8), batch=batch, epochs=max(1, steps // per_epoch))
    speed = read_runs(run(setup).scenarios)[0].value("steps_per_second")
    assert speed is not None
    return speed


@contextmanager
def predicting(out: Path, rows: int) -> Iterator[ActiveParty]:
    """A trained federation whose active party lives here; coordinator and passive party are processes."""
    setup = experiment(out, rows=rows, batch=256, epochs=1, predict_share=0.9)
    configs = write_parties(setup, setup.scenarios[0], deal_tables(setup), out / "parties")
    config = load_party(configs.pop("active"))
    assert isinstance(config, ActiveConfig)
    roles = {party: role.value for party, role in setup.roles().items()}
    links = {p.name: link_to(p, config) for p in config.peers}
    coordinator = links[config.peers_of(Role.COORDINATOR)[0].name]
    with Processes(configs, roles):
        party = ActiveParty(config, coordinator, {})
        server = start_server(party, config, party.log)
        assert party.begun.wait(60)
        try:
            yield party
        finally:
            server.stop(1).wait()
            party.close()
            for link in links.values():
                link.close()


def echo_server() -> subprocess.Popen[str]:
    """A process that answers unary calls with what it was sent; prints its port."""
    code = (
        "from concurrent.futures import ThreadPoolExecutor; from vfl.wire.channel import grpc, options; from vfl.config import Limits\n"
        "handler = grpc.method_handlers_generic_handler('bench.Echo', {'Echo': grpc.unary_unary_rpc_method_handler(lambda r, c: r)})\n"
        "server = grpc.server(ThreadPoolExecutor(4), options=options(Limits())); server.add_generic_rpc_handlers((handler,))\n"
        "print(server.add_insecure_port('127.0.0.1:0'), flush=True); server.start(); __import__('sys').stdin.read()"
    )
    return subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
