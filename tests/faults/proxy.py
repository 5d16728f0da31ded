"""A proxy of bytes between two parties: it cuts, throttles, half-opens, or flips a bit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

PIECE = 16384


@dataclass
class Fault:
    """What happens to the bytes from the caller, on one connection; None: nothing.

    Args:
        cut: after so many bytes the connection is closed.
        silent: after so many bytes nothing is read any more, and nothing is closed.
        flipped: a bit of the byte with this number.
        bytes_per_second: at most so many pass.
        connection: the number of the connection, from 0.
    """

    cut: int | None = None
    silent: int | None = None
    flipped: int | None = None
    bytes_per_second: float | None = None
    connection: int = 0


class Proxy:
    """Passes every connection at the Unix socket ``at`` on to that at ``to``."""

    def __init__(self, at: Path, to: Path, fault: Fault) -> None:
        self._at, self._to, self.fault = at, to, fault
        self.connections = 0

    async def serve(self, end: asyncio.Event, ready: threading.Event) -> None:
        """Until ``end``."""
        self._open: set[asyncio.Task[None]] = set()
        server = await asyncio.start_unix_server(self._taken, self._at)
        ready.set()
        await end.wait()
        server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)

    async def _taken(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        fault = self.fault if self.connections == self.fault.connection else Fault()
        self.connections += 1
        try:
            there, out = await asyncio.open_unix_connection(self._to)
            try:
                async with asyncio.TaskGroup() as both:
                    both.create_task(_pass(reader, out, fault))
                    both.create_task(_pass(there, writer, Fault()))
            except* (OSError, EOFError):
                pass
            finally:
                out.close()
        except OSError:  # nobody listens there any more
            pass
        finally:
            writer.close()
            self._open.discard(task)


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, fault: Fault) -> None:
    passed = 0
    while data := bytearray(await reader.read(PIECE)):
        if fault.flipped is not None and passed <= fault.flipped < passed + len(data):
            data[fault.flipped - passed] ^= 1
        if fault.bytes_per_second is not None:
            await asyncio.sleep(len(data) / fault.bytes_per_second)
        if fault.silent is not None and passed + len(data) > fault.silent:
            await asyncio.Event().wait()
        if fault.cut is not None and passed + len(data) > fault.cut:
            writer.write(data[: fault.cut - passed])
            raise EOFError
        writer.write(data)
        await writer.drain()
        passed += len(data)
    raise EOFError  # one side has closed: the other is closed too


@contextmanager
def proxied(at: Path, to: Path, fault: Fault) -> Iterator[Proxy]:
    """The proxy, in a thread of its own."""
    proxy, ready, loops = Proxy(at, to, fault), threading.Event(), []

    async def main() -> None:
        end = asyncio.Event()
        loops.append((asyncio.get_running_loop(), end))
        await proxy.serve(end, ready)

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    ready.wait()
    try:
        yield proxy
    finally:
        ((loop, end),) = loops
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(end.set)
        thread.join()
