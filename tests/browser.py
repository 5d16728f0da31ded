"""Chromium without a window, for tests of pages; a test that needs it is skipped where it is absent."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

CHROMIUM = Path("/usr/bin/chromium")


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """The browser, one for each module."""
    if not CHROMIUM.exists():
        pytest.skip("Chromium is not installed")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=60_000)  # milliseconds, on a loaded machine
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=CHROMIUM)
        yield browser
        browser.close()


@pytest.fixture
def page(chromium: Any) -> Iterator[Any]:
    """A window; the test fails if its page wrote to the console, raised an error or opened a dialog."""
    window, complaints = chromium.new_page(), list[str]()

    def dismiss(dialog: Any) -> None:
        complaints.append(dialog.message)
        dialog.dismiss()

    window.set_default_timeout(60_000)  # a loaded machine
    # Of a refusal, which the page then shows, a browser writes that a resource failed to load.
    window.on("console", lambda text: None if "status of 422" in text.text else complaints.append(text.text))
    window.on("pageerror", lambda error: complaints.append(str(error)))
    window.on("dialog", dismiss)
    # Else a test's wait for it takes it over only after the key was pressed, on a busy machine.
    window.on("filechooser", lambda _: None)
    yield window
    window.close()
    if complaints:  # pytest does not rewrite assertions here: a bare one would not show them
        pytest.fail("\n".join(["the page complained:", *complaints]))
