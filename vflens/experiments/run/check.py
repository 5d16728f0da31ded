"""``vflens check``: refuses an experiment or a configuration as early as possible."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from vflens.config import (
    ActiveConfig,
    DataPartyConfig,
    LedConfig,
    PartyConfig,
    PassiveConfig,
    load_description,
    load_party,
    read_toml,
)
from vflens.config.compatibility import (
    build_attacks,
    build_defenses,
    check_device,
    check_grants,
    check_tolerance,
)
from vflens.errors import StorageError
from vflens.experiments.run.any_experiment import AnyPartiesExperiment
from vflens.experiments.run.dealer import data_set, deal_tables, remove_sockets, write_parties
from vflens.experiments.run.early import refuse_early
from vflens.experiments.run.horizontal.check import check_horizontal
from vflens.experiments.run.loading import load_any
from vflens.experiments.run.own_tables import check_tables, few_rows
from vflens.experiments.run.vertical.check import alignment_cost, check_vertical
from vflens.plugins.malicious import SENT
from vflens.services.folder import check_private
from vflens.services.identity import check_trust
from vflens.tables.description import PartyFile
from vflens.tables.files import check_party_table, read_party_table
from vflens.tables.own_check.flaw import TableCheck
from vflens.tables.table import Table
from vflens.types import Document, Setting
from vflens.words import counted

Check = Callable[[AnyPartiesExperiment, Sequence[Sequence[PartyConfig]], Mapping[str, Table]], Document]


#: What each setting checks of the configurations of all scenarios, and of the data parties' tables by name.
#: It describes the federation in words, or raises a VflensError: the first fault.
CHECKS: Mapping[Setting, Check] = {Setting.VERTICAL: check_vertical, Setting.HORIZONTAL: check_horizontal}


def check(file: Path, see: Callable[[Mapping[str, TableCheck]], None] = lambda checks: None) -> Document:
    """Check ``file`` and describe in words what it configures.

    Args:
        file: an experiment, a party's configuration, or the description of a table alone.
        see: gets by party what is to be mended in its own table, before the first fault is raised.

    Raises:
        VflensError: the first fault.
    """
    settings = read_toml(file)
    if "file" in settings and not settings.keys() & {"role", "parties"}:
        return _check_description(load_description(file), see)
    if "role" in settings:
        config = load_party(file)
        see(check_tables({config.party: config.data} if isinstance(config, DataPartyConfig) else {}))
        return check_party(config)
    experiment = load_any(file)
    see(check_tables(experiment.files))
    tables = deal_tables(experiment)
    refuse_early(experiment, tables)
    facts: Document = {"experiment": experiment.name}
    if experiment.data is not None and (caveat := data_set(experiment.data).caveat):
        facts["data"] = caveat
    scenarios = [list(loaded) for loaded in _parties(experiment, tables, facts)]
    configs = [config for parties in scenarios for config in parties if isinstance(config, DataPartyConfig)]
    read = {c.party: tables.get(c.party) or read_party_table(experiment.files[c.party]) for c in configs}
    return {**facts, **CHECKS[experiment.setting](experiment, scenarios, read)}


def _check_description(spec: PartyFile, see: Callable[[Mapping[str, TableCheck]], None]) -> Document:
    sound = set[str]()
    check = check_party_table(spec, see=lambda column: sound.add(column.name))
    see({} if check is None else {"table": check})
    if sound and check is not None:
        spec = spec.model_copy(update={"columns": tuple(n for n in check.features if n not in sound)})
    facts = _facts(table := read_party_table(spec), len(sound))
    return facts | ({"audit": few} if (few := few_rows(len(table.ids))) else {})


def _facts(table: Table, others: int = 0) -> Document:
    """Its rows, its columns and ``others``, and its classes, or its numeric label with bounds."""
    facts: Document = {"rows": len(table.ids), "columns": len(table.columns) + others}
    if (label := table.label) is None:
        return {**facts, "classes": list(table.class_names)}
    return {**facts, "label": f"{label.name}, a number from {label.low:g} to {label.high:g}"}


def _parties(
    experiment: AnyPartiesExperiment, tables: Mapping[str, Table], facts: Document
) -> Iterator[Iterable[PartyConfig]]:
    """The checked configurations of every scenario; ``facts`` gets a line for each."""
    for scenario in experiment.scenarios:
        with TemporaryDirectory() as folder:
            configs = write_parties(experiment, scenario, tables, Path(folder))
            try:
                loaded = {party: load_party(config) for party, config in configs.items()}
                for party, config in loaded.items():
                    facts[f"{scenario.name}, {party}"] = check_party(config)["summary"]
            finally:
                remove_sockets(configs)
        yield loaded.values()


def check_party(config: PartyConfig) -> Document:
    """The same for one party's configuration."""
    from vflens.wire.channel import check_address, check_port_free  # gRPC, which figures do not need

    for address in (config.address, *(p.address for p in config.peers)):
        check_address(address, insecure=config.insecure or config.tls is not None)
    check_trust(config)
    check_port_free(config.address)
    check_writable(config.out)
    if config.out.exists():
        check_private(config.out)
    defenses = [p.name for p in config.defenses]
    built = build_defenses(config)
    facts: Document = {"party": config.party, "role": str(config.role), "address": config.address}
    facts |= {"peers": [p.name for p in config.peers], "defenses": defenses}
    summary = f"{config.role} at {config.address}"
    if isinstance(config, DataPartyConfig):
        table = read_party_table(config.data)
        facts |= _facts(table)
        summary += f", {counted(len(table.ids), 'row')}, {counted(len(table.columns), 'column')}"
        if isinstance(config, LedConfig):
            check_tolerance(config.scoring.tolerance, table.names, config.party)
        for _, defense in built:
            defense.check(config.party, table.n_classes)
        check_device(config)
    if isinstance(config, PassiveConfig | ActiveConfig):
        facts["alignment"] = alignment_cost(config.aligns_by, [len(table.ids)])
        # Alignment decides which rows train; at least one predicts.
        check_grants(config, len(table.ids) - 1 if table.split is None else int((table.split == 0).sum()))
    summary += _attacks(config, facts)
    if config.breaks_protocol:
        facts["malicious"] = True
        summary += f", MALICIOUS: it sends {SENT[config.role]}"
    return {**facts, "summary": summary + (f", defended by {', '.join(defenses)}" if defenses else "")}


def _attacks(config: PartyConfig, facts: Document) -> str:
    """What the party's attacks add to the summary; ``facts`` gets their names."""
    if not config.facts.estimates:
        return ""
    attacks, words = list(build_attacks(config)), ""
    facts["attacks"] = attacks
    for joint in config.attacks_afterwards:
        role, _ = config.seat_of(joint)
        alone = "alone" if role == config.role else f"its {role}"
        if joint.colluders:
            facts.setdefault("colluders", {})[joint.name] = list(joint.colluders)
        who = f"with {' and '.join(joint.colluders)}" if joint.colluders else alone
        words += f", {who}: {joint.name}"
    counts = attacks or (isinstance(config, DataPartyConfig) and not config.facts.alike)
    return words + (f", {counted(len(attacks), 'attack')}" if counts else "")


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written; for a missing folder, test the nearest existing one above it.

    Raises:
        StorageError: it is no folder, or not ours.
    """
    found = next(f for f in (folder, *folder.parents) if f.exists())
    if not found.is_dir() or not os.access(found, os.W_OK | os.X_OK):
        raise StorageError(f"out = {folder}: {found} cannot be written: choose another folder")
