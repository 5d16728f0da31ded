"""A page as a PDF: printed by an installed Chromium, which opens the file alone."""

from pathlib import Path
from tempfile import TemporaryDirectory

from vflens.errors import StorageError
from vflens.experiments.pages.chromium import SECONDS, browser, opened
from vflens.storage.files import write_whole


def write_pdf(page: Path, out: Path, *, seconds: float = SECONDS) -> None:
    """Print ``page`` (HTML) to ``out``, whole or not at all.

    Raises:
        ConfigError: there is no Chromium.
        StorageError: it fails, takes longer than ``seconds``, or ``out`` cannot be written.
    """
    program = browser("--pdf")
    with TemporaryDirectory(prefix="vflens-pdf-") as scratch:
        printed = Path(scratch) / "page.pdf"
        opened(program, page, "--no-pdf-header-footer", f"--print-to-pdf={printed}", seconds=seconds)
        if not printed.is_file():
            raise StorageError(f"{program} printed nothing of {page}: print the page from your browser")
        write_whole(out, printed.read_bytes(), remedy="another place")
