"""Self-contained pages: Jinja templates, plotly inside, written whole; they open offline and load nothing."""

import base64
import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from vflens.errors import printable
from vflens.storage.files import write_whole

_OURS = "\n\u200b\u00a0"  # unprintable characters in our own texts


@cache  # to compile a template takes longer than to render it
def templates(**filters: Callable[..., Any]) -> Environment:
    """The templates with these filters: everything is escaped, also control and invisible characters, which
    names can hold; an unknown name is an error, ``sha256`` is for the policy.
    """
    folder = Path(__file__).parent / "templates"
    environment = Environment(
        loader=FileSystemLoader(folder), autoescape=True, undefined=StrictUndefined, finalize=_shown
    )
    environment.trim_blocks = environment.lstrip_blocks = True
    environment.filters.update(filters, sha256=_sha256)
    return environment


def _shown(value: object) -> object:
    return printable(value, keep=_OURS) if type(value) is str else value


@cache
def plotly() -> Markup:
    """The script of plotly.js, of scatter plots and bars alone, for embedding in a page."""
    script = (Path(__file__).parent / "plotly" / "plotly-basic.min.js").read_text(encoding="utf-8")
    return Markup(script.replace("</script", "<\\/script"))  # no string may hold a closing tag


def write_page(file: Path, page: str) -> None:
    """Write ``page`` beside ``file``, then rename: a reader sees the old page or the new one.

    Pages are for other readers: the umask sets the modes of the page and of a new folder.

    Raises:
        StorageError: it cannot be written.
    """
    write_whole(file, page.encode(), remedy="another place")


def _sha256(script: str) -> str:
    return base64.b64encode(hashlib.sha256(str(script).encode()).digest()).decode()
