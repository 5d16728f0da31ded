"""The utility for the active party: accuracy and AUC, of a number R² and RMSE; with the others, alone, with
released tables.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from vflens.clients.returning import come_again
from vflens.clients.vertical.aligned_run import PartyHost
from vflens.models.alone import train_alone
from vflens.models.part import Keys, Site, plain
from vflens.numerics.measures.fit import r2, rmse, rmse_stderr
from vflens.numerics.measures.ranking import accuracy, auc
from vflens.randomness import derive, stream
from vflens.storage.metrics import Name
from vflens.tables.scaling import Scaler
from vflens.types import Array, ColumnInfo, Point

#: The names of both measures: of the federation's model, of the party's own, of that with released tables.
_NAMES: Mapping[str, Sequence[tuple[Name, Name]]] = {
    "classes": (
        (Name.ACCURACY, Name.AUC),
        (Name.ACCURACY_ALONE, Name.AUC_ALONE),
        (Name.ACCURACY_RELEASED, Name.AUC_RELEASED),
    ),
    "number": (
        (Name.R2, Name.RMSE),
        (Name.R2_ALONE, Name.RMSE_ALONE),
        (Name.R2_RELEASED, Name.RMSE_RELEASED),
    ),
}


def record_utility(party: PartyHost, labels: Array, received: Array, ids: Array) -> None:
    """Add the figures of the prediction rows to the party's metrics: federated, alone, and with released
    tables. People who come back are left out: the model learned from them.

    ``labels`` (N,) are those of all aligned rows, ``received`` (n, k) the scores of the prediction rows, and
    ``ids`` (n,) theirs.
    """
    federation, fresh = party.run.federation, ~come_again(ids)
    rows, received = federation.predict[fresh], received[fresh]
    models = [received, _trained(party, labels, "alone", {}, rows)]
    released = _released_tables(party)
    if released:
        models.append(_trained(party, labels, "released", released, rows))
    add = partial(party.metrics.add, scored_set="predict", rows=len(rows))
    for names, scores in zip(_NAMES[federation.model.label_kind], models, strict=False):
        for name, value in zip(names, measured(scores, labels[rows], federation.active.label), strict=True):
            add(name, value)
    if (label := federation.active.label) is not None:
        unit = Scaler.of_bounds(label).inverse
        add(Name.RMSE_STDERR, rmse_stderr(unit(received[:, 0]), unit(labels[rows])))


def measured(scores: Array, labels: Array, label: ColumnInfo | None) -> tuple[float, float]:
    """What ``scores`` (n, k) are worth by the true ``labels`` (n,): accuracy and AUC, or R² and RMSE, which
    is in the unit of ``label``.
    """
    if label is None:
        return accuracy(scores, labels), auc(scores, labels)
    inverse = Scaler.of_bounds(label).inverse
    return r2(scores[:, 0], labels), rmse(inverse(scores[:, 0]), inverse(labels))


def in_words(figure: Callable[[Name], float | None]) -> str:
    """The first measure of a party's metrics, whose last ``figure`` is by name, and that of it alone."""
    words, kind = ("accuracy", "classes") if figure(Name.R2) is None else ("R²", "number")
    (together, _), (alone, _), _ = _NAMES[kind]
    found, of_one = (figure(name) or 0.0 for name in (together, alone))
    if math.isnan(found):
        return f"no {words}: these rows have one label"
    return f"{words} {found:.3f} ({of_one:.3f} alone)"


def _trained(
    party: PartyHost, labels: Array, purpose: str, tables: Mapping[str, Array], rows: Array
) -> Array:
    """Scores (n, k) of ``rows`` int32 (n,) by the same kind of model on own columns and ``tables``."""
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
    return scores(rows)


def _released_tables(party: PartyHost) -> dict[str, Array]:
    """The noisy tables (N, d) that passive parties released, by name, in aligned order."""
    found = {r.sender: r.tensor("dataset") for r in party.transcript.select(Point.DATASET)}
    return dict(sorted(found.items()))
