"""A tutorial's notebook executed, as a page.

The repository keeps notebooks without outputs: a difference then shows what somebody wrote, and no figure
can be older than the code. Each build runs every cell; one that fails ends the build.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

SECONDS = 300  # a cell's deadline; a whole tutorial takes less than a minute on two idle cores


def executed(notebook: Path) -> str:
    """The page: text as it stands, code in fences, each followed by what it gave."""
    import nbformat
    from nbclient import NotebookClient
    from traitlets.config import Config

    read = nbformat.read(notebook, as_version=4)
    place = {"metadata": {"path": str(Path(__file__).parents[1])}}
    local = Config(KernelManager={"transport": "ipc"})  # a socket's file, no port
    return page(NotebookClient(read, timeout=SECONDS, resources=place, config=local).execute())


def page(notebook: Any) -> str:
    """A notebook's cells as Markdown."""
    return "\n\n".join(part for cell in notebook["cells"] for part in _cell(cell)) + "\n"


def _cell(cell: Any) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return [source]
    return [f"```python\n{source}\n```", *(_output(output) for output in cell["outputs"])]


def _output(output: Any) -> str:
    """The richest of an output's forms that a page can show."""
    data = output.get("data", {})
    if "text/html" in data:
        return f'<div class="output">{"".join(data["text/html"])}</div>'
    if "image/png" in data:
        png = "".join(data["image/png"]).replace("\n", "")
        return f'<img alt="output" src="data:image/png;base64,{png}">'
    text = "".join(output.get("text") or data.get("text/plain", ""))
    return f"```text\n{text.rstrip()}\n```"
