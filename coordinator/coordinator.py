"""The coordinator: aligns rows, drives training, relays disclosures, releases scores.

It holds no data. It adds the passive parties' partial logits; in training the active party adds its own
(``docs/adr``), so the coordinator never sees a whole logit of a training row.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from vflens.config import CoordinatorConfig
from vflens.config.compatibility import check_fed
from vflens.coordinator.predictions import Predictions
from vflens.coordinator.progress import Progress
from vflens.coordinator.returned import returned
from vflens.coordinator.training import TrainingLoop, restored
from vflens.errors import ConfigError, ProtocolError, StateError, StorageError, VflensError
from vflens.member.event_loop import run_to_end
from vflens.member.member import Member
from vflens.member.recovery import check_logged
from vflens.member.stage import Stage
from vflens.models.softmax_regression import batches
from vflens.protocol.acts import (
    Begin,
    Deliver,
    Describe,
    Disclose,
    Done,
    Epoch,
    Finished,
    Identify,
    Order,
    Predict,
    Prepare,
    Salt,
    Stop,
    Train,
    Trained,
)
from vflens.protocol.alignment import Alignment, align, check_salt
from vflens.protocol.checks import MODEL_VERSION
from vflens.protocol.federation import Federation
from vflens.protocol.link import Handlers, Link
from vflens.protocol.standing import Standing
from vflens.randomness import stream
from vflens.storage.heads import Heads, received_in
from vflens.types import Array, PartyInfo, Point, Released

_LOOK_SECONDS = 2.0  # between two looks at the parties while the active one trains
_STOP_SECONDS = 5.0  # who does not answer by then notices that the coordinator is gone
_NO_ROWS = np.zeros(0, np.int32)


class Coordinator(Member):
    """Drives one run over ``links``, one link to every data party by name."""

    config: CoordinatorConfig

    def __init__(
        self,
        config: CoordinatorConfig,
        links: Mapping[str, Link],
        progress: Progress,
        *,
        in_process: bool = False,
    ) -> None:
        super().__init__(
            config,
            links,
            learns_from=Point.GRADIENT,
            asked_for_rows=False,
            parameters=self.disclosed_parameters,
            in_process=in_process,
        )
        self.predictions = Predictions(self)
        self.finished, self._unfinished = threading.Event(), {p.name for p in config.peers}
        self._progress = progress
        self._federation: Federation | None = None
        self._gradient: Released | None = None  # that training goes on after
        self._over_after: int | None = None  # the step after which early stopping ended training
        self._agreed = False  # whether all data parties have their rows

    def handlers(self) -> Handlers:
        """See :meth:`vflens.protocol.link.Party.handlers`."""
        return {Epoch: self.epoch, Predict: self.predict, Finished: self.finish}

    @property
    def federation(self) -> Federation | None:
        """See :meth:`vflens.member.member.Member.federation`."""
        return self._federation

    @property
    def aligned(self) -> Federation:
        """The run's members and rows.

        Raises:
            StateError: before :meth:`prepare`.
        """
        if self._federation is None:
            raise StateError(
                f"run {self.config.run!r} is not aligned yet: wait until the coordinator has prepared it"
            )
        return self._federation

    def lead(self, check_alive: Callable[[], None] = lambda: None) -> None:
        """Lead a run from where it stands to where the active party predicts and attacks.

        ``check_alive`` is called now and then while the active party trains; it raises if a party has died.
        """
        if not self._agreed:
            self.prepare()
        if self.reached.stage is Stage.TRAINING:
            self.train(check_alive)
        if not self.reached.is_open:
            self.disclose()
        if not self.finished.is_set():
            self.open_predictions()

    def standing(self) -> Standing:
        """See :meth:`vflens.member.member.Member.standing`; before all have their rows nothing is agreed."""
        found = super().standing()
        return found if self._agreed else replace(found, federation=b"")

    def rejoin(self) -> dict[str, int]:
        """Wait for every data party, after one of them or this one was restarted; the restarts of each.

        Raises:
            UnavailableError, StateError: see :func:`vflens.coordinator.returned.returned`.
        """
        own, found = self.standing(), dict[str, int]()
        for name in sorted(self.links):
            is_active = self._agreed and name == self.aligned.active.name
            party = returned(self, name, own, is_active=is_active)
            self.fence.admit(name, party.incarnation)
            if is_active and party.stops and party.learned == own.learned:
                self._over_after = own.learned
            if party.stage == Stage.FINISHED and self.reached.is_open:
                self._note_finished(name)
            found[name] = party.incarnation
        return found

    def prepare(self) -> None:
        """Describe, align, split, and tell every data party its rows."""
        parties, (alignment, salts) = self._describe(), self._align()
        rows = len(alignment.train) + len(alignment.predict)
        config = self.config
        rows_of = (rows, alignment.train, alignment.predict)
        federation = self._federation = Federation(
            config.run, parties, *rows_of, config.training, config.lab, config.model, config.aggregator
        )
        federation.combined_width  # noqa: B018 - a model that does not fit is refused before anybody prepares
        # Side by side: whoever has part of a network imports torch now, which takes seconds.
        orders = alignment.orders.items()
        replies = [self.links[name].submit(Prepare(federation, order, salts)) for name, order in orders]
        for reply in replies:
            reply.result()
        self.save_summary()
        self.reached.save()
        self._agreed = True
        self.log.info("aligned", rows=rows, train=len(alignment.train), predict=len(alignment.predict))

    def train(self, check_alive: Callable[[], None] = lambda: None) -> None:
        """All epochs, or until the active party's early stopping; then the last gradient is delivered."""
        started = time.perf_counter()
        trained = self._trained_by_active(check_alive) if self.aligned.direct else self._trained_here()
        self._record_speed(trained.steps, trained.steps - trained.first, time.perf_counter() - started)
        self.keep_figures()

    def _trained_here(self) -> Trained:
        logs = (self.gate, self.transcript, self.recovery)
        loop = TrainingLoop(
            self.aligned, self.secret, *logs, self._report, partial(setattr, self, "_gradient")
        )
        first, over = self.recovery.learned + 1, self._over_after == self.recovery.learned
        training = loop.run(self._passive(), self._active(), first, self._gradient, over=over)
        return Trained(first, run_to_end(training))

    def _trained_by_active(self, check_alive: Callable[[], None]) -> Trained:
        """The active party bounds every step; whether it lives is seen every few seconds."""
        reply = self._active().submit(Train(self.config.run))
        while True:
            try:
                return reply.result(_LOOK_SECONDS)
            except TimeoutError:
                check_alive()

    def epoch(self, act: Epoch) -> Order:
        """The order of the rows in the next epoch, where the active party trains without the coordinator."""
        self.check_run(act.run)
        epochs = self.aligned.training.epochs
        if not 0 <= act.number <= epochs:
            raise ProtocolError(f"epoch {act.number} of a training of {epochs}: ask for those from 0")
        if act.number:
            self._report("training", act.number, act.number if act.stop else epochs)
        if act.stop or act.number == epochs:
            return Order(_NO_ROWS)
        drawn = stream(self.secret, "batches", act.number)
        return Order(np.concatenate(batches(self.aligned.train, self.aligned.training.batch_size, drawn)))

    def disclose(self) -> None:
        """Fetch what each passive party grants and relay it, sealed, to whom it is granted."""
        self.advance(Stage.DISCLOSED)
        active = self._active()
        for passive in self._passive():
            for released in passive.call(Disclose(self.config.run, MODEL_VERSION, self.name)):
                self.transcript.record(released)
            for released in passive.call(Disclose(self.config.run, MODEL_VERSION, active.name)):
                active.call(Deliver(released))
            for released in active.call(Disclose(self.config.run, MODEL_VERSION, passive.name)):
                passive.call(Deliver(released))
        if any(d.needs_parameters for d in self.chain.defenses):
            self.disclosed_parameters()  # refuse now what would fail at the first prediction

    def disclosed_parameters(self) -> Mapping[str, Array]:
        """ "weight" (k, d) of all passive columns in party-name order, as disclosed to this party.

        Raises:
            ConfigError: a passive party did not disclose its parameters to it.
            KnowledgeError: a defence of that party withheld them.
        """
        latest = {r.sender: r for r in self.transcript.select(Point.PARAMETERS)}
        check_fed(self.name, self.chain.defenses, {p.name: p.name in latest for p in self.aligned.passive})
        return {"weight": np.hstack([latest[p.name].tensor("weight") for p in self.aligned.passive])}

    def open_predictions(self) -> None:
        """Tell the data parties that the active one may predict and all may attack; first those whom it asks
        itself.
        """
        self.advance(Stage.OPEN)
        self.gate.make_room(self.aligned.rows, len(self.aligned.predict))
        for link in (*self._passive(), self._active()):
            link.call(Begin(self.config.run, MODEL_VERSION))

    def predict(self, act: Predict) -> Released:
        """See :meth:`vflens.coordinator.predictions.Predictions.release`."""
        self.check_open()
        return self.predictions.release(act, self.aligned)

    def finish(self, act: Finished) -> Done:
        """A data party has attacked, the active one has predicted too; the run is over when all have."""
        self.check_open()
        self.check_run(act.run)
        self.keep_heads({act.sender: act.heads})
        self._note_finished(act.sender)
        return Done()

    def _note_finished(self, party: str) -> None:
        with self.lock:  # the last two may come at a time: figures are recorded once
            self._unfinished.discard(party)
            if not self._unfinished and not self.finished.is_set():
                self.predictions.record_metrics(self.aligned)
                self.advance(Stage.FINISHED)
                self.finished.set()

    def _all_heads(self) -> Mapping[str, Heads]:
        """Its own heads and those that it received; none where a log fails: the parties must stop all the
        same.
        """
        try:
            return {**received_in(self.folder), self.name: self.heads()}
        except StorageError as error:
            self.log.warning("no heads", reason=str(error))
            return {}

    def stop(self, failure: str = "") -> None:
        """Tell every data party that the run is over, and why if it failed; who is gone already is passed
        over.
        """
        act = Stop(self.config.run, failure, self._all_heads())
        replies = {name: self.links[name].submit(act) for name in sorted(self.links)}
        for name, reply in replies.items():
            try:
                reply.result(_STOP_SECONDS)
            except VflensError as error:
                self.log.warning("not told to stop", peer=name, reason=str(error))

    def take_up(self, federation: Federation) -> None:
        """Training goes on after the last gradient received: who answered that step before does so again."""
        self._federation, self._agreed = federation, True

    def resume(self) -> None:
        """See :meth:`vflens.member.member.Member.resume`; what predictions cost is measured again."""
        super().resume()
        self.predictions.resume(self.aligned)
        if self.reached.stage is Stage.FINISHED:
            self.finished.set()

    def load(self, state: Mapping[str, Array]) -> None:
        """Take up the gradient that a checkpoint holds."""
        self._gradient = restored(state, self.aligned)
        check_logged(self._gradient, self.aligned, self.aligned.combined_width)

    def learned_width(self, sender: str) -> int:
        """See :meth:`vflens.member.member.Member.learned_width`."""
        return self.aligned.combined_width

    def relearn(self, logged: Sequence[Released]) -> None:
        """See :meth:`vflens.member.member.Member.relearn`."""
        (self._gradient,) = logged

    def flush(self) -> None:
        """See :meth:`vflens.member.member.Member.flush`; reports find the run while it goes on."""
        super().flush()
        self.save_summary()

    def record_totals(self) -> None:
        """What arrived."""
        self.metrics.add("bytes_received", self.transcript.nbytes)

    def _passive(self) -> list[Link]:
        """The links to the passive parties, in name order."""
        return self.links.to(self.aligned.passive)

    def _active(self) -> Link:
        """The link to the active party."""
        return self.links[self.aligned.active.name]

    def _describe(self) -> tuple[PartyInfo, ...]:
        parties = tuple(self.links[name].call(Describe(self.config.run)) for name in sorted(self.links))
        roles = {p.name: p.role for p in parties}
        for peer in self.config.peers:
            if roles.get(peer.name) != peer.role:
                raise ConfigError(
                    f"peer {peer.name!r} at {peer.address} answers as another party or role: correct its "
                    "address or role"
                )
        return parties

    def _align(self) -> tuple[Alignment, bytes]:
        """The common rows, and the salts of the digests."""
        links = [(name, self.links[name]) for name in sorted(self.links)]
        salts = b"".join(check_salt(name, link.call(Salt(self.config.run)).salt) for name, link in links)
        identities = {name: link.call(Identify(self.config.run, salts)) for name, link in links}
        return align(identities, self.config.predict_share, stream(self.secret, "split")), salts

    def _report(self, stage: str, done: int, total: int) -> None:
        self.log.info("progress", stage=stage, done=done, total=total)
        self._progress(stage, done, total)

    def _record_speed(self, steps: int, taken: int, seconds: float) -> None:
        """``taken`` of the ``steps`` since the last restart took ``seconds``."""
        self.metrics.add("steps", steps)
        self.metrics.add("train_seconds", seconds)
        self.metrics.add("steps_per_second", taken / seconds)
