"""The coordinator: aligns rows, drives training, relays disclosures, releases scores.

It holds no data. It adds the passive parties' partial logits; in training the active party adds its own
(``docs/adr``), so the coordinator never sees a whole logit of a training row.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np

from vflens.config import CoordinatorConfig
from vflens.config.compatibility import check_fed
from vflens.coordinator.leader import Leader
from vflens.coordinator.vertical.aligning import collect
from vflens.coordinator.vertical.answers import PredictionAnswers
from vflens.coordinator.vertical.training import TrainingLoop, restored
from vflens.errors import ProtocolError, StateError
from vflens.member.event_loop import run_to_end
from vflens.member.patience import Idle
from vflens.member.recovery import check_logged
from vflens.member.stage import CLOCK, Stage
from vflens.member.start_nonce import run_nonce
from vflens.models.softmax_regression import batches
from vflens.names import repeated
from vflens.protocol.acts import (
    Begin,
    Deliver,
    Disclose,
    Epoch,
    Finished,
    Order,
    Predict,
    Prepare,
    Train,
    Trained,
)
from vflens.protocol.checks import MODEL_VERSION
from vflens.protocol.link import Handlers, Link
from vflens.protocol.standing import Standing
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.protocol.vertical.alignment import align
from vflens.protocol.vertical.disclosed import check_disclosed
from vflens.randomness import stream
from vflens.storage.metrics import Name
from vflens.types import Array, Point, Progress, Released
from vflens.words import counted

_LOOK_SECONDS = 2.0  # between two looks at the parties while the active one trains
_NO_ROWS = np.zeros(0, np.int32)


class Coordinator(Leader):
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
            progress,
            learns_from=Point.GRADIENT,
            parameters=self.disclosed_parameters,
            in_process=in_process,
        )
        self.predictions = PredictionAnswers(self)
        self._federation: VerticalAgreement | None = None
        self._gradient: Released | None = None  # that training goes on after
        self._asked_epoch = 0  # the last one whose order of rows was asked for
        self._over_after: int | None = None  # the step after which early stopping ended training

    def handlers(self) -> Handlers:
        return {Epoch: self.epoch, Predict: self.predict, Finished: self.finish}

    @property
    def federation(self) -> VerticalAgreement | None:
        return self._federation

    @property
    def outcome(self) -> str:
        """Steps, seconds and released rows."""
        figure = self.metrics.last
        return (
            f"the run is complete: {counted(figure(Name.STEPS) or 0, 'training step', '.0f')} in "
            f"{figure(Name.TRAIN_SECONDS) or 0:.1f} s, scores of "
            f"{counted(figure(Name.PREDICT_ROWS) or 0, 'row', '.0f')} released; the folder of each target "
            f"has what leaked ({', '.join(p.name for p in self.aligned.passive)})"
        )

    @property
    def aligned(self) -> VerticalAgreement:
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
        if not self._agreed:
            self.prepare()
        if self.reached.stage is Stage.TRAINING:
            self.train(check_alive)
        if not self.reached.is_open:
            self.disclose()
        if not self.finished.is_set():
            self.open_predictions()

    @property
    def achieved(self) -> tuple[object, ...]:
        """See :meth:`Leader.achieved`; where the active party leads training, epochs show how far it is."""
        return *super().achieved, self._asked_epoch

    def learned_by(self, party: str, own: int) -> int:
        """See :meth:`Leader.learned_by`; a passive party gets a gradient one step later."""
        return own if self._is_active(party) else own - 1

    def came_back(self, name: str, own: Standing, party: Standing) -> None:
        """See :meth:`Leader.came_back`; notes where early stopping has ended training."""
        if self._is_active(name) and party.stops and party.learned == own.learned:
            self._over_after = own.learned

    def _is_active(self, party: str) -> bool:
        return self._agreed and party == self.aligned.active.name

    def prepare(self) -> None:
        """Describe, align, split, and tell every data party its rows."""
        parties = self._describe()
        lists = collect(self.links, self.config.run, self.config.limits.max_ids, self._report)
        alignment = align(lists.compared, self.config.predict_share, stream(self.secret, "split"), lists.mode)
        rows = len(alignment.train) + len(alignment.predict)
        config = self.config
        federation = self._federation = VerticalAgreement(
            run=config.run,
            parties=parties,
            rows=rows,
            train=alignment.train,
            predict=alignment.predict,
            training=config.training,
            lab=config.lab,
            model=config.model,
            aggregator=config.aggregator,
            nonce=run_nonce(self.folder),
        )
        federation.combined_width  # noqa: B018 - a model that does not fit is refused before anybody prepares
        self.predicts = federation.predicted[0]
        # Side by side: whoever has part of a network imports torch now, which takes seconds.
        orders = alignment.orders.items()
        replies = [self.links[name].submit(Prepare(federation, order, lists.salts)) for name, order in orders]
        for reply in replies:
            reply.result()
        self.save_summary()
        self.reached.save()
        self._agreed = True
        counts = {"rows": rows, "train": len(alignment.train), "predict": len(alignment.predict)}
        self.log.info("aligned", **counts, mode=lists.mode)

    def train(self, check_alive: Callable[[], None] = lambda: None) -> None:
        """All epochs, or until the active party's early stopping; then the last gradient is delivered."""
        clock = CLOCK.get()
        started = clock()
        trained = self._trained_by_active(check_alive) if self.aligned.led_by_active else self._trained_here()
        self._record_speed(trained.steps, trained.steps - trained.first, clock() - started)
        self.keep_metrics()

    def _trained_here(self) -> Trained:
        loop = TrainingLoop(
            federation=self.aligned,
            secret=self.secret,
            gate=self.gate,
            transcript=self.transcript,
            recovery=self.recovery,
            report=self._report,
            keep=partial(setattr, self, "_gradient"),
        )
        first, over = self.recovery.learned + 1, self._over_after == self.recovery.learned
        training = loop.run(self._passive(), self._active(), first, self._gradient, over=over)
        return Trained(first, run_to_end(training))

    def _trained_by_active(self, check_alive: Callable[[], None]) -> Trained:
        """The active party bounds every step; whether it lives is seen every few seconds."""
        reply, idle = self._active().submit(Train(self.config.run)), Idle(self.config.limits.idle_seconds)
        while True:
            try:
                return self._checked(reply.result(_LOOK_SECONDS))
            except TimeoutError:
                check_alive()
                idle.check(self._asked_epoch, f"{self._active().name!r} lives and trained no epoch")

    def _checked(self, trained: Trained) -> Trained:
        """What the active party says of a training, if it can be that of this run."""
        whole, steps = self.aligned.steps, trained.steps
        early = self.aligned.training.patience > 0 and steps % self.aligned.epoch_steps == 0
        if not 0 <= trained.first <= steps <= whole or (steps < whole and not early):
            raise ProtocolError(
                f"{self.aligned.active.name!r} trained from step {trained.first} to {steps}: the run has "
                f"{whole} of them"
            )
        return trained

    def epoch(self, act: Epoch) -> Order:
        """The order of the rows in the next epoch, where the active party trains without the coordinator."""
        self.check_run(act.run)
        epochs = self.aligned.training.epochs
        if not 0 <= act.number <= epochs:
            raise ProtocolError(f"epoch {act.number} of a training of {epochs}: ask for those from 0")
        self._asked_epoch = max(self._asked_epoch, act.number)
        if act.number:
            self._report("training", act.number, act.number if act.stop else epochs)
        if act.stop or act.number == epochs:
            return Order(_NO_ROWS)
        return Order(self.order(act.number))

    def order(self, epoch: int) -> Array:
        """The training rows in the order of ``epoch``."""
        drawn = stream(self.secret, "batches", epoch)
        return np.concatenate(batches(self.aligned.train, self.aligned.training.batch_size, drawn))

    def disclose(self) -> None:
        """Fetch what each passive party grants and relay it, sealed, to whom it is granted."""
        self.advance(Stage.DISCLOSED)
        active = self._active()
        for passive in self._passive():
            for released in self._disclosed(passive, self.name):
                self.transcript.record(released)
            for released in self._disclosed(passive, active.name):
                active.call(Deliver(released))
            for released in self._disclosed(active, passive.name):
                passive.call(Deliver(released))
        if any(d.needs_parameters for d in self.chain.defenses):
            self.disclosed_parameters()  # refuse now what would fail at the first prediction

    def _disclosed(self, owner: Link, to: str) -> tuple[Released, ...]:
        """What ``owner`` discloses to the party ``to``; all of it is checked before any is recorded."""
        found = owner.call(Disclose(self.config.run, MODEL_VERSION, to))
        for released in found:
            check_disclosed(released, owner.name, self.aligned)
        if twice := repeated([str(released.point) for released in found]):
            raise ProtocolError(f"{owner.name!r} discloses {twice} to {to!r} twice: each is due once")
        return found

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
        """See :meth:`vflens.coordinator.vertical.answers.PredictionAnswers.release`."""
        self.check_open()
        return self.predictions.release(act, self.aligned)

    def all_finished(self) -> None:
        """Record what predictions cost."""
        self.predictions.record_metrics(self.aligned)

    def take_up(self) -> None:
        """Training goes on after the last gradient received: who answered that step before does so again."""
        federation = self._federation = VerticalAgreement.load(self.folder)
        self.predicts, self._agreed = federation.predicted[0], True

    def resume(self) -> None:
        """See :meth:`vflens.member.member.Member.resume`; what predictions cost is measured again."""
        super().resume()
        self.predictions.resume(self.aligned)

    def step_messages(self, step: int) -> int:
        """See :meth:`vflens.member.member.Member.step_messages`; none after the last step: an earlier version
        recorded those that a party forged.
        """
        return super().step_messages(step) if step < self.aligned.steps else 0

    def load(self, state: Mapping[str, Array]) -> None:
        """Take up the gradient that a checkpoint holds."""
        self._gradient = restored(state, self.aligned)
        self.check_logged(self._gradient)

    def check_logged(self, released: Released) -> None:
        check_logged(released, self.aligned, self.aligned.combined_width)

    def relearn(self, logged: Sequence[Released]) -> None:
        (self._gradient,) = logged

    def _passive(self) -> list[Link]:
        """The links to the passive parties, in name order."""
        return self.links.to(self.aligned.passive)

    def _active(self) -> Link:
        """The link to the active party."""
        return self.links[self.aligned.active.name]
