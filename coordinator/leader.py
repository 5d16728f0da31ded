"""What a coordinator and a server share: a member that leads a run over links to its data parties."""

import threading
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

from vflens.config import LeaderConfig
from vflens.errors import ConfigError, ProtocolError, StorageError, UnavailableError, VflensError
from vflens.member.member import Member
from vflens.member.patience import patiently
from vflens.member.signer import heads_statement, nonce_of
from vflens.member.stage import Stage
from vflens.member.standing import check_data_party
from vflens.member.start_nonce import run_nonce
from vflens.protocol.acts import Describe, Done, Finished, Rejoin, Stop
from vflens.protocol.link import Link, Reply
from vflens.protocol.standing import Standing
from vflens.storage.metrics import Name
from vflens.storage.sent_heads import SentHeads, received_in
from vflens.types import Array, PartyInfo, Point, Progress


def returned(
    leader: Member, name: str, own: Standing, learned: int, before_open: Stage, *, seconds: float
) -> Standing:
    """Where the data party ``name`` stands, once it is back within ``seconds``; ``own`` is the leader's
    standing, and the party must have ``learned`` from that step, and reached ``before_open`` where the leader
    is open.

    Raises:
        UnavailableError: it did not come back in time.
        StateError: it came back with another run, or older than it was.
    """
    act = Rejoin(leader.config.run, own)
    try:
        party = patiently(lambda: leader.links[name].call(act), seconds, leader.stopped)
    except UnavailableError as error:
        raise UnavailableError(
            f"party {name!r} did not come back within {seconds:g} s: look "
            f"at its log, then start every party again with --resume ({error})"
        ) from error
    check_data_party(name, own, party, learned, before_open)
    return party


_STOP_SECONDS = 5.0  # who does not answer by then notices that its leader is gone


class Leader(Member):
    """Leads one run over ``links``, one link to every data party by name.

    Args:
        config: its configuration.
        links: to the data parties.
        progress: called with how far a stage has come.
        learns_from: what it receives in training.
        parameters: see :class:`vflens.member.member.Member`.
        in_process: whether all parties run in one process.
    """

    config: LeaderConfig
    before_open: ClassVar[Stage] = Stage.DISCLOSED  # of a data party that ``Begin`` has not reached

    def __init__(
        self,
        config: LeaderConfig,
        links: Mapping[str, Link],
        progress: Progress,
        *,
        learns_from: Point,
        parameters: Callable[[], Mapping[str, Array]] | None = None,
        in_process: bool = False,
    ) -> None:
        super().__init__(
            config,
            links,
            learns_from=learns_from,
            asked_for_rows=False,
            parameters=parameters,
            in_process=in_process,
        )
        self.finished, self._unfinished = threading.Event(), {p.name for p in config.peers}
        self._progress = progress
        self._reported = ("", 0)  # the stage, and how far it has come
        self._agreed = False  # whether all data parties have taken up the run

    def prepare(self) -> None:
        """Describe the data parties, compare them, and prepare all of them; one that has none need not."""
        return

    @abstractmethod
    def lead(self, check_alive: Callable[[], None] = lambda: None) -> None:
        """Lead a run from where it stands to where the data parties predict and attack.

        ``check_alive`` is called now and then during long waits; it raises if a party has died.
        """

    @property
    @abstractmethod
    def outcome(self) -> str:
        """What came of the complete run, in words."""

    def standing(self) -> Standing:
        """See :meth:`vflens.member.member.Member.standing`; before all have their rows nothing is agreed."""
        found = super().standing()
        return found if self._agreed else replace(found, federation=b"")

    @property
    def achieved(self) -> tuple[object, ...]:
        """How far the run has come, as this member sees it: what parties say of themselves does not count."""
        own = self.standing()
        return own.stage, own.learned, own.released, len(self._unfinished)

    @property
    def moved(self) -> tuple[object, ...]:
        """See :attr:`vflens.protocol.link.Party.moved`; read without a lock, at any time."""
        return self.performed, self.recovery.learned, self.transcript.received, self._reported

    def rejoin(self) -> None:
        """Wait for every data party, after one of them or this one was restarted.

        Raises:
            UnavailableError, StateError: see :func:`vflens.coordinator.leader.returned`.
        """
        own, seconds = self.standing(), self.config.limits.rejoin_seconds
        for name in sorted(self.links):
            self.take_back(name, own, seconds)

    def take_back(self, name: str, own: Standing, seconds: float) -> None:
        """Wait at most ``seconds`` for the data party ``name``, where this leader stands at ``own``.

        Raises:
            UnavailableError, StateError: see :meth:`rejoin`.
        """
        learned = self.learned_by(name, own.learned)
        party = returned(self, name, own, learned, self.before_open, seconds=seconds)
        self.fence.admit(name, party.incarnation)
        self.came_back(name, own, party)

    @property
    def left_out(self) -> Collection[str]:
        """The data parties without which the run goes on."""
        return ()

    @abstractmethod
    def learned_by(self, party: str, own: int) -> int:
        """The last step that ``party`` must have learned from where this member has learned from ``own``."""

    def came_back(self, name: str, own: Standing, party: Standing) -> None:
        """Called with the ``own`` standing and that of the ``party`` called ``name`` when they rejoin."""

    def finish(self, act: Finished) -> Done:
        """A data party has done all that it does after training; the run is over when all have."""
        self.check_open()
        self.check_run(act.run)
        self._check_signed(act)
        self.keep_heads({act.sender: act.heads})
        self._note_finished(act.sender)
        return Done()

    def _check_signed(self, act: Finished) -> None:
        """Refuse heads that their party could deny later; without certificates none are signed."""
        if self.signer is not None:
            if act.heads.nonce != nonce_of(self.federation):
                raise ProtocolError(
                    f"the heads of {act.sender!r} are of another run called {act.run!r}: resume it on this "
                    "run's folder"
                )
            role = next(p.role for p in self.config.peers if p.name == act.sender)
            self.signer.check(act.sender, role, heads_statement(act.run, act.heads), act.heads.signature)

    def _note_finished(self, party: str) -> None:
        with self.lock:  # the last two may come at a time: figures are recorded once
            self._unfinished.discard(party)
            if not self._unfinished and not self.finished.is_set():
                self.all_finished()
                self.advance(Stage.FINISHED)
                self.finished.set()

    @property
    def unfinished(self) -> str:
        """The names of the parties whose end the run waits for."""
        return ", ".join(repr(name) for name in sorted(self._unfinished))

    def check_model(self) -> None:
        """Refuse a complete run whose model may be wrong.

        Raises:
            LogitRangeError: see :class:`vflens.coordinator.vertical.dealer.DealingCoordinator`.
        """

    def all_finished(self) -> None:
        """Called once, when the last data party has finished."""

    def _all_heads(self) -> Mapping[str, SentHeads]:
        """Its own heads and those received; none where a log fails: the parties must stop all the same."""
        try:
            return {**received_in(self.folder), self.name: self.heads()}
        except StorageError as error:
            self.log.warning("no heads", reason=str(error))
            return {}

    def stop(self, failure: str = "") -> None:
        """Tell every data party that the run is over, and why if it failed; skip those that are gone."""
        heads, gone = self._all_heads(), "this party did not come back in time and was left out"
        why = {name: failure or (gone if name in self.left_out else "") for name in sorted(self.links)}
        replies = {name: self._submitted(name, Stop(self.config.run, why[name], heads)) for name in why}
        for name, reply in replies.items():
            try:
                reply.result(_STOP_SECONDS)
            except TimeoutError:  # it hangs: the others are waited for all the same
                self._not_told(name, f"it did not answer within {_STOP_SECONDS:g} s")
            except VflensError as error:
                self._not_told(name, str(error))

    def _submitted(self, name: str, act: Stop) -> Reply[Done]:
        """The reply of the party ``name`` to ``act``; a failure is the reply's, so that all are asked."""
        try:
            return self.links[name].submit(act)
        except VflensError as error:
            failed = Future[Done]()
            failed.set_exception(error)
            return failed

    def _not_told(self, name: str, reason: str) -> None:
        self.log.warning("not told to stop", peer=name, reason=reason)

    def resume(self) -> None:
        super().resume()
        if self.reached.stage is Stage.FINISHED:
            self.finished.set()

    def flush(self) -> None:
        """See :meth:`vflens.member.member.Member.flush`; reports find the run while it goes on."""
        super().flush()
        self.save_summary()

    def record_totals(self) -> None:
        """What arrived."""
        self.metrics.add(Name.BYTES_RECEIVED, self.transcript.nbytes)

    def show_life(self) -> None:
        """Ask every data party for something: one whose own work is complete waits for nothing else."""
        for name in sorted(self.links):
            with suppress(UnavailableError):  # it may be away; a prediction that needs it says so
                self.links[name].call(Describe(self.config.run))

    def _describe(self) -> tuple[PartyInfo, ...]:
        """What every data party says of itself, in name order."""
        asked = Describe(self.config.run, run_nonce(self.folder))
        parties = tuple(self.links[name].call(asked) for name in sorted(self.links))
        roles = {p.name: p.role for p in parties}
        for peer in self.config.peers:
            if roles.get(peer.name) != peer.role:
                raise ConfigError(
                    f"peer {peer.name!r} at {peer.address} answers as another party or role: correct its "
                    "address or role"
                )
        return parties

    def _report(self, stage: str, done: int, total: int) -> None:
        self._reported = stage, done
        self.log.info("progress", stage=stage, done=done, total=total)
        self._progress(stage, done, total)

    def _record_speed(self, steps: int, taken: int, seconds: float) -> None:
        """``taken`` of the ``steps`` since the last restart took ``seconds``."""
        self.metrics.add(Name.STEPS, steps)
        self.metrics.add(Name.TRAIN_SECONDS, seconds)
        self.metrics.add(Name.STEPS_PER_SECOND, taken / seconds)
