"""One party as a process: it serves, waits for the other parties, and ends in order.

A process ends when the coordinator ends the run or is gone, on SIGINT or SIGTERM, or when the launcher that
holds its standard input is gone. In every case it flushes its logs, ``status.json`` records the end, and the
exit code is the error's.
"""

import os
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from vflens.clients.data_party import DataParty
from vflens.config import LeaderConfig, LedConfig, PartyConfig, Peer
from vflens.coordinator.leader import Leader
from vflens.errors import INTERRUPTED, StorageError, UnavailableError, VflensError
from vflens.member.event_loop import ENDING
from vflens.member.member import Member
from vflens.member.stage import Stage
from vflens.member.suspicions import check_defenses
from vflens.services.folder import begin, exclusive, is_over, write_status
from vflens.services.forking.lifeline import end_with_launcher, signalled
from vflens.services.hall import Hall
from vflens.services.healthcheck import came, lives
from vflens.services.identity import check_trust, counterpart, reminded, signer_of
from vflens.services.leading import run
from vflens.services.members import data_party, leader
from vflens.services.metrics_page import calls_of, metrics_page
from vflens.services.waiting import Reporter, Waits, take_turns, until
from vflens.storage.log import party_log
from vflens.types import Progress
from vflens.wire.channel import check_address, check_port_free
from vflens.wire.grpc_link import GrpcLink
from vflens.wire.sockets import make_folder


def where(config: PartyConfig) -> str:
    """The run folder and the command that reports it, with the other parties' folders beside it."""
    beside = any(f.parent != config.out for f in config.out.parent.glob("*/config.toml"))
    shown = config.out.parent if beside else config.out
    return (
        f"results are in {_short(config.out)}; see them with: vflens report {_short(shown)} --out report.html"
    )


def _short(folder: Path) -> Path:
    return folder.relative_to(Path.cwd()) if folder.is_relative_to(Path.cwd()) else folder


_LAST_RESORT_SECONDS = 30.0  # between a signal and the exit of a process that hangs in its orderly end

Say = Callable[[str], None]


def serve(config: PartyConfig, say: Say, progress: Progress) -> None:
    """Run one party, alone in the process, until its run is over; the process exits 30 s after a signal at
    the latest.

    Args:
        config: the party's configuration.
        say: called with sentences about the state of the run.
        progress: called with the leader's progress.

    Raises:
        VflensError: the run failed; ``KeyboardInterrupt``: it was interrupted. ``status.json`` records the
            same.
    """
    stop_on_signals()
    hall = Hall()
    for error in take_turns([attend(config, say, progress, hall)], hall.open):
        raise error


def attend(config: PartyConfig, say: Say, progress: Progress, hall: Hall, *, hosted: bool = False) -> Waits:
    """Do as :func:`serve` where signals are handled already, a step at a time; from its first wait on the
    party can be served in ``hall``. ``hosted``: other parties share process and hall.
    """
    for address in (config.address, *(p.address for p in config.peers)):
        check_address(address, insecure=config.insecure or config.tls is not None)
    check_trust(config)
    with exclusive(config.out):
        if config.resume and is_over(config):
            say(
                f"the run in {config.out} is finished: begin a new one without --resume (or with --no-resume)"
            )
            return
        check_port_free(config.address)
        make_folder(config.address)
        resumed = begin(config, say)
        with _status(config):
            if isinstance(config, LeaderConfig):
                yield from _serve_leader(config, say, progress, hall, resumed=resumed)
            elif isinstance(config, LedConfig):
                yield from _serve_data_party(config, say, progress, hall, resumed=resumed, hosted=hosted)


@contextmanager
def _status(config: PartyConfig) -> Iterator[None]:
    """Write the end of the run; a failure to write does not hide the run's own error."""
    try:
        yield
    except BaseException as error:
        state, reason = "failed", str(error)
        if isinstance(error, KeyboardInterrupt):
            state, reason = "interrupted", "stopped by a signal"
        elif not isinstance(error, VflensError):
            reason = f"unexpected {type(error).__name__}: {error}"
            party_log(config.out / "events.jsonl", config.party).error("unexpected", exc_info=error)
        with suppress(StorageError):
            write_status(config.out, state, reason)
        raise
    write_status(config.out, "finished")


def link_to(peer: Peer, config: PartyConfig, incarnation: int = 0) -> GrpcLink:
    """A link to ``peer`` of the party of ``config``, which was started again so often."""
    return GrpcLink(
        peer.name,
        peer.address,
        caller=config.party,
        token=peer.token,
        limits=config.limits,
        tls=counterpart(peer.name, peer.role, config),
        incarnation=incarnation,
    )


def wait_for(peers: tuple[Peer, ...], config: PartyConfig, say: Say, ended: threading.Event) -> Waits:
    """Wait, with back-off, until all ``peers`` serve or the waiting has ``ended``; report the missing ones.
    Those at one address are asked once.

    Raises:
        UnavailableError: names a missing party.
        AccessError: the certificate of a peer, or this party's, is refused.
    """
    deadline, pause, missing = time.monotonic() + config.limits.wait_seconds, 0.1, list(peers)
    reported: list[str] = []
    while (missing := _missing(missing, config)) and not ended.is_set():
        names = [f"{p.role} {p.name!r} at {p.address}" for p in missing]
        if names != reported:
            say(f"waiting for {', '.join(names)}")
            reported = names
        if time.monotonic() > deadline:
            raise UnavailableError(
                f"{names[0]} did not come within {config.limits.wait_seconds:g} s: start it, or raise "
                "limits.wait_seconds"
            )
        yield ended, pause
        pause = min(2 * pause, 2.0)


def _missing(peers: Iterable[Peer], config: PartyConfig) -> list[Peer]:
    there = {address: came(peer, config) for address, peer in {p.address: p for p in peers}.items()}
    return [peer for peer in peers if not there[peer.address]]


def _take_up(member: Member, say: Say) -> None:
    """Go on with the run in the member's folder; before its rows are aligned there is nothing to restore."""
    member.reached.start_again()
    if not (member.folder / "state.json").exists():
        return
    member.resume()
    say(f"{member.role} {member.name!r} goes on after training step {member.recovery.learned + 1}")


def _open(
    end: ExitStack, member: Member, config: PartyConfig, say: Say, hall: Hall, *, resumed: bool
) -> None:
    """Restore ``member`` if its run goes on, link it to its peers, and let it be served until ``end``."""
    end.callback(member.close)
    member.signer = signer_of(config)
    if resumed:
        _take_up(member, say)
    for peer in config.peers:
        member.links[peer.name] = link = link_to(peer, config, member.reached.incarnation)
        end.callback(link.close)
    calls = calls_of(config)
    end.enter_context(metrics_page(member, calls))
    end.enter_context(reminded(config, say, member.log))
    end.enter_context(hall.holds(member, config, member.log, calls))


def _serve_data_party(
    config: LedConfig, say: Say, progress: Progress, hall: Hall, *, resumed: bool, hosted: bool
) -> Waits:
    party = data_party(config, {}, in_process=hosted)
    with ExitStack() as end:  # last to first; all run even if one fails
        _open(end, party, config, say, hall, resumed=resumed)
        end.callback(party.interrupt)  # its own training ends with the current step
        if not hosted:
            end.callback(_no_more_interrupts)
        yield party.asked, 0.0  # it is served
        yield from _wait_for_leader(config.leader, party, say)
        say(f"{party.role} {party.name!r} is ready at {config.address}")
        report = Reporter(party, say, progress)
        yield from until(party.begun, party, config.leader, report)
        if not party.stopped.is_set() and party.reached.stage is not Stage.FINISHED:
            if outcome := party.complete():
                say(outcome)
            party.flush()
        elif not party.stopped.is_set():  # after a restart: its report may have been lost
            party.report_finished()
        yield from until(party.stopped, party, config.leader, report)
        party.flush()  # a failed log is this party's own error, whatever the leader sent
    if party.failure:
        raise UnavailableError(f"the run ended early: {party.own_refusal or party.failure}")
    check_defenses(party)
    say(where(config))


def _wait_for_leader(leader: Peer, party: DataParty, say: Say) -> Waits:
    """See :func:`wait_for`; a party that has attacked and was then killed may come back after the run's end.

    It then ends well: its own work is complete. It can be resumed again if the leader was only late.
    """
    try:
        yield from wait_for((leader,), party.config, say, party.asked)  # it may die before it is seen
    except UnavailableError as error:
        if party.reached.stage is not Stage.FINISHED:
            raise
        say(f"{error}; this party's own work is complete: if the run is not, start all parties again")
        party.stopped.set()


def _serve_leader(config: LeaderConfig, say: Say, progress: Progress, hall: Hall, *, resumed: bool) -> Waits:
    leading = leader(config, {}, progress)
    failure = f"the {config.role} was interrupted"
    with ExitStack() as end:  # last to first; all run even if one fails
        _open(end, leading, config, say, hall, resumed=resumed)
        end.callback(lambda: leading.stop(failure))
        end.callback(_no_more_interrupts)
        yield leading.finished, 0.0  # it is served
        try:
            if not leading.finished.is_set():  # else they may have ended
                yield from wait_for(_awaited(leading), config, say, threading.Event())
                say(f"all parties are up: run {config.run!r} begins")
                run(leading, lambda: _check_alive(leading), say, resumed=resumed)
            check_defenses(leading)
            leading.flush()
            leading.check_model()
            say(leading.outcome)
            failure = ""
            if config.stays:
                with suppress(KeyboardInterrupt):  # Ctrl-C ends it normally
                    say("serving predictions until stopped (Ctrl-C, SIGTERM)")
                    while True:
                        time.sleep(config.limits.idle_seconds / 4)
                        leading.show_life()
        except VflensError as error:
            failure = str(error)
            raise
        except Exception as error:  # the writer of the status logs it, with its traceback
            failure = f"the {config.role} failed: unexpected {type(error).__name__}, look at its log"
            raise
    say(where(config))


def _awaited(leading: Leader) -> tuple[Peer, ...]:
    """The parties without which the run does not go on."""
    return tuple(peer for peer in leading.config.peers if peer.name not in leading.left_out)


def _check_alive(leading: Leader) -> None:
    config = leading.config
    for peer in {p.address: p for p in _awaited(leading)}.values():
        if not lives(peer, config) and not lives(peer, config, 10.0) and not came(peer, config):
            raise UnavailableError(
                f"{peer.role} {peer.name!r} at {peer.address} died: look at its log, then start the run again"
            )


def stop_on_signals() -> None:
    """SIGTERM, a closed terminal and a lost launcher interrupt the process as Ctrl-C does."""
    if threading.current_thread() is threading.main_thread():
        for number in ENDING:
            if (
                signal.getsignal(number) is not signal.SIG_IGN
            ):  # as under nohup and in a shell's background jobs
                signal.signal(number, _interrupt)
        threading.Thread(target=_last_resort, name="last resort", daemon=True).start()
    end_with_launcher()


def _interrupt(*_: object) -> None:
    """End in order, which takes seconds; ignore a second signal."""
    _end_in_time()
    raise KeyboardInterrupt


def _no_more_interrupts() -> None:
    """In the orderly end a first signal only limits its time."""
    if threading.current_thread() is threading.main_thread():
        for number in ENDING:
            if signal.getsignal(number) is _interrupt:
                signal.signal(number, _end_in_time)


def _end_in_time(*_: object) -> None:
    """Exit the process if its orderly end hangs: no kill -9 is needed."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    signalled.set()


def _last_resort() -> None:
    """Start the thread before any signal: a handler that starts one may hang in an interrupted lock."""
    signalled.wait()
    time.sleep(_LAST_RESORT_SECONDS)
    os._exit(INTERRUPTED)
