"""The lone party: it leads, trains and predicts, and asks nobody."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from toysetting.agreement import LoneAgreement, agreement_of, split_rows
from toysetting.config import SoloConfig
from vflens.coordinator.leader import Leader
from vflens.errors import ProtocolError
from vflens.member.stage import Stage
from vflens.member.start_nonce import run_nonce
from vflens.models.part import Keys, Site, plain
from vflens.models.softmax_regression import batches, one_hot
from vflens.models.whole import WholeModel
from vflens.numerics.measures.ranking import accuracy, auc
from vflens.protocol.link import Handlers, Link
from vflens.randomness import stream
from vflens.storage.metrics import Name
from vflens.tables.files import read_party_table
from vflens.tables.order import load_order, save_order
from vflens.tables.scaling import Scaler
from vflens.types import Array, Exchange, Phase, Point, Progress, Released


class Solo(Leader):
    """Leads a run of itself; ``links`` are none."""

    config: SoloConfig

    def __init__(
        self, config: SoloConfig, links: Mapping[str, Link], progress: Progress, *, in_process: bool = False
    ) -> None:
        self._table = read_party_table(config.data)
        super().__init__(config, links, progress, learns_from=Point.PARAMETERS, in_process=in_process)
        self._federation: LoneAgreement | None = None
        self._unfinished.add(self.name)

    def handlers(self) -> Handlers:
        return {}

    @property
    def federation(self) -> LoneAgreement | None:
        return self._federation

    @property
    def outcome(self) -> str:
        return f"accuracy {self.metrics.last(Name.ACCURACY) or 0:.3f} on rows of its own"

    def lead(self, check_alive: Callable[[], None] = lambda: None) -> None:
        if self._federation is None:
            order = np.concatenate(split_rows(self.config, self._table))
            self._begin(agreement_of(self.config, self._table, run_nonce(self.folder)), order)
            self.save_summary()
            save_order(self.folder, order, self._table.digest())
            self.reached.save()
        if self.reached.stage is Stage.TRAINING:
            self._train()
        self.advance(Stage.OPEN)
        self._predict()
        self._note_finished(self.name)

    def take_up(self) -> None:
        self._begin(LoneAgreement.load(self.folder), load_order(self.folder, self._table))

    def _begin(self, federation: LoneAgreement, order: Array) -> None:
        assert self._table.labels is not None
        columns, rows = self._table.columns, self._table.features[order]
        train = federation.rows_of(self.name, Phase.TRAIN)
        self._inputs = Scaler.fit(columns, rows, train).transform(rows)[0]
        self._labels: Array = self._table.labels[order]
        site = Site(
            party=self.name,
            columns=columns,
            features=len(columns),
            classes=federation.n_classes,
            training=federation.training,
            keys=Keys.under(self.secret),
            wrap=plain,
            received=federation.received_width,
            holds_bias=True,
        )
        self._model = WholeModel(federation.model, site)
        self._federation = federation

    def _train(self) -> None:
        assert self._federation is not None
        began, first, training = time.perf_counter(), self.recovery.learned + 1, self._federation.training
        rows = self._federation.rows_of(self.name, Phase.TRAIN)
        for epoch in range(first, training.epochs):
            exchange = Exchange(self.config.run, Phase.TRAIN, epoch, epoch)
            for batch in batches(rows, training.batch_size, stream(self.secret, "batches", epoch)):
                y = one_hot(self._labels[batch], self._federation.n_classes)
                self._model.learn(self._inputs[batch], y, exchange)
            self.recovery.mark_learned(epoch)
            self.recovery.checkpoint_if_due(self._model.state)
            self._report("training", epoch + 1, training.epochs)
        self.recovery.checkpoint(self._model.state())
        self._record_speed(training.epochs, training.epochs - first, time.perf_counter() - began)

    def _predict(self) -> None:
        assert self._federation is not None
        rows = self._federation.rows_of(self.name, Phase.PREDICT)
        scores = self._model.log_scores(self._inputs[rows], Exchange(self.config.run, Phase.PREDICT, 1, 0))
        for name, measured in ((Name.ACCURACY, accuracy), (Name.AUC, auc)):
            value = measured(scores, self._labels[rows])
            self.metrics.add(name, value, scored_set="predict", rows=len(rows))

    def load(self, state: Mapping[str, Array]) -> None:
        self._model.load(state)

    def learned_by(self, party: str, own: int) -> int:
        return own

    def check_logged(self, released: Released) -> None:
        raise ProtocolError(f"{self.name!r} learns from no message")

    def relearn(self, logged: Sequence[Released]) -> None:
        raise ProtocolError(f"{self.name!r} learns from no message")
