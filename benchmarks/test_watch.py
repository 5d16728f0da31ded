"""What a live page costs a run: the same federation with a page that a client reads, and without."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from time import perf_counter, sleep
from typing import Any

import httpx
import pytest

from benchmarks.federation import training
from benchmarks.ratios import alternate, report
from vflens.experiments.results.record import read_runs
from vflens.experiments.run.run import run
from vflens.storage.metrics import Name

STEPS = 4000
_WATCH = (sys.executable, "-m", "vflens.cli.main", "watch")


@contextmanager
def _page(folder: Path) -> Iterator[str]:
    """The address of a page on ``folder``."""
    command = [*_WATCH, str(folder), "--json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield json.loads(process.stdout.readline())["address"]
        finally:
            process.terminate()


def _read_until(folder: Path, over: threading.Event) -> None:
    """Open the page as a browser does, and read what it streams."""
    with _page(folder) as address, httpx.Client(timeout=60) as client, suppress(httpx.HTTPError):
        client.get(address, follow_redirects=True)
        with client.stream("GET", address.split("?")[0] + "live") as stream:
            for _ in stream.iter_lines():
                if over.is_set():
                    return


def _steps_per_second(out: Path, *, watched: bool) -> float:
    over, readers = threading.Event(), list[threading.Thread]()

    def begin(scenario: str, event: dict[str, Any]) -> None:
        if watched and "folder" in event:
            readers.append(threading.Thread(target=_read_until, args=(Path(event["folder"]), over)))
            readers[0].start()

    try:
        (home,) = run(training(out, STEPS), tell=begin).scenarios
    finally:
        over.set()
        for reader in readers:
            reader.join()
    value = read_runs([home])[0].value(Name.STEPS_PER_SECOND)
    assert value is not None
    return value


@pytest.mark.benchmark(group="watch")
def test_training_beside_a_page(benchmark: Any, tmp_path: Path) -> None:
    candidates = {
        "no page": lambda: _steps_per_second(tmp_path, watched=False),
        "a page that is read": lambda: _steps_per_second(tmp_path, watched=True),
    }
    figures = benchmark.pedantic(lambda: alternate(candidates), rounds=1)
    report(benchmark, "training steps a second", figures, "no page", "steps/s")


@pytest.mark.benchmark(group="watch")
def test_the_first_paint(benchmark: Any, tmp_path: Path) -> None:
    """Milliseconds to the first contentful paint in Chromium, and to the whole answer."""
    playwright = pytest.importorskip("playwright.sync_api")
    (home,) = run(training(tmp_path, 400), in_process=True).scenarios

    def paint() -> float:
        with _page(home) as address:
            sleep(0.5)
            page = chromium.new_page()
            page.goto(address)
            (found,) = page.evaluate(
                "performance.getEntriesByName('first-contentful-paint').map(entry => entry.startTime)"
            )
            page.close()
            return float(found)

    def answer() -> float:
        with _page(home) as address, httpx.Client() as client:
            began = perf_counter()
            client.get(address, follow_redirects=True)
            return 1000 * (perf_counter() - began)

    with playwright.sync_playwright() as player:
        chromium = player.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox"])
        figures = benchmark.pedantic(lambda: alternate({"first paint": paint, "answer": answer}), rounds=1)
        chromium.close()
    report(benchmark, "the page of a finished run", figures, "first paint", "ms")
