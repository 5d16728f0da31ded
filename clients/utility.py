"""What the federation is worth to the active party: accuracy and AUC, with the others and alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from vfl.logistic import log_softmax, train_alone
from vfl.randomness import stream
from vfl.types import Array

if TYPE_CHECKING:
    from clients.active import ActiveParty


def record_utility(party: ActiveParty) -> None:
    """Add accuracy and AUC on the prediction rows to the party's metrics: federated, and on its own columns alone."""
    run, rows = party.run, party.run.federation.predict
    labels, train = party.labels, run.federation.train
    alone = train_alone(
        run.inputs[train],
        labels[train],
        run.federation.n_classes,
        run.federation.training,
        stream(party.secret, "alone"),
    )
    for suffix, log_c in (
        ("", party.received_scores(rows)),
        ("_alone", log_softmax(alone.forward(run.inputs[rows]))),
    ):
        party.metrics.add(
            "accuracy" + suffix, accuracy(log_c, labels[rows]), scored_set="predict", rows=len(rows)
        )
        party.metrics.add("auc" + suffix, auc(log_c, labels[rows]), scored_set="predict", rows=len(rows))


def accuracy(log_c: Array, labels: Array) -> float:
    """Share of rows whose first arg-max is the label."""
    return float((log_c.argmax(axis=1) == labels).mean())


def auc(log_c: Array, labels: Array) -> float:
    """Area under the ROC curve, one class against the rest, mean over the classes that occur; NaN if only one does."""
    from sklearn.metrics import roc_auc_score

    present = [c for c in range(log_c.shape[1]) if 0 < (labels == c).sum() < len(labels)]
    scores = np.exp(log_c)
    return (
        float(np.mean([roc_auc_score(labels == c, scores[:, c]) for c in present]))
        if present
        else float("nan")
    )
