"""The picture of the estimators: ``python docs/estimators_picture.py`` writes ``docs/estimators.svg``.

Two features and one equation, x₁ + 2x₂ = ½: the box, the solutions in it, and what each estimator answers.
"""

from __future__ import annotations

from pathlib import Path

from vflens import attacks

SIDE, MARGIN = 420, 40
A, B = [[1.0, 2.0]], [[0.5]]
NAMES = ("half", "ls", "half_star", "rcc2", "rcc1", "chebyshev", "cls", "gia")


def picture() -> str:
    """The SVG."""
    found: dict[tuple[float, float], list[str]] = {}
    for name in NAMES:
        x, y = attacks.estimate(name, A, B).values[0]
        found.setdefault((round(float(x), 2), round(float(y), 2)), []).append(name)
    size = SIDE + 2 * MARGIN
    ends = [_place(0.5, 0.0), _place(0.0, 0.25)]
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{size}" height="{size}" font-family="sans-serif" '
        'font-size="13">',
        f'<rect width="{size}" height="{size}" fill="white"/>',
        f'<rect x="{MARGIN}" y="{MARGIN}" width="{SIDE}" height="{SIDE}" fill="#f4f6fa" stroke="#667"/>',
        '<line x1="{0[0]:.0f}" y1="{0[1]:.0f}" x2="{1[0]:.0f}" y2="{1[1]:.0f}" stroke="#2a6fb0" '
        'stroke-width="3"/>'.format(*ends),
        f'<text x="{MARGIN}" y="{size - 12}">the box, and the solutions of x₁ + 2x₂ = ½ in it</text>',
    ]
    for (x, y), names in found.items():
        across, down = _place(x, y)
        lines.append(f'<circle cx="{across:.0f}" cy="{down:.0f}" r="5" fill="#c0392b"/>')
        lines.append(f'<text x="{across + 9:.0f}" y="{down - 6:.0f}">{", ".join(names)}</text>')
    return "\n".join([*lines, "</svg>", ""])


def _place(x: float, y: float) -> tuple[float, float]:
    return MARGIN + SIDE * x, MARGIN + SIDE * (1 - y)


if __name__ == "__main__":
    Path(__file__).with_name("estimators.svg").write_text(picture(), encoding="utf-8")
