"""``vflens check``: refuses an experiment or a configuration as early as possible."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from vflens.array import ScaledColumns
from vflens.clients.horizontal.spending import UpdateSpending
from vflens.clients.membership import check_limits
from vflens.clients.spending import Spending
from vflens.config import (
    MIB,
    ActiveConfig,
    ClientConfig,
    DataConfig,
    Limits,
    MemberConfig,
    PassiveConfig,
    ServerConfig,
    build_plugins,
    load_party,
    read_toml,
)
from vflens.config.compatibility import build_attacks, build_defenses, check_device, check_grants
from vflens.errors import ConfigError, StateError, StorageError
from vflens.experiments.run.any_experiment import AnyPartiesExperiment
from vflens.experiments.run.dealer import data_set, deal_tables, remove_sockets, write_parties
from vflens.experiments.run.experiment import Experiment, load_any
from vflens.experiments.run.horizontal import HorizontalExperiment, check_clients
from vflens.experiments.run.knowledge import check_granted, check_served
from vflens.experiments.run.whole_models import check_attacks, check_models, described
from vflens.models.family import ModelFamily
from vflens.models.part import Keys, Site, plain
from vflens.models.settings import Training
from vflens.plugins.chain import DefenseChain
from vflens.plugins.defense import Defense
from vflens.protocol.acts import Identities
from vflens.protocol.alignment import DIGEST_BYTES, align, digests
from vflens.protocol.federation import Federation
from vflens.registry import ATTACKS
from vflens.services.folder import check_private
from vflens.services.identity import check_trust
from vflens.tables.files import read_party_table
from vflens.tables.table import Table
from vflens.types import Claim, Document, Exchange, Owner, PartyInfo, Phase, Role


def check(file: Path) -> Document:
    """Check ``file`` and describe in words what it configures.

    Raises:
        VflensError: the first fault.
    """
    if "role" in read_toml(file):
        return check_party(load_party(file))
    experiment = load_any(file)
    tables = deal_tables(experiment)
    facts: Document = {"experiment": experiment.name}
    if experiment.data is not None and (caveat := data_set(experiment.data).caveat):
        facts["data"] = caveat
    scenarios = [list(loaded) for loaded in _parties(experiment, tables, facts)]
    configs = [config for parties in scenarios for config in parties if isinstance(config, DataConfig)]
    read = {c.party: tables.get(c.party) or read_party_table(experiment.files[c.party]) for c in configs}
    if isinstance(experiment, HorizontalExperiment):
        check_served(experiment)
        clients = [c for c in configs if isinstance(c, ClientConfig)]
        agreed = check_clients(experiment, list({c.party: c for c in clients}.values()), read)
        for client in clients:
            UpdateSpending(client, partial(_claims, client), agreed, set()).check_run()
        check_models(agreed, clients)
        check_attacks(agreed, build_plugins(ATTACKS, experiment.attacks))
        rows, facts["model"] = agreed.parties, described(agreed)
        trained, predicted = sum(p.train_rows for p in rows), sum(p.predict_rows for p in rows)
        return {**facts, "rows": f"{trained} to train, {predicted} to predict at {len(rows)} clients"}
    assert isinstance(experiment, Experiment)
    aligned = [[c for c in parties if isinstance(c, PassiveConfig | ActiveConfig)] for parties in scenarios]
    federation = _check_aligned(experiment, aligned, read)
    return {**facts, "rows": f"{len(federation.train)} to train, {len(federation.predict)} to predict"}


def _parties(
    experiment: AnyPartiesExperiment, tables: Mapping[str, Table], facts: Document
) -> Iterator[Iterable[MemberConfig]]:
    """The checked configurations of every scenario; ``facts`` gets a line for each."""
    for scenario in experiment.scenarios:
        with TemporaryDirectory() as folder:
            configs = write_parties(experiment, scenario, tables, Path(folder))
            try:
                loaded = {party: load_party(config) for party, config in configs.items()}
                for party, config in loaded.items():
                    facts[f"{scenario.name}, {party}"] = check_party(config)["summary"]
                    facts |= clip_notes(scenario.name, config)
            finally:
                remove_sockets(configs)
        yield loaded.values()


def _check_aligned(
    experiment: Experiment,
    scenarios: Sequence[Sequence[PassiveConfig | ActiveConfig]],
    tables: Mapping[str, Table],
) -> Federation:
    """Refuse what the coordinator or a data party would refuse; the federation as it will be aligned."""
    check_granted(experiment)
    data_parties = [config for parties in scenarios for config in parties]
    federation = check_rows(experiment, data_parties, tables)
    check_messages(federation, experiment.limits, {p: len(t.ids) for p, t in tables.items()})
    for member in federation.parties:
        check_limits(federation, member, experiment.limits)
    for parties in scenarios:  # after the limits: it builds the networks
        check_modules(experiment.model, parties, tables)
    for config in data_parties:
        check_budget(config, federation)
    return federation


def clip_notes(scenario: str, config: MemberConfig) -> dict[str, str]:
    """A sentence per defence of gradients whose ``clip`` exceeds every gradient of logits, c − y: its L1 norm
    is at most 2.

    A top model multiplies it by its weights, so this is a note and no refusal.
    """
    if not isinstance(config, ActiveConfig):
        return {}
    clips = {name: getattr(d, "clip", 0.0) for name, d in build_defenses(config)}
    return {
        f"{scenario}, {config.party}, "
        f"{name}": f"clip = {clip:g} clips no gradient of logits, whose rows are at most 2 long; "
        f"level then counts {clip / 2:.3g} times what it does at that clip: set clip near it"
        for name, clip in clips.items()
        if clip > 2
    }


def check_rows(
    experiment: Experiment, configs: Sequence[PassiveConfig | ActiveConfig], tables: Mapping[str, Table]
) -> Federation:
    """Align ``tables`` as the coordinator will; it gives the numbers of training and prediction rows, not the
    rows.

    Raises:
        AlignmentError: no common row, contradicting splits, or no row left to train or to predict.
        ConfigError: a party grants more rows than train.
    """
    identities = {p: Identities(digests(t.ids, b"known to all"), t.split) for p, t in tables.items()}
    aligned = align(identities, experiment.predict_share, np.random.default_rng(0))
    for config in configs:
        check_grants(config, len(aligned.train))
    return Federation(
        experiment.name,
        tuple(
            PartyInfo(c.party, Role(c.role), tables[c.party].columns, len(tables[c.party].class_names))
            for c in configs
        ),
        len(aligned.train) + len(aligned.predict),
        aligned.train,
        aligned.predict,
        experiment.training,
        experiment.lab,
        experiment.model,
        experiment.aggregator,
    )


def check_budget(config: PassiveConfig | ActiveConfig, federation: Federation) -> None:
    """Refuse a run that releases a row of this party more often than its budget covers.

    Raises:
        ConfigError: names both.
    """
    spending = Spending(config, partial(_claims, config), federation)
    try:
        spending.check_releases(Phase.TRAIN, federation.training.epochs)
        spending.check_releases(Phase.PREDICT, 1)
    except StateError as error:
        raise ConfigError(str(error)) from None


def _claims(config: MemberConfig, hook: str) -> list[Claim]:
    """What the defences of ``config`` that override ``hook`` and need no fit guarantee there."""
    known = [d for _, d in build_defenses(config) if type(d).fit is Defense.fit]
    return [d.claim({}) for d in known if hook in d.hooks()]


def check_messages(federation: Federation, limits: Limits, rows: Mapping[str, int]) -> None:
    """Refuse a limit below the largest message of alignment and training; ``rows``: number of rows of each
    party.

    Raises:
        ConfigError: names the message and its size.
    """
    batch = min(federation.training.batch_size, len(federation.train))
    width = max(federation.combined_width, *federation.widths.values())
    taken = {f"the {count} row ids of {party!r}": (count * DIGEST_BYTES, "") for party, count in rows.items()}
    what = f"the embeddings of {batch} rows (training.batch_size)"
    taken[what] = (batch * (4 + width * federation.dtype.itemsize), ", or lower the batch")
    for what, (size, remedy) in taken.items():
        if size > limits.message_mib * MIB:
            raise ConfigError(
                f"limits.message_mib = {limits.message_mib}: {what} take {size / MIB:.1f} MiB, raise "
                f"it{remedy}"
            )


def check_party(config: MemberConfig) -> Document:
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
    if isinstance(config, DataConfig):
        table = read_party_table(config.data)
        facts |= {"rows": len(table.ids), "columns": len(table.columns), "classes": list(table.class_names)}
        summary += f", {len(table.ids)} rows, {len(table.columns)} columns"
        for _, defense in built:
            defense.check(config.party, len(table.class_names))
        check_device(config)
    if isinstance(config, ServerConfig):
        build_attacks(config)
        facts["attacks"] = [a.name for a in config.attacks]
        summary += f", {len(config.attacks)} attacks" if config.attacks else ""
    if isinstance(config, PassiveConfig | ActiveConfig):
        # Alignment decides which rows train; at least one predicts.
        check_grants(config, len(table.ids) - 1 if table.split is None else int((table.split == 0).sum()))
        build_attacks(config)
        facts["attacks"] = [a.name for a in config.attacks]
        summary += f", {len(config.attacks)} attacks"
    if isinstance(config, ActiveConfig) and config.malicious:
        facts["malicious"] = True
        summary += ", MALICIOUS: it sends other gradients than those of its loss"
    return {**facts, "summary": summary + (f", defended by {', '.join(defenses)}" if defenses else "")}


def check_modules(
    model: ModelFamily, configs: Sequence[PassiveConfig | ActiveConfig], tables: Mapping[str, Table]
) -> None:
    """Build what parties' defences wrap and attacks name of ``model``, as it will be built in the run.

    ``configs`` are those of the data parties, ``tables`` their tables.

    Raises:
        KnowledgeError: an attack names a layer that its target's model does not have.
        ConfigError: it does not fit the columns, embeddings do not combine, or a defence finds no layer;
            torch is missing.
    """
    if "wrap_model" in model.unused_hooks:
        return
    active = next(c for c in configs if isinstance(c, ActiveConfig))
    classes = len(tables[active.party].class_names)
    peers = [tables[c.party].columns for c in configs if c is not active]
    received = model.combined_width([model.width_of(columns, classes) for columns in peers], classes)
    for config in configs:
        columns = tables[config.party].columns
        own = config.party, columns, len(columns), classes, Training(), Keys.under(b""), plain
        site = Site(*own, received=received, peers=peers)
        _check_wrapped(config, model.module(Role(config.role), site), len(columns))
        if isinstance(config, PassiveConfig):
            for attack in build_attacks(active).values():
                attack.check(model.module(Role.PASSIVE, site))


def _check_wrapped(config: PassiveConfig | ActiveConfig, module: Any, columns: int) -> None:
    """Test that the defences of ``config`` can wrap ``module``, of a party with so many ``columns``."""
    owner = Owner(config.party, ScaledColumns(np.zeros((0, columns))), role=Role(config.role))
    chain = DefenseChain(lambda: owner, build_defenses(config), b"")
    chain.wrap(Exchange(config.run, Phase.TRAIN, 0, 0))(module)


def check_writable(folder: Path) -> None:
    """Refuse a folder that cannot be written; for a missing folder, test the nearest existing one above it.

    Raises:
        StorageError: it is no folder, or not ours.
    """
    found = next(f for f in (folder, *folder.parents) if f.exists())
    if not found.is_dir() or not os.access(found, os.W_OK | os.X_OK):
        raise StorageError(f"out = {folder}: {found} cannot be written: choose another folder")
