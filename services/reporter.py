"""What the operator of a data party reads while the party waits."""

from __future__ import annotations

from collections.abc import Callable

from vflens.clients.data_party import DataParty
from vflens.config import Peer
from vflens.coordinator.progress import Progress
from vflens.types import Phase, Role

_USES = (Phase.TRAIN, Phase.PREDICT)


class Reporter:
    """Reports a data party's progress while it waits: its rows, then the epochs or rounds."""

    def __init__(self, party: DataParty, say: Callable[[str], None], progress: Progress) -> None:
        self._party, self._say, self._progress = party, say, progress
        self._aligned = False

    def waits_for(self, peer: Peer) -> None:
        """Report that ``peer`` is gone, if it may come back."""
        if seconds := self._party.config.limits.rejoin_seconds:
            self._say(f"{peer.role} {peer.name!r} is gone: waiting {seconds:g} s for it to be resumed")

    def __call__(self) -> None:
        """Report changes."""
        federation = self._party.federation
        if federation is None:
            return
        if not self._aligned:
            self._aligned = True
            train, predict = (len(federation.rows_of(self._party.name, phase)) for phase in _USES)
            what = "prepared" if self._party.role is Role.CLIENT else "aligned"
            self._say(f"{what}: {train} rows to train, {predict} to predict")
        epochs = federation.epochs  # the same count as the leader's
        done = min((self._party.recovery.learned + 1) * epochs // federation.steps, epochs)
        if self._party.begun.is_set():  # training is over, perhaps before its last epoch
            done = epochs = max(done, 1)
        self._progress("training", done, epochs)
