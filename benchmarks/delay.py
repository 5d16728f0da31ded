"""Links of a federation that take time: every byte between two parties arrives so much later."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

from vflens.experiments.run.dealer import write_parties

_PIECE = 1 << 16


@contextmanager
def round_trips_of(seconds: float) -> Iterator[None]:
    """Inside, each run with Unix sockets has such round trips between any two of its parties."""
    ends = list[Any]()

    def slowed(*given: Any) -> Mapping[str, Path]:
        configs = write_parties(*given)
        for config in configs.values():
            text = config.read_text(encoding="utf-8")
            own, peers = text.split("[[peers]]", 1)
            peers = re.sub(r'(address = "unix:.*)/socket"', r'\1/slow"', peers)
            config.write_text(f"{own}[[peers]]{peers}", encoding="utf-8")
        ends.append(_started([config.parent for config in configs.values()], seconds / 2))
        return configs

    try:
        with patch("vflens.experiments.run.run.write_parties", slowed):
            yield
    finally:
        for end in ends:
            end()


def _started(folders: list[Path], seconds: float) -> Any:
    """Pass on what comes to each party's socket "slow"; a function that ends it."""
    loop = asyncio.new_event_loop()

    async def serve() -> None:
        for folder in folders:

            async def taken(reader: Any, writer: Any, to: Path = folder / "socket") -> None:
                try:
                    there, out = await asyncio.open_unix_connection(to)
                except OSError:  # the party is not there yet: its peers try again
                    writer.close()
                    return
                await asyncio.gather(_pass(reader, out, seconds), _pass(there, writer, seconds))

            await asyncio.start_unix_server(taken, folder / "slow")

    loop.run_until_complete(serve())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    return lambda: loop.call_soon_threadsafe(loop.stop)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float) -> None:
    """Write what comes, ``seconds`` later and in its order, until one side closes."""
    loop, waiting = asyncio.get_running_loop(), asyncio.Queue[tuple[float, bytes]]()

    async def write() -> None:
        while (due := await waiting.get())[1]:
            await asyncio.sleep(due[0] - loop.time())
            writer.write(due[1])
            await writer.drain()

    writing = asyncio.create_task(write())
    with suppress(OSError):
        data = b"-"
        while data:
            data = await reader.read(_PIECE)
            waiting.put_nowait((loop.time() + seconds, data))
        await writing
    writing.cancel()
    writer.close()
