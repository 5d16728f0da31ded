"""The active party: labels, its own columns, the loss, predictions; the adversary's plug-ins sit here."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from vflens.clients.data_party import DataParty
from vflens.clients.direct_training import DirectTraining
from vflens.clients.disclosed import check_disclosed
from vflens.clients.operator import answers
from vflens.clients.utility import record_utility
from vflens.config import ActiveConfig
from vflens.config.compatibility import check_grants
from vflens.errors import ConfigError, ProtocolError, StateError
from vflens.member.event_loop import run_to_end
from vflens.member.released_rows import RowLog
from vflens.member.stage import Stage
from vflens.models.part import ActivePart, Learn, Site
from vflens.models.softmax_regression import one_hot
from vflens.protocol.acts import (
    Answers,
    Disclose,
    Finished,
    Predict,
    Query,
    Step,
    StepReply,
    Train,
    Trained,
)
from vflens.protocol.checks import MODEL_VERSION, check_origin, check_version, finite, part
from vflens.protocol.embeddings import combined, predicted_embeddings
from vflens.protocol.federation import Federation
from vflens.protocol.link import Handlers, Link
from vflens.randomness import stream
from vflens.score.labels import LabelScoring
from vflens.score.service import milestones
from vflens.storage.files import save_arrays
from vflens.types import Array, Exchange, Phase, Point, Released


class ActiveParty(DataParty[ActivePart]):
    """Learns from summed logits, gives gradients, asks for predictions, attacks.

    Args:
        config: its configuration.
        links: to the coordinator and the passive parties by name; none for a party that only scores.
    """

    config: ActiveConfig
    labels: Array
    prediction_rows: Array
    prediction_ids: Array

    def __init__(self, config: ActiveConfig, links: Mapping[str, Link], *, in_process: bool = False) -> None:
        super().__init__(config, links, learns_from=Point.EMBEDDING, in_process=in_process)
        if self.table.labels is None:
            raise ConfigError(
                f"data.label_column {config.data.label_column!r} gave no labels: name the label column"
            )
        self._file_labels = self.table.labels
        self._best_loss, self._epochs_without = np.inf, 0
        self._losses: list[float] = []
        self._requests = 0
        self._scores = RowLog()
        self._training = threading.Lock()  # held while this party drives a training

    def handlers(self) -> Handlers:
        """See :meth:`vflens.protocol.link.Party.handlers`."""
        return {
            **super().handlers(),
            Train: self.train,
            Query: self.query,
        }

    def aligned_labels(self, order: Array) -> Array:
        """The labels int64 (N,) in aligned order."""
        aligned: Array = self._file_labels[order]
        return aligned

    def begin_run(self, federation: Federation, order: Array) -> None:
        """Also draws the soft labels (N, k) once per run, after the label defences."""
        if federation.n_classes != len(self.table.class_names):
            raise ProtocolError(
                f"a federation of {federation.n_classes} classes: {self.name!r} has "
                f"{len(self.table.class_names)}"
            )
        check_grants(self.config, len(federation.train))
        super().begin_run(federation, order)
        self.labels = self.aligned_labels(order)
        self.prediction_rows = federation.predict
        self.prediction_ids = self.table.ids[order[federation.predict]]
        everything = np.arange(federation.rows, dtype=np.int32)
        exchange = Exchange(federation.run, Phase.TRAIN, 0, 0)
        self.soft_labels: Array = self.chain.fold(
            "on_labels", one_hot(self.labels, federation.n_classes), exchange, everything
        )
        # What a defence of gradients knows of a row's label leaves with its noise.
        self.owner = replace(self.owner, labels=self.soft_labels.argmax(axis=1))
        self.scoring = LabelScoring(
            labels=self.labels,
            n_classes=federation.n_classes,
            training=federation.train,
            party=self.name,
            predicting=len(federation.predict),
            lab=self.config.lab,
            metrics=self.metrics,
            log=self.log,
        )

    def step(self, act: Step) -> StepReply:
        """Release the gradient of the batch whose summed passive logits came in; learn once it has left."""
        with self.lock:
            answered = self.answered(Point.GRADIENT, act.exchange)
            if answered is not None:
                return StepReply(answered, self.stops_after(act.exchange.step))
            self.reached.check_training(act.exchange.step)
            if not self.recovery.is_due(act.exchange):
                raise StateError(
                    f"step {act.exchange.step} was learned from before and its answer is no longer kept: ask "
                    "for the next"
                )
            received = self._checked(act)
            self.spending.check(act.exchange)
            self.gate.take(act.exchange, received.rows)  # what it refuses is never learned, so not logged
            self.recovery.append(received)  # first: whoever has the gradient does not give it again
            released, learn = self._release_gradient([received])
            self.defer(lambda: self._learn_and_remember(learn, received))
            return StepReply(released, self.stops_after(act.exchange.step))

    def train(self, act: Train) -> Trained:
        """Train with the passive parties, whose embeddings come straight to this party."""
        self.check_run(act.run)
        if not self._training.acquire(blocking=False):
            raise StateError(f"run {act.run!r} is being trained: wait for the answer to the first request")
        try:
            self.reached.check_training(self.recovery.learned + 1)
            self.settle()
            return run_to_end(DirectTraining(self, self.links[self.coordinator], self._passive()).run())
        finally:
            self._training.release()

    def take(self, embeddings: Sequence[Released]) -> None:
        """Release the gradient in all passive parties' ``embeddings`` of one step, learn when it has left.

        They are logged first: once the parties have that gradient they cannot give them again. With staleness
        the gradient too is computed later, while the parties compute their next embeddings.
        """
        with self.lock:
            self.spending.check(embeddings[0].exchange)
            self.gate.take(embeddings[0].exchange, embeddings[0].rows)  # as in a step
            for embedding in embeddings:
                self.recovery.append(embedding)
            if self.run.federation.training.staleness:
                self.defer(lambda: self._learned(self._release_gradient(embeddings)[1], embeddings))
            else:
                _, learn = self._release_gradient(embeddings)
                self.defer(lambda: self._learned(learn, embeddings))

    def check_disclosed(self, released: Released) -> None:
        """See :meth:`DataParty.check_disclosed`."""
        if released.sender not in {p.name for p in self.run.federation.passive}:
            raise ProtocolError(f"a disclosure of {released.sender!r}: only a passive party discloses")
        check_disclosed(released, self.run.federation)

    def disclose(self, act: Disclose) -> tuple[Released, ...]:
        """The labels that the configuration grants to ``act.to``, through the gate."""
        self.check_run(act.run)
        check_version(act.version)
        with self.lock:
            self.settle()
            self.reached.advance(Stage.DISCLOSED)
            return tuple(self._labels(d.rows, act.version) for d in self.config.disclose if d.to == act.to)

    def _labels(self, count: int, version: int) -> Released:
        """``count`` training labels, those of the same rows at every asking."""
        rows = self._labelled_rows(count)
        exchange = Exchange(self.config.run, Phase.DISCLOSE, version, count)
        self.log.info("disclosed", what="labels", rows=len(rows))
        return self.gate.release(Point.AUXILIARY, exchange, rows, {"labels": self.labels[rows]})

    def _labelled_rows(self, count: int) -> Array:
        return np.sort(stream(self.secret, "known labels").permutation(self.run.federation.train)[:count])

    def granted_rows(self, to: str) -> Array:
        """See :meth:`DataParty.granted_rows`."""
        return self._labelled_rows(max((d.rows for d in self.config.disclose if d.to == to), default=0))

    def _scored_rows(self, scored_set: str, sender: str) -> Array:
        """As :meth:`DataParty._scored_rows`; labels of prediction rows can be guessed before their scores are
        asked for: all are scored.
        """
        if scored_set == "predict":
            return self.run.federation.predict
        return super()._scored_rows(scored_set, sender)

    def training_over(self) -> None:
        """Keep what attacks on the recorded transcript may use besides it."""
        save_arrays(self.folder / "own.npz", self.adversary.own())

    def query(self, act: Query) -> Answers:
        """Answer an operator."""
        self.check_open()
        return answers(self, act.rows)

    def ask(self, rows: Array) -> Released:
        """The released scores of prediction ``rows`` int32 (n,), recorded on arrival."""
        self.check_open()
        with self.lock:
            self.settle()
            run, rows = self.run, self.run.federation.checked_rows(rows, Phase.PREDICT)
            exchange = Exchange(self.config.run, Phase.PREDICT, MODEL_VERSION, self._requests)
            self._requests += 1
            if run.federation.direct:
                fresh = self.gate.unreleased(Point.SCORES, exchange, rows)
            else:
                self.spending.check(exchange)
                own = self.gate.release_rows(
                    Point.EMBEDDING,
                    exchange,
                    rows,
                    lambda fresh: run.model.forward(run.inputs.take(fresh, axis=0), exchange),
                )
        if run.federation.direct:
            return self._scored_here(exchange, rows, fresh)
        released = self.links[self.coordinator].call(Predict(own))  # meanwhile another may be prepared
        with self.lock:
            log_c = self._checked_scores(released, rows)
            fresh = ~self._scores.has(rows)
            if fresh.any():  # what was received before says nothing new
                self.transcript.record(part(released, rows[fresh]))
                self._scores.add(rows[fresh], log_c[fresh], exchange)
            if run.federation.scored_by_coordinator:
                return released
            return self.gate.release_rows(Point.SCORES, exchange, rows, self._scores.values)

    def _passive(self) -> list[Link]:
        """The links to the passive parties, in name order."""
        return self.links.to(self.run.federation.passive)

    def _scored_here(self, exchange: Exchange, rows: Array, fresh: Array) -> Released:
        """Scores of ``rows``; the embeddings of the ``fresh`` ones come straight from the passive parties."""
        asked = self._passive() if len(fresh) else ()
        embeddings = predicted_embeddings(self.run.federation, asked, exchange, fresh)  # not under the lock

        def compute(own: Array) -> Array:  # all fresh rows, where another request did not overtake
            received = [part(embedding, own) for embedding in embeddings]
            for embedding in received:
                self.transcript.record(embedding)
            log_c = self._log_scores(combined(received, self.run.federation), own, exchange)
            self._scores.add(own, log_c, exchange)
            return log_c

        with self.lock:
            return self.gate.release_rows(Point.SCORES, exchange, rows, compute)

    def new_part(self, federation: Federation, site: Site) -> ActivePart:
        """See :meth:`DataParty.new_part`."""
        return federation.model.active_part(site)

    def _checked_scores(self, released: Released, rows: Array) -> Array:
        """The scores (n, k) that the coordinator released, or those that this part gives its embeddings."""
        federation = self.run.federation
        point, width = federation.predicted
        check_origin(released, self.coordinator, point)
        values = released.tensor(str(point))
        if released.rows.tobytes() != rows.tobytes() or values.shape != (len(rows), width):
            raise ProtocolError(
                f"the coordinator answered with {point} of shape {values.shape}, or of other rows: {point} "
                f"of the {len(rows)} rows asked are due"
            )
        if federation.scored_by_coordinator:
            return values
        finite(released, "embedding", values.shape, federation.dtype)
        return self._log_scores(values, rows, released.exchange)

    def _log_scores(self, embeddings: Array, rows: Array, exchange: Exchange) -> Array:
        """What this part makes of the combined ``embeddings`` of ``rows``."""
        return self.run.model.log_scores(embeddings, self.run.inputs.take(rows, axis=0), exchange)

    def received_scores(self, rows: Array) -> Array:
        """Log-probabilities (n, k) of ``rows`` asked before, after this party's own defences."""
        with self.lock:
            exchange = Exchange(self.config.run, Phase.PREDICT, MODEL_VERSION, self._requests)
            log_c: Array = self.chain.fold("on_outputs", self._scores.values(rows), exchange, rows)
            return log_c

    def predict_and_attack(self) -> None:
        """Ask for all prediction rows, attack at every milestone, then tell the coordinator."""
        federation = self.run.federation
        rows = federation.predict
        done, point = 0, Point.EMBEDDING if federation.scored_by_coordinator else Point.SCORES
        for milestone in milestones(len(rows)):
            while done < milestone:
                end = min(done + self.config.predict_batch, milestone)
                self.ask(rows[done:end])
                done = end
            self.log.info("progress", stage="predicting", done=done, total=len(rows))
            self.adversary.attack(
                self.gate.released_rows(point, MODEL_VERSION)[:milestone], final=milestone == len(rows)
            )
        record_utility(self, self.labels, self.received_scores(rows))
        self.metrics.save()
        self.links[self.coordinator].call(Finished(self.config.run, self.name))

    @property
    def step_messages(self) -> int:
        """See :meth:`DataParty.step_messages`."""
        federation = self.run.federation
        return len(federation.passive) if federation.direct else 1

    def learned_width(self, sender: str) -> int:
        """See :meth:`DataParty.learned_width`."""
        federation = self.run.federation
        if not federation.direct:
            return federation.combined_width
        if sender not in federation.widths:
            raise ProtocolError(f"an embedding of {sender!r}, which is no passive party")
        return federation.widths[sender]

    def relearn(self, logged: Sequence[Released]) -> None:
        """See :meth:`DataParty.relearn`."""
        self._release_gradient(logged)[1]()

    def resume(self) -> None:
        """See :meth:`DataParty.resume`; requests are numbered on."""
        super().resume()
        self._requests = self.gate.next_request()

    def state(self) -> dict[str, Array]:
        """Model state, the last answer, and what early stopping remembers."""
        stopping = np.array([self._best_loss, self._epochs_without])
        stopping_state = {"stopping": stopping, "losses": np.array(self._losses)}
        return {**super().state(), **self.gate.state(), **stopping_state}

    def load(self, state: Mapping[str, Array]) -> None:
        """Take up :meth:`state`."""
        super().load(state)
        best, without = state["stopping"].tolist()
        if not 0 <= without < np.inf:
            raise ProtocolError(f"the checkpoint counts {without} epochs without improvement: from 0 are due")
        self.gate.load(state, self.config.run)
        self._best_loss, self._epochs_without = best, int(without)
        self._losses = state["losses"].tolist()

    def _checked(self, act: Step) -> Released:
        rows = self.run.federation.checked_rows(act.rows, Phase.TRAIN)
        if (
            act.received is None
            or act.received.exchange != act.exchange
            or act.received.rows.tobytes() != rows.tobytes()
        ):
            raise ProtocolError(
                f"step {act.exchange.step} carries no summed embedding of its own exchange and rows"
            )
        check_origin(act.received, self.coordinator, Point.EMBEDDING)
        federation = self.run.federation
        finite(act.received, "embedding", (len(rows), federation.combined_width), federation.dtype)
        return act.received

    def _release_gradient(self, received: Sequence[Released]) -> tuple[Released, Learn]:
        """Release the gradient in the combined embeddings ``received``; return it and what learns from it."""
        model, (exchange, rows) = self.run.model, (received[0].exchange, received[0].rows)
        inputs, labels = self.run.inputs.take(rows, axis=0), self.soft_labels.take(rows, axis=0)
        loss, gradient, learn = model.loss_gradient(
            combined(received, self.run.federation), inputs, labels, exchange
        )
        released = self.gate.release(Point.GRADIENT, exchange, rows, {"gradient": gradient})
        self._note_loss(exchange, loss)
        return released, learn

    def _learn_and_remember(self, learn: Learn, received: Released) -> None:
        learn()
        self.recovery.mark_learned(received.exchange.step)
        self.remember(received)

    def _learned(self, learn: Learn, embeddings: Sequence[Released]) -> None:
        """The same for embeddings that were logged before."""
        learn()
        self.recovery.mark_learned(embeddings[0].exchange.step)
        for embedding in embeddings:
            self.transcript.record(embedding)
        self.recovery.checkpoint_if_due(self.state)

    def _note_loss(self, exchange: Exchange, loss: float) -> None:
        """Early stopping watches the epoch's mean training loss, which never leaves this party."""
        self._losses.append(loss)
        if not self.run.federation.ends_epoch(exchange.step):
            return
        mean = float(np.mean(self._losses))
        self._losses.clear()
        self.metrics.add("train_loss", mean, step=exchange.round)
        improved = mean < self._best_loss - self.run.federation.training.tolerance
        self._best_loss = mean if improved else self._best_loss
        self._epochs_without = 0 if improved else self._epochs_without + 1

    def stops_after(self, step: int) -> bool:
        """Whether training ends early with ``step``, the last one taken."""
        patience = self.run.federation.training.patience
        return 0 < patience <= self._epochs_without and self.run.federation.ends_epoch(step)
