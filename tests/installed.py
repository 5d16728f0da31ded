"""What pip leaves of a package of plug-ins."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def install(project: dict[str, Any], folder: Path) -> None:
    """Write into ``folder`` what pip leaves there of a ``project``, the table of its pyproject.toml."""
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(groups), encoding="utf-8")
