"""The dealer: makes one folder per party from an experiment, each with its own table, secrets and
configuration.

It is the only code that sees all columns together. In lab mode every party's secret follows from the
experiment's seed. One seed gives one result, and anyone with the seed, a small public number, can redraw any
party's noise. Otherwise the dealer adds 32 random bytes and keeps no copy, so that no party can.
"""

import os
import random
import secrets
import shutil
import socket
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from itertools import islice
from pathlib import Path

import numpy as np

from vflens.config import build_plugins, read_toml
from vflens.config.compatibility import check_family
from vflens.config.writing import toml_text
from vflens.datasets._resolve import dataset
from vflens.errors import ConfigError, StorageError
from vflens.experiments.outcome.finding import CASE, SITE
from vflens.experiments.run.any_experiment import AnyPartiesExperiment, Data, Scenario, token
from vflens.experiments.run.own_columns import names_by_party, scoring_of
from vflens.plugins.dataset import Dataset
from vflens.protocol.roles import ROLES
from vflens.randomness import secret_from_seed, stream
from vflens.registry import DEFENSES
from vflens.services.folder import clear, exclusive
from vflens.storage.private import write_private
from vflens.tables.files import write_party_table
from vflens.tables.table import Table
from vflens.types import Document, Role, Setting
from vflens.wire.sockets import check_path, doubt, path_of
from vflens.words import counted

#: Below the range from which the system numbers outgoing connections (ephemeral ports): another connection
#: may use such a number before the party listens, even that of a peer to the party.
_PORTS = range(20_000, 32_000)
_REJOIN_SECONDS = 60.0
_SOCKETS = "vflens-"  # prefix of a folder of sockets
TLS = {"certificate": "tls/certificate.pem", "key": "tls/key.pem", "trust": "tls/authority.pem"}
PUBLIC = "public"  # the folder of public rows in that of the active party
SERVICES = "services"  # VFLENS_NETWORK: parties are services by name, as in docker compose

_SITES = {Setting.HORIZONTAL: (SITE, CASE)}  # what a threshold may name beside columns


def data_set(data: Data) -> Dataset:
    """What ``[data]`` of an experiment names, not yet read.

    Raises:
        PluginError, ConfigError, DataError: as :func:`vflens.datasets._resolve.dataset`.
    """
    return dataset(data.name, data.__pydantic_extra__ or {})


def deal_tables(experiment: AnyPartiesExperiment) -> dict[str, Table]:
    """Each data party's table; empty when the parties bring their own files.

    Raises:
        DataError, ConfigError: the data set or the split is unusable.
    """
    if experiment.data is None:
        return {}
    table, _ = _held_out(experiment, experiment.data)
    secret = secret_from_seed(experiment.seed, "dealer")
    if experiment.data.sample is not None:
        table = _sampled(table, experiment.data.sample, stream(secret, "sample"))
    return experiment.dealt(table, secret)


def column_names(experiment: AnyPartiesExperiment) -> list[str]:
    """The names of all columns that its data parties hold, each once; behind them the sites of clients.

    Raises:
        DataError, ConfigError: a table, the data set or the split is unusable.
    """
    found = names_by_party(experiment, deal_tables(experiment))
    sites = _SITES.get(experiment.setting, ())
    return [*dict.fromkeys(name for columns in found.values() for name in columns), *sites]


def _held_out(experiment: AnyPartiesExperiment, data: Data) -> tuple[Table, Table]:
    """The rows of the run, and the public rows, which are none of them."""
    table, count = data_set(data).prepared(), data.public or 0
    if count == 0:
        return table, table.rows(np.zeros(0, np.int64))
    if count > len(table.ids) - 2:
        raise ConfigError(
            f"data.public = {count}: the table has {counted(len(table.ids), 'row')}, ask for fewer"
        )
    order = stream(secret_from_seed(experiment.seed, "dealer"), "public").permutation(len(table.ids))
    public = replace(table.rows(np.sort(order[:count])), split=None)
    return table.rows(np.sort(order[count:])), public


def _sampled(table: Table, count: int, rng: np.random.Generator) -> Table:
    """``count`` rows of ``table``, in its order."""
    if count > len(table.ids):
        raise ConfigError(
            f"data.sample = {count}: the table has {counted(len(table.ids), 'row')}, ask for fewer"
        )
    return table.rows(np.sort(rng.permutation(len(table.ids))[:count]))


def draw_root(experiment: AnyPartiesExperiment) -> str:
    """The root of all secrets of ``experiment``: its seed; outside lab mode random bytes as well."""
    seed = str(experiment.seed)
    return seed if experiment.lab else f"{seed}:{secrets.token_bytes(32).hex()}"


def write_parties(
    experiment: AnyPartiesExperiment,
    scenario: Scenario,
    tables: Mapping[str, Table],
    folder: Path,
    root: str | None = None,
    *,
    shared: Iterable[Sequence[str]] = (),
) -> dict[str, Path]:
    """Write ``folder/PARTY/config.toml`` and the dealt table for every party, and certificates where they
    meet at ports; the configurations by party.

    Sockets lie beside them if their paths are short enough and no other user can change them, else in a
    temporary folder: see :func:`remove_sockets`. An earlier run in a party's folder moves to ``earlier-N``
    there, with its configuration and table, so that the folder holds one run's results.

    Args:
        experiment: what to deal.
        scenario: its defences are written.
        tables: from :func:`deal_tables`.
        folder: gets one folder per party.
        root: from :func:`draw_root`, the same for scenarios that share their draws; None: a new one.
        shared: the parties of each process, which have one socket.

    Raises:
        ConfigError: a folder's party is running, or VFLENS_NETWORK is unknown.
        ConfigError, PluginError: a tolerance of an unknown column; a defence that is unknown, made for
            another kind of model, or at the coordinator and reads parameters not disclosed to it.
        StorageError: the folder cannot be written.
    """
    _check_defenses(experiment, scenario)
    scoring = scoring_of(experiment, tables)
    addresses = _addresses(experiment, folder, shared)
    root = draw_root(experiment) if root is None else root
    homes = {party: folder / party for party in experiment.roles()}
    with ExitStack() as claims:
        # All before the first is written: no party keeps the secrets of another dealing.
        for home in homes.values():
            claims.enter_context(exclusive(home))
        if _needs_certificates(experiment):
            from vflens.services.certificates.make import deal_certificates

            deal_certificates(experiment.name, experiment.roles(), homes)
        for party, home in homes.items():
            own = scoring.get(party, {})
            _write_party(
                experiment, scenario, party, home, tables=tables, addresses=addresses, root=root, scoring=own
            )
    return {party: home / "config.toml" for party, home in homes.items()}


def _write_party(
    experiment: AnyPartiesExperiment,
    scenario: Scenario,
    party: str,
    home: Path,
    *,
    tables: Mapping[str, Table],
    addresses: Mapping[str, tuple[str, str]],
    root: str,
    scoring: Document,
) -> None:
    """Write the table and the configuration of ``party`` into ``home``; an earlier run's files move aside."""
    role = experiment.roles()[party]
    try:
        clear(home)
        config = {
            **_common(experiment, scenario, party, role, addresses, root=root),
            **(_data(experiment, party, tables, home) if party in experiment.data_parties else {}),
            **scoring,
            **experiment.settings_of(party, root),
            **(_public(experiment, home) if experiment.learns_from_public(party) else {}),
        }
        write_private(home / "config.toml", toml_text(config))  # it holds secrets
    except OSError as error:
        raise StorageError(f"{home} cannot be written ({error.strerror}): choose another `out`") from error


def make_sockets(configs: Mapping[str, Path]) -> None:
    """Make the temporary folder for sockets of ``configs`` again, after :func:`remove_sockets`.

    Raises:
        StorageError: it cannot be made.
    """
    for home in _socket_folders(configs):
        try:  # one that exists may be another user's: the parties check that
            home.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise StorageError(f"{home} cannot be made ({error.strerror}): free space there") from error


def remove_sockets(configs: Mapping[str, Path]) -> None:
    """Remove the temporary folder for sockets, if :func:`write_parties` made one for ``configs``."""
    for home in _socket_folders(configs):
        shutil.rmtree(home, ignore_errors=True)


def _socket_folders(configs: Mapping[str, Path]) -> set[Path]:
    addresses = [str(read_toml(file)["address"]) for file in islice(configs.values(), 1)]  # all lie there
    homes = {Path(a.removeprefix("unix:")).parent for a in addresses if a.startswith("unix:")}
    made_in = Path(tempfile.gettempdir())
    return {home for home in homes if home.parent == made_in and home.name.startswith(_SOCKETS)}


def _check_defenses(experiment: AnyPartiesExperiment, scenario: Scenario) -> None:
    """Refuse before the start what parties would refuse in preparation, or the leader after training."""
    built = {
        party: build_plugins(DEFENSES, [d for d in scenario.defenses if d.at == party])
        for party in experiment.roles()
    }
    for party, defenses in built.items():
        check_family(defenses, party, experiment.model)
    experiment.check_defenses(built)


def _common(
    experiment: AnyPartiesExperiment,
    scenario: Scenario,
    party: str,
    role: Role,
    addresses: Mapping[str, tuple[str, str]],
    *,
    root: str,
) -> Document:
    peers = [
        {"name": other, "role": r, "address": addresses[other][1], "token": token(root, party, other)}
        for other, r in experiment.roles().items()
        if other != party and experiment.are_peers(role, r)
    ]
    return {
        "party": party,
        "role": role,
        "run": f"{experiment.name}/{scenario.name}",
        "address": addresses[party][0],
        "tls": TLS if _needs_certificates(experiment) else None,
        "out": ".",
        "seed": secret_from_seed(root, party).hex(),
        "lab": experiment.lab,
        "peers": peers,
        "defenses": [{"name": d.name, **d.parameters} for d in scenario.defenses if d.at == party],
        "limits": _limits(experiment, role),
        "transcript": experiment.transcript.model_dump(),
    }


def _limits(experiment: AnyPartiesExperiment, role: Role) -> Document:
    """Limits; ``rejoin_seconds`` has a default with restarts, ``worst_error`` stands where scores leave."""
    limits = experiment.limits.model_dump()
    limits["rejoin_seconds"] = limits["rejoin_seconds"] or (_REJOIN_SECONDS if experiment.restart else 0.0)
    return limits if ROLES[role].limits_scores else {**limits, "worst_error": None}


def _data(experiment: AnyPartiesExperiment, party: str, tables: Mapping[str, Table], home: Path) -> Document:
    if party not in tables or experiment.data is None:
        spec = experiment.files[party]
    else:
        caveat = data_set(experiment.data).caveat or None
        spec = write_party_table(tables[party], home).model_copy(update={"caveat": caveat})
    return {"data": spec.model_dump(mode="json", exclude_none=True)}


def _public(experiment: AnyPartiesExperiment, home: Path) -> Document:
    """The public rows, written into the active party's folder ``home``."""
    if experiment.data is None or experiment.data.public is None:
        return {}
    _, table = _held_out(experiment, experiment.data)
    folder = home / PUBLIC
    folder.mkdir(mode=0o700, exist_ok=True)
    spec = write_party_table(table, folder)
    spec = spec.model_copy(update={"file": Path(PUBLIC) / spec.file})
    return {"public": spec.model_dump(mode="json", exclude_none=True)}


def _addresses(
    experiment: AnyPartiesExperiment, folder: Path, shared: Iterable[Sequence[str]]
) -> dict[str, tuple[str, str]]:
    """Party → (its own address, its address for others); those that show certificates have one each."""
    names = list(experiment.roles())
    if _as_services():
        port = experiment.network.port
        return {name: (f"0.0.0.0:{port}", f"{name}:{port}") for name in names}
    if experiment.network.transport == "unix":
        found = {name: f"unix:{folder.resolve() / name / 'socket'}" for name in names}
        if not all(map(_is_fit, found.values())):
            sockets = tempfile.mkdtemp(prefix=_SOCKETS)
            found = {name: f"unix:{sockets}/{name}" for name in names}
        found |= {name: found[group[0]] for group in shared for name in group}
    else:
        found = dict(zip(names, free_addresses(len(names)), strict=True))
    return {name: (address, address) for name, address in found.items()}


def _needs_certificates(experiment: AnyPartiesExperiment) -> bool:
    """Whether others could listen in a party's place: at a port or a name, not at a socket in a folder that
    its user alone can write.
    """
    return _as_services() or experiment.network.transport == "tcp"


def _is_fit(address: str) -> bool:
    """Whether ``address`` is short enough for a socket, and no other user can put one there."""
    try:
        check_path(address)
        return not doubt(path_of(address))
    except (ConfigError, OSError):
        return False


def _as_services() -> bool:
    """Whether parties reach each other under their names."""
    network = os.environ.get("VFLENS_NETWORK", "")
    if network not in ("", SERVICES):
        raise ConfigError(f"VFLENS_NETWORK = {network!r} is unknown: set it to {SERVICES!r}, or not at all")
    return network == SERVICES


def free_addresses(count: int) -> list[str]:
    """``count`` distinct loopback addresses with free ports from :data:`_PORTS`; another process may take
    one.
    """
    tried = min(100 * count, len(_PORTS))  # a draw of all ports takes as long as the rest of the dealing
    free = filter(_is_free, random.Random().sample(_PORTS, tried))
    return [f"127.0.0.1:{port}" for port in islice(free, count)]


def _is_free(port: int) -> bool:
    with socket.socket() as probe, suppress(OSError):
        probe.bind(("127.0.0.1", port))
        return True
    return False
