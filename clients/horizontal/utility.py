"""What a client gains: accuracy and AUC on its own prediction rows, with the others and alone."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Protocol

from vflens.clients.horizontal.local_run import LocalRun
from vflens.clients.horizontal.predictions import save_predictions
from vflens.member.stage import CLOCK
from vflens.models.alone import train_alone
from vflens.models.part import Keys, Site, plain
from vflens.numerics.measures.ranking import accuracy, auc
from vflens.plugins.chain import DefenseChain
from vflens.protocol.checks import MODEL_VERSION
from vflens.randomness import derive, stream
from vflens.storage.metrics import Metrics, Name
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
    that the client trains on its own rows for as many steps. Keep what the last parameters predict, and
    how long they take.
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
        steps=federation.epochs * federation.steps_of(client.name),
    )
    clock = CLOCK.get()
    began = clock()
    inputs = client.chain.fold("on_batch", run.inputs[predict], exchange, predict)
    scores = run.model.log_scores(inputs, exchange)
    client.metrics.add(Name.PREDICT_SECONDS, clock() - began)
    save_predictions(client.folder, predict, scores)
    models = {
        (Name.ACCURACY, Name.AUC): scores,
        (Name.ACCURACY_ALONE, Name.AUC_ALONE): alone(predict),
    }
    labels = run.labels[predict]
    add = partial(client.metrics.add, scored_set="predict", rows=len(predict))
    for (share, area), log_c in models.items():
        add(share, accuracy(log_c, labels))
        add(area, auc(log_c, labels))
