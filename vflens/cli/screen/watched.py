"""The page of ``--watch``: a process beside a command, which shows the folder that the command fills."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from types import TracebackType
from typing import Self

from vflens.cli.output import note
from vflens.cli.watch import check_extra, open_browser
from vflens.services.forking.lifeline import LAUNCHED
from vflens.types import Document

_END_SECONDS = 12.0  # the page sends its last state
_COMMAND = (sys.executable, "-P", "-m", "vflens.cli.main", "watch")

Tell = Callable[[str, Document], None]


class Watched:
    """Inside, :meth:`show` starts a page. After a command on a terminal it stays until Ctrl-C; without a
    terminal, and after Ctrl-C during the command, it ends at once.

    Raises:
        ConfigError: a page is ``wanted``, and its libraries are missing.
    """

    def __init__(self, wanted: bool) -> None:
        if wanted:
            check_extra()
        self._wanted = wanted
        self._page: _Page | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._page is None:
            return
        with closing(self._page):
            if isinstance(error, Exception | None) and sys.stdin.isatty():
                note(f"{'the page' if error is None else 'it failed; its page'} stays until Ctrl-C")
                self._page.wait()

    def told_too(self, tell: Tell) -> Tell:
        """``tell``, which also starts the page at the first event that names the experiment's folder."""

        def both(scenario: str, event: Document) -> None:
            if "folder" in event:
                self.show(Path(event["folder"]))
            tell(scenario, event)

        return both if self._wanted else tell

    def show(self, folder: Path) -> None:
        """Start the page on ``folder``, once; its address is printed when it answers."""
        self._page = self._page or _Page(folder)


class _Page:
    """The process of a page."""

    def __init__(self, folder: Path) -> None:
        # Its own session: Ctrl-C reaches the command only, which then ends the page.
        self._process = subprocess.Popen(
            [*_COMMAND, str(folder), "--json"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, LAUNCHED: "1"},
            start_new_session=True,
        )
        self._printing = threading.Thread(target=self._print_address, daemon=True)
        self._printing.start()

    def _print_address(self) -> None:
        assert self._process.stdout is not None
        with self._process.stdout as lines:
            line = lines.readline()
        if line:  # else it has said why on standard error
            address = json.loads(line)["address"]
            note(f"watch: {address}")
            if sys.stdout.isatty():
                open_browser(address)

    def wait(self) -> None:
        """Wait for Ctrl-C, or for the end of the process."""
        with suppress(KeyboardInterrupt):
            self._process.wait()

    def close(self) -> None:
        """End the process: it ends with its standard input."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._printing.join()
