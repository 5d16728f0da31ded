"""A data party that waits for its leader, and what its operator reads meanwhile."""

import threading
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import ExitStack, suppress
from itertools import islice
from typing import TypeAlias

from vflens.clients.data_party import DataParty
from vflens.config import PartyConfig, Peer
from vflens.errors import UnavailableError
from vflens.member.patience import Idle
from vflens.protocol.roles import ROLES
from vflens.services.healthcheck import came, lives
from vflens.types import Phase, Progress
from vflens.words import counted

_USES = (Phase.TRAIN, Phase.PREDICT)
_FRESH_SECONDS = 0.9  # less than a party waits between two looks
_answers: dict[str, tuple[float, str]] = {}  # address → when it was asked, and its answer
_LOOK_SECONDS = 0.1  # between two looks at the events of many
_END_SECONDS = 5.0  # after one party failed, for the others to end with their own reason
_LONGER = 1.5  # than its leader, which knows who does nothing, and says so to all

#: What a party that goes on waits for: an event, and how many seconds at most.
Waits: TypeAlias = Generator[tuple[threading.Event, float], None, None]


def take_turns(parties: Iterable[Waits], begun: Callable[[], None]) -> list[Exception]:
    """Let each of ``parties`` go on when its event is set or its time is over, until all have ended; call
    ``begun`` once all have come to their first wait. The errors of those that failed, in their order.

    Where one fails, the others have a few seconds to end with their own reason. Then they are interrupted, as
    all are when a signal comes.
    """
    failed, end = list[Exception](), float("inf")
    why: BaseException = KeyboardInterrupt()
    due = dict.fromkeys(parties, (threading.Event(), 0.0))
    try:
        while due and time.monotonic() < end:
            for party in [party for party, wait in due.items() if _is_over(*wait)]:
                if time.monotonic() >= end:  # each may wait seconds for a leader that hangs
                    break
                try:
                    event, seconds = next(party)
                    due[party] = event, time.monotonic() + seconds
                except StopIteration:
                    del due[party]
                except Exception as error:
                    del due[party]
                    failed.append(error)
                    end = min(end, time.monotonic() + _END_SECONDS)
            if not failed:
                begun()
            for event, at in islice(due.values(), 1):
                event.wait(min(at - time.monotonic(), float("inf") if len(due) == 1 else _LOOK_SECONDS))
    except Exception as error:  # of ``begun``: it is the reason of all
        why = error
    finally:
        with ExitStack() as ends:  # all end, even if one fails
            for party in due:
                ends.callback(_interrupted, party, why)
    return failed


def _interrupted(party: Waits, why: BaseException) -> None:
    with suppress(KeyboardInterrupt):
        party.throw(why)


def _is_over(event: threading.Event, at: float) -> bool:
    return event.is_set() or time.monotonic() >= at


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


def until(event: threading.Event, party: DataParty, leader: Peer, report: Reporter) -> Waits:
    """Wait for ``event`` or the end of the run, as long as the leader lives or may come back.

    Raises:
        UnavailableError: the leader is gone, or lives and asks for nothing, here or elsewhere.
    """
    misses, seen, flushed = 0, 0, 0
    gone_until = 0.0  # monotonic seconds, once it is gone
    idle = Idle(seconds := _LONGER * party.config.limits.idle_seconds)
    while True:
        yield event, 1.0
        if event.is_set() or party.stopped.is_set():
            break
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
