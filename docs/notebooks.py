"""A tutorial's notebook executed, as a page.

The repository keeps notebooks without outputs (docs/adr/0022). Each build runs every cell; one that fails
ends the build.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

SECONDS = 300  # a cell's deadline; a whole tutorial takes less than a minute on two idle cores


def executed(notebook: Path) -> str:
    """The page: text as it stands, code in fences, each followed by what it gave."""
    import nbformat
    from nbclient import NotebookClient
    from traitlets.config import Config

    read = nbformat.read(notebook, as_version=4)
    place = {"metadata": {"path": str(notebook.parent)}}
    with TemporaryDirectory() as folder:  # the kernel's sockets are files there: no port
        config = Config(KernelManager={"transport": "ipc", "ip": f"{folder}/kernel"})
        client = NotebookClient(
            read, timeout=SECONDS, startup_timeout=SECONDS, resources=place, config=config
        )
        return page(client.execute())


def page(notebook: Any) -> str:
    """A notebook's cells as Markdown."""
    return "\n\n".join(part for cell in notebook["cells"] for part in _cell(cell)) + "\n"


def _cell(cell: Any) -> list[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] != "code":
        return [source]
    return [f"```python\n{source}\n```", *(_output(output) for output in _joined(cell["outputs"]))]


def _joined(outputs: list[Any]) -> list[Any]:
    """``outputs`` with what was printed piece by piece as one."""
    joined: list[Any] = []
    for output in outputs:
        if joined and joined[-1].get("name") == output.get("name") == "stdout":
            joined[-1] = {**output, "text": joined[-1]["text"] + output["text"]}
        else:
            joined.append(output)
    return joined


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
