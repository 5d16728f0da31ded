"""What a client gains: accuracy and AUC on its own prediction rows, with the others and alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Protocol

from vflens.clients.horizontal.local_run import LocalRun
from vflens.clients.horizontal.predictions import save_predictions
from vflens.clients.utility import accuracy
from vflens.models.alone import train_alone
from vflens.models.part import Keys, Site, plain
from vflens.numerics.ranking import auc
from vflens.plugins.chain import DefenseChain
from vflens.protocol.checks import MODEL_VERSION
from vflens.randomness import derive, stream
from vflens.storage.metrics import Metrics
from vflens.types import Exchange, Phase


class Measured(Protocol):
    """A client as its figures take it."""

    name: str
    folder: Path
    secret: bytes
    metrics: Metrics
    chain: DefenseChain


def record_utility(client: Measured, run: LocalRun, site: Site) -> None:
    """Add accuracy and AUC on the prediction rows: of the last parameters, and of a model of the same kind
    that the client trains on its own rows for as many steps. Keep what the last parameters predict.
    """
    federation = run.federation
    train, predict = (federation.rows_of(client.name, phase) for phase in (Phase.TRAIN, Phase.PREDICT))
    exchange = Exchange(federation.run, Phase.PREDICT, MODEL_VERSION, 0)
    training = federation.training.model_copy(update={"epochs": federation.local_passes})
    keys = Keys.under(derive(client.secret, "alone"))
    alone = train_alone(
        federation.model,
        replace(site, training=training, keys=keys, wrap=plain),
        run.inputs.__getitem__,
        run.labels,
        train,
        rng=stream(client.secret, "alone"),
        steps=federation.epochs * federation.batches_of(client.name),
    )
    inputs = client.chain.fold("on_batch", run.inputs[predict], exchange, predict)
    scores = {"": run.model.log_scores(inputs, exchange), "_alone": alone(predict)}
    save_predictions(client.folder, predict, scores[""])
    for suffix, log_c in scores.items():
        labels, add = run.labels[predict], client.metrics.add
        add("accuracy" + suffix, accuracy(log_c, labels), scored_set="predict", rows=len(predict))
        add("auc" + suffix, auc(log_c, labels), scored_set="predict", rows=len(predict))
