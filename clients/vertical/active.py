"""The active party: labels, its own columns, the loss, predictions; it runs the adversary's plug-ins."""

import threading
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

import numpy as np

from vflens.array import ScaledColumns
from vflens.clients.operator import numbered
from vflens.clients.public_rows import public_arrays, read_public
from vflens.clients.returning import again
from vflens.clients.training import ActiveTraining
from vflens.clients.vertical.aligned_run import LabelledRun
from vflens.clients.vertical.clear.active import ClearActive
from vflens.clients.vertical.early_stopping import EarlyStopping
from vflens.clients.vertical.malicious import sending
from vflens.clients.vertical.party import VerticalParty
from vflens.clients.vertical.predictions import PredictionRequests
from vflens.clients.vertical.protected.active import ActiveOnShares
from vflens.clients.vertical.utility import in_words, record_utility
from vflens.config import ActiveConfig
from vflens.config.compatibility import check_grants
from vflens.errors import ConfigError, ProtocolError, StateError
from vflens.member.stage import CLOCK, Stage
from vflens.protocol.acts import Answers, Disclose, Query, Rejoin, Train, Trained
from vflens.protocol.checks import MODEL_VERSION, check_version
from vflens.protocol.link import Handlers, Link
from vflens.protocol.standing import Standing
from vflens.protocol.vertical.access import DIRECT, ON_SHARES, SUMMED, Way
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.protocol.vertical.disclosed import check_disclosed
from vflens.randomness import stream
from vflens.score.columns import ColumnScoring
from vflens.score.labels import LabelScoring
from vflens.score.service import ScoringService, milestones
from vflens.storage.files import save_arrays
from vflens.storage.metrics import Name
from vflens.tables.scaling import Scaler
from vflens.types import Array, Exchange, Phase, Point, Released
from vflens.words import counted

_TRAININGS: Mapping[Way, type[ClearActive | ActiveOnShares]] = {
    SUMMED: ClearActive,
    DIRECT: ClearActive,
    ON_SHARES: ActiveOnShares,
}


class ActiveParty(VerticalParty[LabelledRun]):
    """Learns from summed logits, gives gradients, asks for predictions, attacks.

    Args:
        config: its configuration.
        links: to the coordinator and the passive parties by name; none for a party that only scores.
    """

    config: ActiveConfig

    def __init__(self, config: ActiveConfig, links: Mapping[str, Link], *, in_process: bool = False) -> None:
        super().__init__(config, links, _TRAININGS[config.way], in_process=in_process)
        if self.table.targets is None:
            raise ConfigError(
                f"data.label_column {config.data.label_column!r} gave no labels: name the label column"
            )
        self._file_labels = self.table.targets
        self.public = read_public(config.public, self.table)
        self.predictions = PredictionRequests(self)
        self._leading = threading.Lock()  # held while this party leads a training
        self.paused = threading.Event()

    def handlers(self) -> Handlers:
        return {
            **super().handlers(),
            Train: self.train,
            Query: self.query,
        }

    def aligned_run(self, federation: VerticalAgreement, order: Array) -> LabelledRun:
        """See :meth:`VerticalParty.aligned_run`; also draws the soft labels."""
        if (federation.n_classes, federation.active.label) != (self.table.n_classes, self.table.label):
            label = federation.active.label
            raise ProtocolError(
                f"a federation of {counted(federation.n_classes, 'class') if label is None else label}: "
                f"{self.name!r} has {self.table.label or self.table.n_classes}"
            )
        check_grants(self.config, len(federation.train))
        labels: Array = self._file_labels[order]
        rows = self.take_rows(federation, order, labels)
        site, public = (
            self.site(federation, rows.inputs.shape[1]),
            public_arrays(self.public, federation.parties),
        )
        return LabelledRun(
            federation,
            *rows,
            model=sending(self, federation.model.active_part(site), federation, public),
            spending=self.new_spending(federation),
            scoring=self._scoring_of(labels, federation),
            labels=labels,
            soft_labels=self.soft_labels(labels, federation),
            prediction_ids=self.table.ids[order[federation.predict]],
            again=again(self.table.ids[order]),
            stopping=EarlyStopping(federation, self.metrics),
            public=public,
        )

    def _scoring_of(self, labels: Array, federation: VerticalAgreement) -> ScoringService:
        service = {"training": federation.train, **self.scores_for(len(federation.predict))}
        if (label := federation.active.label) is None:
            return LabelScoring(labels=labels, n_classes=federation.n_classes, **service)
        scaler = Scaler.of_bounds(label)
        truth = ScaledColumns(labels[:, None], scaler.high - scaler.low)
        stated = self.config.scoring.tolerance
        service["tolerance"] = {label.name: stated[label.name]} if label.name in stated else {}
        return ColumnScoring(truth=truth, columns=(label,), pictures=0, **service)

    @cached_property
    def training(self) -> ActiveTraining:
        return _TRAININGS[self.run.federation.way](self)

    def step_messages(self, step: int) -> int:
        return self.training.step_messages

    def train(self, act: Train) -> Trained:
        """Train with the passive parties, which send their embeddings directly to this party."""
        self.check_run(act.run)
        if not self._leading.acquire(blocking=False):
            raise StateError(f"run {act.run!r} is being trained: wait for the answer to the first request")
        try:
            self.reached.check_training(self.recovery.learned + 1)
            self.settle()
            return self.training.lead(self.links[self.leader], self._passive(), self.paused)
        finally:
            self._leading.release()

    def standing(self) -> Standing:
        """See :meth:`vflens.member.member.Member.standing`; whether early stopping ends training."""
        found = super().standing()
        stops = self.federation is not None and self.run.stopping.stops_after(found.learned)
        return replace(found, stops=stops)

    def rejoin(self, act: Rejoin) -> Standing:
        """See :meth:`VerticalParty.rejoin`; a training that this party leads ends first."""
        self.paused.set()
        with self._leading:
            self.paused.clear()
        return super().rejoin(act)

    def check_disclosed(self, released: Released) -> None:
        if released.sender not in {p.name for p in self.run.federation.passive}:
            raise ProtocolError(f"a disclosure of {released.sender!r}: only a passive party discloses")
        check_disclosed(released, released.sender, self.run.federation)

    def disclose(self, act: Disclose) -> tuple[Released, ...]:
        """The labels that the configuration grants to ``act.to``, through the gate."""
        self.check_run(act.run)
        check_version(act.version)
        with self.lock:
            self.settle()
            self.advance(Stage.DISCLOSED)
            return tuple(self._labels(d.rows, act.version) for d in self.config.disclose if d.to == act.to)

    def _labels(self, count: int, version: int) -> Released:
        """``count`` training labels, of the same rows in every call."""
        exchange = Exchange(self.config.run, Phase.DISCLOSE, version, count)
        if (disclosed := self.gate.disclosed(Point.AUXILIARY, exchange)) is not None:
            return disclosed
        rows = self._labelled_rows(count)
        self.log.info("disclosed", what="labels", rows=len(rows))
        return self.gate.release(Point.AUXILIARY, exchange, rows, {"labels": self.run.labels[rows]})

    def _labelled_rows(self, count: int) -> Array:
        return np.sort(stream(self.secret, "known labels").permutation(self.run.federation.train)[:count])

    def granted_rows(self, to: str) -> Array:
        return self._labelled_rows(self.granted_count(to))

    def scored_rows(self, scored_set: str, sender: str) -> Array:
        """See :meth:`VerticalParty.scored_rows`: labels of prediction rows can be guessed before their scores
        are asked for, so all are scored.
        """
        if scored_set == "predict":
            return self.run.federation.predict
        return super().scored_rows(scored_set, sender)

    def training_over(self) -> None:
        """Keep the data that attacks on the recorded transcript may also use."""
        save_arrays(self.folder / "own.npz", self.adversary.own())

    def query(self, act: Query) -> Answers:
        """Answer an operator."""
        self.check_open()
        run = self.run
        numbers = numbered(act.rows, len(run.federation.predict))
        scores = self.predictions.answered(run.federation.predict[numbers])
        ids = tuple(i.decode() for i in run.prediction_ids[numbers])
        if (label := self.table.label) is None:
            return Answers(numbers, ids, self.table.class_names, scores)
        values = Scaler.of_bounds(label).inverse(scores)
        return Answers(numbers, ids, (), values, label=label.name)

    def _passive(self) -> list[Link]:
        """The links to the passive parties, in name order."""
        return self.links.to(self.run.federation.passive)

    def complete(self) -> str:
        """See :meth:`VerticalParty.complete`: what the predictions are worth, and the attacks."""
        self.predict_and_attack()
        return (
            f"predicted {counted(len(self.run.federation.predict), 'row')} with "
            f"{in_words(self.metrics.last)}; attacks run: "
            f"{', '.join(plugin.name for plugin in self.config.attacks) or 'none'}"
        )

    def predict_and_attack(self) -> None:
        """Ask for all prediction rows, attack at every milestone, then report to the coordinator.

        With ``attacked_rows`` there is one attack, on the first so many.
        """
        federation = self.run.federation
        rows = federation.predict
        done, point = 0, Point.EMBEDDING if federation.scored_by_coordinator else Point.SCORES
        limit = self.config.attacked_rows
        attacked = milestones(len(rows)) if limit is None else [min(limit, len(rows))]
        clock, seconds = CLOCK.get(), 0.0
        for milestone in dict.fromkeys([*attacked, len(rows)]):
            began = clock()
            while done < milestone:
                end = min(done + self.config.predict_batch, milestone)
                self.predictions.ask(rows[done:end])
                done = end
            seconds += clock() - began
            self.log.info("progress", stage="predicting", done=done, total=len(rows))
            if milestone in attacked and milestone > self.reached.attacked:
                self.adversary.attack(
                    self.gate.released_rows(point, MODEL_VERSION)[:milestone],
                    final=milestone == attacked[-1],
                )
                # After a restart there are more scores: another attack would see them.
                self.reached.attacked = milestone
                self.keep_metrics()
        self.metrics.add(Name.PREDICT_SECONDS, seconds)
        record_utility(self, self.run.labels, self.predictions.received(rows), self.run.prediction_ids)
        self.report_finished()

    def resume(self) -> None:
        """See :meth:`VerticalParty.resume`; requests are numbered on."""
        super().resume()
        self.predictions.resume()

    def state(self) -> dict[str, Array]:
        """Model state, that of training, and that of early stopping."""
        return {**super().state(), **self.run.stopping.state()}

    def load(self, state: Mapping[str, Array]) -> None:
        """Take up :meth:`state`."""
        super().load(state)
        self.run.stopping.load(state)
