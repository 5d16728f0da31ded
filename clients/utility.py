"""The utility for the active party: accuracy and AUC, with the others, alone, with released tables."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from vflens.clients.vertical.aligned_run import Host
from vflens.models.alone import train_alone
from vflens.models.part import Keys, Site, plain
from vflens.numerics.ranking import auc
from vflens.randomness import derive, stream
from vflens.types import Array, ColumnInfo, Point


def record_utility(party: Host, labels: Array, received: Array) -> None:
    """Add accuracy and AUC on the prediction rows to the party's metrics: federated, alone, and with released
    tables.

    ``labels`` (N,) are those of all aligned rows, ``received`` (n, k) the log-probabilities of the prediction
    rows.
    """
    rows = party.run.federation.predict
    models = {"": received, "_alone": _trained(party, labels, "alone", {})}
    released = _released_tables(party)
    if released:
        models["_released"] = _trained(party, labels, "released", released)
    for suffix, log_c in models.items():
        party.metrics.add(
            "accuracy" + suffix, accuracy(log_c, labels[rows]), scored_set="predict", rows=len(rows)
        )
        party.metrics.add("auc" + suffix, auc(log_c, labels[rows]), scored_set="predict", rows=len(rows))


def _trained(party: Host, labels: Array, purpose: str, tables: Mapping[str, Array]) -> Array:
    """Log-probabilities (n, k) of the prediction rows by the same kind of model on the party's own columns
    and ``tables``.
    """
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


def _released_tables(party: Host) -> dict[str, Array]:
    """The noisy tables (N, d) that passive parties released, by name, in aligned order."""
    found = {r.sender: r.tensor("dataset") for r in party.transcript.select(Point.DATASET)}
    return dict(sorted(found.items()))


def accuracy(log_c: Array, labels: Array) -> float:
    """Share of rows whose first arg-max is the label."""
    return float((log_c.argmax(axis=1) == labels).mean())
