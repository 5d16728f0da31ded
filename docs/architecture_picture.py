"""The pictures of the rooms: ``python docs/architecture_picture.py`` writes :data:`SHEETS` into ``docs``.

The floors are those of the linter's contracts in pyproject.toml. Walks go through them, each a line whose
stops are numbered as on the page.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
WIDTH, ROW, BOX, LEFT = 900, 48, 30, 20


class Walk(NamedTuple):
    """A section of the page: the rooms of its steps, in order."""

    title: str
    colour: str
    rooms: tuple[str, ...]


class Sheet(NamedTuple):
    """The rooms of one package, and walks through them."""

    container: str
    walks: tuple[Walk, ...]


SHEETS: Mapping[str, Sheet] = {
    "architecture.svg": Sheet(
        "vflens",
        (
            Walk(
                "A column becomes a figure",
                "#2a6fb0",
                (
                    "tables",
                    "clients",
                    "defenses",
                    "models",
                    "member",
                    "attacks",
                    "score",
                    "storage",
                    "experiments",
                ),
            ),
            Walk(
                "A partial logit crosses the wire",
                "#c0392b",
                ("coordinator", "wire", "services", "clients", "protocol", "coordinator"),
            ),
            Walk("A defence acts", "#2e8b57", ("config", "registry", "plugins", "defenses", "plugins")),
        ),
    ),
    "experiments.svg": Sheet(
        "vflens.experiments",
        (Walk("A sweep becomes a page", "#2a6fb0", ("sweeps", "run", "results", "sweeps", "pages")),),
    ),
}


def floors(container: str) -> list[list[str]]:
    """The rooms of every floor, from the top."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contracts = project["tool"]["importlinter"]["contracts"]
    (layers,) = (c["layers"] for c in contracts if c.get("containers") == [container])
    return [layer.split(" | ") for layer in layers]


def picture(sheet: Sheet) -> str:
    """The SVG."""
    rooms, top = floors(sheet.container), 16 + 20 * len(sheet.walks)
    middle = {  # of every room: here its stops lie
        name: (LEFT + (i + 0.5) * (WIDTH - 2 * LEFT) / len(floor), top + ROW * level + BOX / 2)
        for level, floor in enumerate(rooms)
        for i, name in enumerate(floor)
    }
    height = top + ROW * len(rooms)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        *(_box(name, *middle[name], (WIDTH - 2 * LEFT) / len(floor)) for floor in rooms for name in floor),
        *(_walk(i, walk, middle) for i, walk in enumerate(sheet.walks)),
        "</svg>\n",
    ]
    return "\n".join(drawn)


def _box(name: str, x: float, y: float, width: float) -> str:
    return (
        f'<rect x="{x - width / 2 + 3:.1f}" y="{y - BOX / 2:.1f}" width="{width - 6:.1f}" height="{BOX}" '
        f'rx="4" fill="#f2f2f2" stroke="#b0b0b0"/>'
        f'<text x="{x - width / 2 + 14:.1f}" y="{y + 5:.1f}">{name}</text>'
    )


def _walk(number: int, walk: Walk, middle: dict[str, tuple[float, float]]) -> str:
    """The line of a walk, its numbered stops, and its entry in the legend."""
    title, colour, rooms = walk
    shift = 60.0 * (number - 1) - 30  # stops of several walks in one room stand side by side
    slant = 12.0  # later stops lie further right, so that no line hides another
    stops = [(middle[room][0] + shift + slant * i, middle[room][1]) for i, room in enumerate(rooms)]
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in stops)
    dots = "".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="9" fill="{colour}"/><text x="{x:.1f}" y="{y + 4:.1f}" '
        f'fill="white" font-size="11" text-anchor="middle">{i}</text>'
        for i, (x, y) in enumerate(stops, 1)
    )
    legend = 20 + 20 * number
    return (
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-opacity="0.45" stroke-width="2"/>'
        f"{dots}"
        f'<circle cx="{LEFT + 8}" cy="{legend}" r="6" fill="{colour}"/>'
        f'<text x="{LEFT + 20}" y="{legend + 4}">{escape(title)}</text>'
    )


if __name__ == "__main__":
    for name, sheet in SHEETS.items():
        (ROOT / "docs" / name).write_text(picture(sheet), encoding="utf-8")
