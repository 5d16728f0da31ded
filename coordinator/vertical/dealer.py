"""The dealer of protected training: it gives the computing parties shares of masks, and gets nothing."""

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache

import numpy as np

from vflens.coordinator.vertical.coordinator import Coordinator
from vflens.errors import LogitRangeError, ProtocolError, StateError
from vflens.numerics.shares.sigmoid import LARGEST_LOGIT
from vflens.numerics.shares.step import dealt
from vflens.protocol.link import Handlers
from vflens.protocol.mask_acts import Deal, MaskShares, Seed
from vflens.protocol.vertical.shares import SharedRun, checked_seed, features_mask, sent, step_masks
from vflens.storage.metrics import Name
from vflens.types import Array, Point

_MASKS, _NO_ROWS = "masks", np.zeros(0, np.int32)


class Dealer:
    """Deals for ``run``.

    All that it deals follows from the ``seeds`` of the two computing parties, by name, and from the ``order``
    of the training rows in each epoch: a step has the same masks after a restart.
    """

    def __init__(self, run: SharedRun, seeds: Mapping[str, bytes], order: Callable[[int], Array]) -> None:
        self._run, self._order = run, lru_cache(maxsize=2)(order)
        self._seeds = [seeds[name] for name in run.computing]

    @cached_property
    def mask(self) -> Array:
        """The mask of the features of all training rows, uint64 (n, d)."""
        own, other = (features_mask(seed, self._run) for seed in self._seeds)
        return own + other

    def deal(self, step: int) -> Array:
        """The active party's shares of what follows from the masks of some steps, ``step`` among them.

        Raises:
            ProtocolError: the run has no such step.
        """
        steps = self._run.dealt_steps(step)
        if not 0 <= step < self._run.federation.steps:
            raise ProtocolError(
                f"masks of step {step} of a training of {self._run.federation.steps}: ask for those from 0"
            )
        return np.concatenate([self._of(number) for number in steps])

    def _of(self, step: int) -> Array:
        federation = self._run.federation
        size, epoch = federation.training.batch_size, step // federation.epoch_steps
        start = (step % federation.epoch_steps) * size
        rows = self._order(epoch)[start : start + size]
        drawn, derived = self._run.mask_sizes(len(rows))
        own, other = (
            step_masks(seed, step, count)
            for seed, count in zip(self._seeds, (drawn, drawn + derived), strict=True)
        )
        mask = self.mask.take(self._run.places[rows], axis=0)
        return dealt(own, other, mask, self._run.logits, self._run.scale)


class DealingCoordinator(Coordinator):
    """The coordinator of protected training: it deals."""

    _dealer: Dealer | None = None

    def handlers(self) -> Handlers:
        return {**super().handlers(), Deal: self.deal}

    def train(self, check_alive: Callable[[], None] = lambda: None) -> None:
        """See :meth:`Coordinator.train`; first the computing parties say from which seeds they draw."""
        run, asked = SharedRun(self.aligned), Seed(self.config.run)
        seeds = {name: checked_seed(name, self.links[name].call(asked).seed) for name in run.computing}
        self._dealer = Dealer(run, seeds, self.order)
        super().train(check_alive)

    def all_finished(self) -> None:
        """See :meth:`Coordinator.all_finished`; adds how large logits became."""
        super().all_finished()
        self.metrics.add(Name.LARGEST_LOGIT, self.predictions.largest_logit)

    def check_model(self) -> None:
        """See :meth:`vflens.coordinator.leader.Leader.check_model`.

        Of training rows nobody knows a logit: those that are predicted stand for them. Linear regression has
        a bound for every row, and no such range.
        """
        largest = self.metrics.last(Name.LARGEST_LOGIT) or 0.0
        if largest > LARGEST_LOGIT and SharedRun(self.aligned).response.bounded:
            raise LogitRangeError(
                f"a prediction row has a logit of {largest:.1f}: the sigmoid of protected training fits up "
                f"to {LARGEST_LOGIT:g} only, so that the model may be wrong; take a larger l2, a smaller "
                "learning_rate or fewer epochs"
            )

    def deal(self, act: Deal) -> MaskShares:
        """See :meth:`Dealer.deal`; it leaves through the gate, which refuses other masks for a step that was
        dealt.
        """
        self.check_run(act.run)
        if self._dealer is None:
            raise StateError(f"run {act.run!r} is not trained yet: wait until its coordinator asks to train")
        numbers, exchange = self._dealer.deal(act.step), SharedRun(self.aligned).dealt_exchange(act.step)
        with self.lock:
            released = self.gate.release(Point.SHARES, exchange, _NO_ROWS, sent({_MASKS: numbers}))
        return MaskShares(released.tensor(_MASKS).view(np.uint64))
