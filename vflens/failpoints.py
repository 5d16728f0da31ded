"""Fail points: named places at which a test lets this process die, wait, or find its disk full.

``VFLENS_FAIL=state.json.written:2:kill`` kills the process when it comes to that point for the second time.
Without the variable nothing happens at any point. Around a write stand ``begun`` and ``written``; between
them a log has its payload without its index line. A file that is written whole is in its place only at
``replaced``. Around an act stand ``asked`` and ``answered``, around what is put off until its reply has left
``settling`` and ``settled``.
"""

import errno
import os
import signal
import time
from collections.abc import Callable
from itertools import count, product

from vflens.errors import ConfigError

#: What is written whole or not at all (:func:`vflens.storage.files.whole`).
_WHOLE_FILES = (
    "absent.json", "authority.pem", "blinded.json", "certificate.pem", "checkpoint.npz",
    "config.toml", "exposed.json", "federation.json", "heads.json", "key.pem", "metrics.parquet", "nonce",
    "order.npz", "own.npz", "pictures.npz", "predictions.npz", "rows.npz", "run_nonce", "scored.json",
    "settings.json", "starts.json", "state.json", "status.json",
)  # fmt: skip
_LOGS = ("transcript", "released", "recovery")  # two files each (vflens.storage.journal)
_IN_PLACE = ("steps.bin", "left_out.json", "chain.bin", "digests.bin")  # one file each
_ACTS = (
    "Begin", "Blind", "Deal", "Deliver", "Describe", "Disclose", "Epoch", "Finished", "Forward", "Identify",
    "Predict", "Prepare", "Query", "Rejoin", "Salt", "Seed", "Step", "Stop", "Submission", "Train",
)  # fmt: skip


def _points(places: tuple[str, ...], *moments: str) -> tuple[str, ...]:
    return tuple(f"{place}.{moment}" for place, moment in product(places, moments))


#: The points at writes: a full disk is possible at them.
WRITES = (
    *_points(_WHOLE_FILES, "begun", "written", "replaced"),
    *_points(_LOGS, "begun", "payload", "written"),
    "recovery.emptied",
    *_points(_IN_PLACE, "begun", "written"),
)
POINTS = (*WRITES, *_points(_ACTS, "asked", "answered"), "settling", "settled")
DELAY_SECONDS = 1.0

#: Called with the name of every point that is reached: one fault of the environment, or a test's own.
armed: list[Callable[[str], None]] = []


def fail_point(*name: str) -> None:
    """The process has come to the point whose parts, joined by dots, are ``name``."""
    for fault in armed:
        fault(".".join(name))


def arm(text: str) -> None:
    """Prepare the fault ``POINT:COUNT:ACTION``; none for an empty ``text``.

    Raises:
        ConfigError: it is no fault.
    """
    if not text:
        return
    point, _, rest = text.partition(":")
    number, _, action = rest.partition(":")
    if point not in POINTS:
        raise ConfigError(
            f"VFLENS_FAIL names {point!r}, which is no fail point: vflens/failpoints.py has all names"
        )
    if not (number.isascii() and number.isdigit() and int(number) and action in ACTIONS):
        raise ConfigError(
            f"VFLENS_FAIL is {text!r}: write POINT:COUNT:ACTION, a count from 1 and one of "
            f"{', '.join(ACTIONS)}"
        )
    if action == "full" and point not in WRITES:
        raise ConfigError(f"VFLENS_FAIL is {text!r}, and nothing is written at {point}: choose kill or delay")
    armed.append(at(point, int(number), ACTIONS[action]))


def at(point: str, number: int, act: Callable[[], object]) -> Callable[[str], None]:
    """A fault that calls ``act`` at the ``number``-th arrival at ``point``, counted from 1."""
    arrivals = count(1)

    def fault(name: str) -> None:
        if name == point and next(arrivals) == number:
            act()

    return fault


def _kill() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _full() -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def _delay() -> None:
    time.sleep(DELAY_SECONDS)


ACTIONS: dict[str, Callable[[], None]] = {"kill": _kill, "full": _full, "delay": _delay}
