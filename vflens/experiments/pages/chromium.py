"""An installed Chromium, which opens one local file without a window."""

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from vflens.errors import ConfigError, StorageError

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SECONDS = 120.0  # for a page with hundreds of plots


def browser(option: str) -> str:
    """The path of an installed Chromium, which the command-line ``option`` needs.

    Raises:
        ConfigError: there is none.
    """
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        raise ConfigError(
            f"{option} needs Chromium: install it, on Debian with `apt install chromium`, or print the page "
            "from your browser"
        )
    return found


def opened(program: str, page: Path, *options: str, seconds: float) -> bytes:
    """What ``program`` writes to its output when it opens ``page``, with ``options``; nothing of it is left.

    Raises:
        StorageError: it takes longer than ``seconds``.
    """
    with TemporaryDirectory(prefix="vflens-chromium-") as profile:
        command = [program, "--headless", "--disable-gpu", f"--user-data-dir={profile}"]
        command += ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses root otherwise
        return _output([*command, *options, page.absolute().as_uri()], seconds)


def _output(command: list[str], seconds: float) -> bytes:
    """The output of ``command``, which has a process group of its own."""
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(command, stdin=null, stdout=pipe, stderr=null, start_new_session=True) as child:
        try:
            return child.communicate(timeout=seconds)[0]
        except subprocess.TimeoutExpired:
            raise StorageError(
                f"{command[0]} did not print the page within {seconds:g} s: print it from your browser"
            ) from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
