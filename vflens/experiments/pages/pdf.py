"""A page as a PDF: printed by an installed Chromium, which opens the file alone."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory

from vflens.errors import ConfigError, StorageError
from vflens.storage.files import write_whole

_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
_SECONDS = 120.0  # of a page with hundreds of plots


def browser() -> str:
    """The path of an installed Chromium.

    Raises:
        ConfigError: there is none.
    """
    found = next(filter(None, map(shutil.which, _NAMES)), None)
    if found is None:
        raise ConfigError(
            "--pdf needs Chromium: install it, on Debian with `apt install chromium`, or print the page from "
            "your browser"
        )
    return found


def write_pdf(page: Path, out: Path, *, seconds: float = _SECONDS) -> None:
    """Print ``page`` (HTML) to ``out``, whole or not at all.

    Raises:
        ConfigError: there is no Chromium.
        StorageError: it fails, takes longer than ``seconds``, or ``out`` cannot be written.
    """
    program = browser()
    with TemporaryDirectory(prefix="vflens-pdf-") as scratch:
        printed = Path(scratch) / "page.pdf"
        options = [
            "--headless",
            "--disable-gpu",
            "--no-pdf-header-footer",
            f"--user-data-dir={scratch}/profile",
        ]
        options += ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses root otherwise
        _run([program, *options, f"--print-to-pdf={printed}", page.absolute().as_uri()], seconds)
        if not printed.is_file():
            raise StorageError(f"{program} printed nothing of {page}: print the page from your browser")
        write_whole(out, printed.read_bytes(), remedy="another place")


def _run(command: list[str], seconds: float) -> None:
    """Run ``command`` in a process group of its own, of which nothing is left after ``seconds``."""
    null = subprocess.DEVNULL
    with subprocess.Popen(command, stdin=null, stdout=null, stderr=null, start_new_session=True) as child:
        try:
            child.wait(seconds)
        except subprocess.TimeoutExpired:
            raise StorageError(
                f"{command[0]} did not print the page within {seconds:g} s: print it from your browser"
            ) from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
