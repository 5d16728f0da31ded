"""A process that ends with its launcher: the launcher holds its standard input."""

import os
import signal
import threading

signalled = threading.Event()  # a signal ends the process
LAUNCHED = "VFLENS_LAUNCHED"  # set by the launcher: the process ends when its standard input closes


def launched() -> bool:
    """Whether the launcher started this process, and has checked the tables."""
    return bool(os.environ.get(LAUNCHED))


def end_with_launcher() -> None:
    """Send this process SIGTERM once the launcher that started it, if one did, is gone."""
    if launched():
        threading.Thread(target=_await_end, name="launcher lifeline", daemon=True).start()


def _await_end() -> None:
    while os.read(0, 1024):  # not sys.stdin: its lock would be held at interpreter shutdown
        pass
    os.kill(os.getpid(), signal.SIGTERM)
