"""A data party that waits for its leader, and what its operator reads meanwhile."""

import threading
import time
from collections.abc import Callable

from vflens.clients.data_party import DataParty
from vflens.config import PartyConfig, Peer
from vflens.errors import UnavailableError
from vflens.member.patience import Idle
from vflens.protocol.roles import ROLES
from vflens.services.healthcheck import came, lives
from vflens.services.lifeline import go_on
from vflens.types import Phase, Progress
from vflens.words import counted

_USES = (Phase.TRAIN, Phase.PREDICT)
_FRESH_SECONDS = 0.9  # less than a party waits between two looks
_asking = threading.Lock()
_answers: dict[str, tuple[float, str]] = {}  # address → when it was asked, and its answer
_LONGER = 1.5  # than its leader, which knows who does nothing, and says so to all


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
            ready = ROLES[self._party.role].of_setting.ready
            self._say(f"{ready}: {counted(train, 'row')} to train, {predict} to predict")
        epochs = federation.epochs  # the same count as the leader's
        done = min((self._party.recovery.learned + 1) * epochs // federation.steps, epochs)
        if self._party.begun.is_set():  # training is over, perhaps before its last epoch
            done = epochs = max(done, 1)
        self._progress("training", done, epochs)


def until(event: threading.Event, party: DataParty, leader: Peer, report: Reporter) -> None:
    """Wait for ``event`` or the end of the run, as long as the leader lives or may come back.

    Raises:
        UnavailableError: the leader is gone, or lives and asks for nothing, here or elsewhere.
    """
    misses, seen, flushed = 0, 0, 0
    gone_until = 0.0  # monotonic seconds, once it is gone
    idle = Idle(seconds := _LONGER * party.config.limits.idle_seconds)
    while not event.wait(1.0) and not party.stopped.is_set():
        go_on()
        report()
        received = party.transcript.received
        if received == seen != flushed:  # no message for a second: a good time to write
            party.flush()  # results so far then survive even SIGKILL
            flushed = received
        seen = received
        leads = _lives(leader, party.config)
        misses = 0 if leads else misses + 1
        if misses:
            idle = Idle(seconds)  # one that is gone is waited for otherwise
        else:
            waiting = f"{leader.role} {leader.name!r} lives and asks for nothing {_phase(party)}"
            own = party.performed, party.recovery.learned, received
            idle.check((own, leads), waiting)  # a leader may have much to do with others
        if misses >= 3 and came(leader, party.config):  # raises if a certificate is the reason
            misses = 0
        if misses == 3:
            gone_until = time.monotonic() + party.config.limits.rejoin_seconds
            report.waits_for(leader)
        if misses >= 3 and time.monotonic() >= gone_until:
            raise UnavailableError(
                f"{leader.role} {leader.name!r} at {leader.address} is gone: restart it, then this party"
            )
    report()  # report once more: a short run may end before the first poll


def _lives(leader: Peer, config: PartyConfig) -> str:
    """See :func:`lives`; the parties of one process ask once together."""
    with _asking:
        asked, answer = _answers.get(leader.address, (-float("inf"), ""))
        if time.monotonic() - asked > _FRESH_SECONDS:
            answer = lives(leader, config)
            _answers[leader.address] = time.monotonic(), answer
        return answer


def _phase(party: DataParty) -> str:
    """What ``party`` waits for, in words."""
    if party.federation is None:
        return "before the run is prepared"
    return "in predictions and attacks" if party.reached.is_open else "in training"
