"""What the server or a client would refuse of a horizontal experiment, found before the start."""

from collections.abc import Mapping, Sequence
from functools import partial

from vflens.clients.horizontal.grants import check_grants
from vflens.clients.horizontal.own_file import client_info
from vflens.clients.horizontal.spending import UpdateSpending
from vflens.clients.membership import check_limits
from vflens.config import (
    MIB,
    ClientConfig,
    PartyConfig,
    build_plugins,
)
from vflens.config.compatibility import known_claims
from vflens.errors import ConfigError
from vflens.experiments.run.adaptive import adaptive_notes
from vflens.experiments.run.any_experiment import AnyPartiesExperiment
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.experiments.run.horizontal.knowledge import check_served
from vflens.experiments.run.horizontal.whole_models import (
    check_attacks,
    check_models,
    described,
    update_bytes,
)
from vflens.protocol.horizontal.agreement import HorizontalAgreement, check_alike
from vflens.registry import ATTACKS
from vflens.tables.table import Table
from vflens.types import Document
from vflens.words import counted


def check_horizontal(
    experiment: AnyPartiesExperiment,
    scenarios: Sequence[Sequence[PartyConfig]],
    tables: Mapping[str, Table],
) -> Document:
    """See :data:`vflens.experiments.run.check.CHECKS`."""
    assert isinstance(experiment, HorizontalExperiment)
    check_served(experiment)
    clients = [c for parties in scenarios for c in parties if isinstance(c, ClientConfig)]
    agreed = check_clients(experiment, list({c.party: c for c in clients}.values()), tables)
    for client in clients:
        UpdateSpending(client, partial(known_claims, client), agreed, set()).check_run()
    check_models(agreed, clients)
    check_attacks(agreed, build_plugins(ATTACKS, experiment.attacks))
    rows = agreed.parties
    trained, predicted = sum(p.train_rows for p in rows), sum(p.predict_rows for p in rows)
    words = f"{trained} to train, {predicted} to predict at {counted(len(rows), 'client')}"
    notes = adaptive_notes(experiment.scenarios, experiment.attacks, experiment.model, experiment.setting)
    return {"model": described(agreed), "rows": words, **notes}


def check_clients(
    experiment: HorizontalExperiment, configs: Sequence[ClientConfig], tables: Mapping[str, Table]
) -> HorizontalAgreement:
    """Refuse before the start what the server or a client would refuse: unlike clients, limits, grants, a
    model that does not fit, an update that is larger than a message.

    Raises:
        ConfigError: names the client, the limit or the setting.
    """
    clients = tuple(client_info(c, tables[c.party]) for c in sorted(configs, key=lambda c: c.party))
    check_alike(clients)
    federation = HorizontalAgreement(
        run=experiment.name,
        parties=clients,
        training=experiment.training,
        lab=experiment.lab,
        model=experiment.model,
        horizontal=experiment.horizontal,
    )
    rows = {client.name: client.train_rows for client in clients}
    for client in clients:
        check_limits(federation, client, experiment.limits)
    for config in configs:
        check_grants(config, rows[config.party], experiment.horizontal)
    size = update_bytes(federation)
    if size > experiment.limits.message_mib * MIB:
        raise ConfigError(
            f"limits.message_mib = {experiment.limits.message_mib}: an update takes {size / MIB:.1f} MiB, "
            "raise it, or choose a smaller model"
        )
    return federation
