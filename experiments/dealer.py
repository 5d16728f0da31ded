"""The dealer: one experiment becomes one folder per party, each with its own file, secrets and configuration.

It is the only code that sees all columns together. From the experiment's seed it derives every party's
secret, so that one seed gives one result, and no party can regenerate another's noise from its own.
"""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w

from experiments.config import Experiment, Scenario
from vfl.datasets._resolve import dataset
from vfl.errors import StorageError
from vfl.partyfile import PartyFile, write_party_table
from vfl.randomness import secret_from_seed
from vfl.split import deal
from vfl.table import Table
from vfl.types import Role

_SOCKET_BYTES = 100  # what a socket's path holds, roughly
SERVICES = "services"  # VFLENS_NETWORK: parties reach each other under their names, as in docker compose


def deal_tables(experiment: Experiment) -> dict[str, Table]:
    """Each data party's table; empty when the parties bring their own files.

    Raises:
        DataError, ConfigError: the data set or the split cannot be had.
    """
    if experiment.data is None or experiment.split is None:
        return {}
    table = dataset(experiment.data.name, experiment.data.__pydantic_extra__ or {}).load()
    return deal(
        table,
        experiment.split,
        experiment.parties.passive,
        experiment.parties.active,
        secret=secret_from_seed(experiment.seed, "dealer"),
        predict_share=experiment.predict_share,
        overlap=experiment.overlap,
    )


def write_parties(
    experiment: Experiment, scenario: Scenario, tables: Mapping[str, Table], folder: Path
) -> dict[str, Path]:
    """Write ``folder/PARTY/config.toml`` and the dealt table for every party; the configurations by party.

    Raises:
        StorageError: the folder cannot be written.
    """
    addresses = _addresses(experiment, folder)
    written = {}
    for party, role in experiment.roles().items():
        home = folder / party
        try:
            home.mkdir(parents=True, exist_ok=True)
            data = _data(experiment, party, tables, home) if role is not Role.COORDINATOR else {}
            config = {
                **_common(experiment, scenario, party, role, addresses),
                **data,
                **_of_role(experiment, party, role),
            }
            written[party] = home / "config.toml"
            written[party].write_text(tomli_w.dumps(_plain(config)), encoding="utf-8")
            written[party].chmod(0o600)  # it holds the party's secret and its tokens
        except OSError as error:
            raise StorageError(
                f"{home} cannot be written ({error.strerror}): choose another `out`"
            ) from error
    return written


def _common(
    experiment: Experiment,
    scenario: Scenario,
    party: str,
    role: Role,
    addresses: Mapping[str, tuple[str, str]],
) -> dict[str, Any]:
    peers = [
        {"name": other, "role": r, "address": addresses[other][1], "token": _token(experiment, party, other)}
        for other, r in experiment.roles().items()
        if other != party and (role is Role.COORDINATOR or r is Role.COORDINATOR or Role.ACTIVE in (r, role))
    ]
    return {
        "party": party,
        "role": role,
        "run": f"{experiment.name}/{scenario.name}",
        "address": addresses[party][0],
        "insecure": os.environ.get("VFLENS_NETWORK") == SERVICES,
        "out": ".",
        "seed": secret_from_seed(experiment.seed, party).hex(),
        "lab": experiment.lab,
        "peers": peers,
        "defenses": [{"name": d.name, **d.parameters} for d in scenario.defenses if d.at == party],
        "limits": experiment.limits.model_dump(),
    }


def _of_role(experiment: Experiment, party: str, role: Role) -> dict[str, Any]:
    if role is Role.COORDINATOR:
        training = experiment.training.model_dump()
        return {"training": training, "predict_share": experiment.predict_share, "after": experiment.after}
    key = {"alignment_key": secret_from_seed(experiment.seed, "alignment").hex()}
    if role is Role.ACTIVE:
        attacks = [{"name": a.name, **a.parameters} for a in experiment.attacks]
        return {**key, "attacks": attacks, "operator_token": _token(experiment, party, "operator")}
    granted = [g.model_dump(exclude={"by"}) for g in experiment.disclose if g.by in (None, party)]
    return {**key, "disclose": granted, "scoring": experiment.scoring.model_dump()}


def _data(experiment: Experiment, party: str, tables: Mapping[str, Table], home: Path) -> dict[str, Any]:
    spec: PartyFile = write_party_table(tables[party], home) if party in tables else experiment.files[party]
    return {"data": spec.model_dump(mode="json", exclude_none=True)}


def _token(experiment: Experiment, a: str, b: str) -> str:
    return secret_from_seed(experiment.seed, "token", *sorted((a, b))).hex()


def _addresses(experiment: Experiment, folder: Path) -> dict[str, tuple[str, str]]:
    """Party → (where it listens, where others reach it)."""
    names = list(experiment.roles())
    if os.environ.get("VFLENS_NETWORK") == SERVICES:
        port = experiment.network.port
        return {name: (f"0.0.0.0:{port}", f"{name}:{port}") for name in names}
    if experiment.network.transport == "unix":
        found = {name: f"unix:{folder.resolve() / name / 'socket'}" for name in names}
        if max(map(len, found.values())) > _SOCKET_BYTES:
            sockets = tempfile.mkdtemp(prefix="vflens-")
            found = {name: f"unix:{sockets}/{name}" for name in names}
    else:
        found = dict(zip(names, free_addresses(len(names)), strict=True))
    return {name: (address, address) for name, address in found.items()}


def free_addresses(count: int) -> list[str]:
    """``count`` distinct loopback addresses with ports that were free a moment ago."""
    sockets = [socket.socket() for _ in range(count)]
    try:
        for s in sockets:
            s.bind(("127.0.0.1", 0))
        return [f"127.0.0.1:{s.getsockname()[1]}" for s in sockets]
    finally:
        for s in sockets:
            s.close()


def _plain(value: Any) -> Any:
    """``value`` as TOML can write it: enumerations as text, no None."""
    if isinstance(value, Mapping):
        return {str(k): _plain(v) for k, v in value.items() if v is not None}
    if isinstance(value, list | tuple):
        return [_plain(v) for v in value]
    return str(value) if isinstance(value, str | Path) else value
