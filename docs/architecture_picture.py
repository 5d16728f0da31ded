"""The picture of the rooms: ``python docs/architecture_picture.py`` writes ``docs/architecture.svg``.

The floors are those of the linter's contract in pyproject.toml. Three walks go through them, each a line
whose stops are numbered as on the page.
"""

from __future__ import annotations

import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
WIDTH, ROW, BOX, TOP, LEFT = 900, 48, 30, 76, 20
#: Walk → its colour and the rooms of its stops, in order.
WALKS = {
    "A column becomes a figure": (
        "#2a6fb0",
        ("tables", "clients", "defenses", "models", "member", "attacks", "score", "storage", "experiments"),
    ),
    "A partial logit crosses the wire": (
        "#c0392b",
        ("coordinator", "wire", "services", "clients", "protocol", "coordinator"),
    ),
    "A defence acts": ("#2e8b57", ("config", "registry", "plugins", "defenses", "plugins")),
}


def floors() -> list[list[str]]:
    """The rooms of every floor, from the top."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers: list[str] = project["tool"]["importlinter"]["contracts"][0]["layers"]
    return [layer.split(" | ") for layer in layers]


def picture() -> str:
    """The SVG."""
    rooms = floors()
    middle = {  # of every room: here its stops lie
        name: (LEFT + (i + 0.5) * (WIDTH - 2 * LEFT) / len(floor), TOP + ROW * level + BOX / 2)
        for level, floor in enumerate(rooms)
        for i, name in enumerate(floor)
    }
    height = TOP + ROW * len(rooms)
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        *(_box(name, *middle[name], (WIDTH - 2 * LEFT) / len(floor)) for floor in rooms for name in floor),
        *(_walk(i, middle) for i in range(len(WALKS))),
        "</svg>\n",
    ]
    return "\n".join(drawn)


def _box(name: str, x: float, y: float, width: float) -> str:
    return (
        f'<rect x="{x - width / 2 + 3:.1f}" y="{y - BOX / 2:.1f}" width="{width - 6:.1f}" height="{BOX}" '
        f'rx="4" fill="#f2f2f2" stroke="#b0b0b0"/>'
        f'<text x="{x - width / 2 + 14:.1f}" y="{y + 5:.1f}">{name}</text>'
    )


def _walk(number: int, middle: dict[str, tuple[float, float]]) -> str:
    """The line of a walk, its numbered stops, and its entry in the legend."""
    title, (colour, rooms) = list(WALKS.items())[number]
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
    (ROOT / "docs/architecture.svg").write_text(picture(), encoding="utf-8")
