"""The utility for the active party: accuracy and AUC, with the others, alone, with released tables."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from vflens.clients.vertical.aligned_run import PartyHost
from vflens.models.alone import train_alone
from vflens.models.part import Keys, Site, plain
from vflens.numerics.measures.ranking import accuracy, auc
from vflens.randomness import derive, stream
from vflens.storage.metrics import Name
from vflens.types import Array, ColumnInfo, Point


def record_utility(party: PartyHost, labels: Array, received: Array) -> None:
    """Add accuracy and AUC on the prediction rows to the party's metrics: federated, alone, and with released
    tables.

    ``labels`` (N,) are those of all aligned rows, ``received`` (n, k) the log-probabilities of the prediction
    rows.
    """
    rows = party.run.federation.predict
    alone = _trained(party, labels, "alone", {})
    models = {(Name.ACCURACY, Name.AUC): received, (Name.ACCURACY_ALONE, Name.AUC_ALONE): alone}
    released = _released_tables(party)
    if released:
        joined = _trained(party, labels, "released", released)
        models[Name.ACCURACY_RELEASED, Name.AUC_RELEASED] = joined
    add = partial(party.metrics.add, scored_set="predict", rows=len(rows))
    for (share, area), log_c in models.items():
        add(share, accuracy(log_c, labels[rows]))
        add(area, auc(log_c, labels[rows]))


def _trained(party: PartyHost, labels: Array, purpose: str, tables: Mapping[str, Array]) -> Array:
    """Log-probabilities (n, k) of prediction rows by the same kind of model on own columns and ``tables``."""
    federation = party.run.federation
    inputs = party.run.inputs

    def read(rows: Array) -> Array:
        return np.hstack([inputs[rows], *(t[rows] for t in tables.values())]) if tables else inputs[rows]

    described = {p.name: p.columns for p in federation.passive}
    columns: tuple[ColumnInfo, ...] = sum((described[name] for name in tables), party.table.columns)
    site = Site(
        party=party.name,
        columns=columns,
        features=len(columns),
        classes=federation.n_classes,
        training=federation.training,
        keys=Keys.under(derive(party.secret, purpose)),
        wrap=plain,
        device=party.config.device,
        received=federation.combined_width,
        peers=[p.columns for p in federation.passive],
        holds_bias=True,
    )
    rng = stream(party.secret, purpose)
    scores = train_alone(federation.model, site, read, labels, federation.train, rng=rng)
    return scores(federation.predict)


def _released_tables(party: PartyHost) -> dict[str, Array]:
    """The noisy tables (N, d) that passive parties released, by name, in aligned order."""
    found = {r.sender: r.tensor("dataset") for r in party.transcript.select(Point.DATASET)}
    return dict(sorted(found.items()))
