"""Pictures of the plug-ins' pages: ``python docs/plugin_pictures.py`` measures and writes them, in about a
minute.

``docs/attacks/errors.svg``: every white-box and agnostic attack on wine's last seven columns, prediction
rows. ``docs/attacks/black_box.svg``: one column, more and more predictions. ``docs/defenses/audit.svg``: what
``vflens audit wine`` finds of every defence that it tries.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from vflens import attacks
from vflens.experiments.audit.bench import Plan
from vflens.experiments.audit.run import audit
from vflens.experiments.audit.subject import load_subject
from vflens.experiments.figures._data import dealt, trained
from vflens.experiments.figures._windows import window_system
from vflens.experiments.figures.rvg_black_box import COUNTS, instance_rows
from vflens.experiments.figures.var_agnostic import agnostic_rows
from vflens.plugins.attack import LinearAttack, installed_attack
from vflens.registry import ATTACKS
from vflens.types import Knowledge, Moments

DOCS = Path(__file__).parent
BLUE, RED, GREY = "#2a6fb0", "#c0392b", "#808080"


def linear() -> list[str]:
    """The attacks that solve A x = b and read no alphabets."""
    kinds = {name: installed_attack(name) for name in ATTACKS.names()}
    return [
        n for n, k in kinds.items() if k and issubclass(k, LinearAttack) and Knowledge.METADATA not in k.needs
    ]


def attack_errors() -> str:
    """One bar per attack: MSE per feature on the same rows of the same model."""
    data, model = dealt("wine", 0, "clean"), trained("wine", 0, True, recipe="clean")
    columns = np.arange(6, 13)
    x, known = data.x[data.predict_rows], data.x[data.train_rows[:50]][:, columns]
    system, truth = window_system(model, x, columns), x[:, columns]
    moments = Moments(known.mean(axis=0), np.cov(known.T, bias=True))
    found = {}
    for name in linear():
        estimate = attacks.estimate(name, system.A, system.b, rng=np.random.default_rng(0), moments=moments)
        found[name] = float(((estimate.values - truth) ** 2).mean())
    rows = agnostic_rows(
        {}, (data, model), (data.train_rows, {"predict": data.predict_rows}), columns[None], (20,)
    )
    errors = {r["attack"]: r["mse"] for r in rows}
    found |= {"agnostic": errors["am"], "refined_agnostic": errors["ram 20"]}
    blind = float(((truth - known.mean(axis=0)) ** 2).mean())
    order = sorted(found.items(), key=lambda item: item[1])
    title = (
        f"wine, 7 of 13 columns, 3 classes, {len(x)} prediction rows: MSE per column "
        "(dashed: the mean of 50 rows)"
    )
    return bars(title, [(name, mse, f"{mse:.4f}") for name, mse in order], blind)


def defence_errors() -> str:
    """One bar per defence and setting: the error of the strongest attack against it."""
    subject = load_subject("wine", classes=None, columns=None, id_column="id")
    record = audit(subject, Plan(models=3, training="secure"), lambda what, done, total: None)
    tried = sorted((d for d in record.defenses if d.mse is not None), key=lambda d: d.mse or 0.0)
    shown = [
        (
            " ".join([d.defense, *(f"{k} {_shown(v)}" for k, v in d.settings.items())]),
            d.mse or 0.0,
            f"{d.mse:.3f}, {d.price}",
        )
        for d in tried
    ]
    undefended = ("no defence", record.strongest.mse, f"{record.strongest.mse:.3f}")
    return bars(
        "vflens audit wine, secure training: error of the strongest attack, and cost (dashed: "
        f"{record.blind_guess.replace('_', ' ')})",
        [undefended, *shown],
        record.blind_error,
    )


def _shown(value: object) -> str:
    return f"{value:g}" if isinstance(value, float | int) else f"{value}"


def black_box_errors() -> str:
    """MSE against N for the square of a uniform column, ω = −2, b₀ = 0.7, the mean of 200 draws."""
    rng, rows = np.random.default_rng(0), list[dict[str, Any]]()
    for instance in range(200):
        x = rng.random(max(COUNTS)) ** 2
        rows += instance_rows(instance, x, -2 * x + 0.7, 1 / 3)
    case = "population mean known"
    shown = []
    for n in (1, 2, 5, 10, 20, 50, 100):
        mse = float(np.mean([r["mse"] for r in rows if (r["case"], r["n"]) == (case, n)]))
        shown.append((f"{n} predictions", mse, f"{mse:.4f}"))
    return bars(
        "one column of mean 1/3, which is known, from 0 to 1: MSE (dashed: the guess ½)", shown, 7 / 60
    )


def bars(title: str, rows: Sequence[tuple[str, float, str]], line: float) -> str:
    """Horizontal bars (label, value, text) with a dashed line; values beyond three times the line are cut
    off.
    """
    left, width, step = 250, 330, 20
    height, scale = 40 + step * len(rows), width / max(line * 1.2, min(3 * line, max(r[1] for r in rows)))
    drawn = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="760" height="{height + 10}" '
        'font-family="sans-serif" font-size="12">',
        f'<rect width="760" height="{height + 10}" fill="white"/><text x="8" y="18" '
        f'font-size="13">{escape(title)}</text>',
    ]
    for i, (label, value, text) in enumerate(rows):
        y, length = 32 + step * i, min(value * scale, width)
        drawn.append(
            f'<text x="{left - 8}" y="{y + 12}" text-anchor="end">{escape(label)}</text>'
            f'<rect x="{left}" y="{y}" width="{length:.1f}" height="14" '
            f'fill="{BLUE if value < line else RED}"/>'
            f'<text x="{left + length + 6:.0f}" y="{y + 12}">{escape(text)}</text>'
        )
    at = left + line * scale
    drawn.append(
        f'<line x1="{at:.1f}" x2="{at:.1f}" y1="26" y2="{height}" stroke="{GREY}" stroke-dasharray="5 '
        '4"/></svg>\n'
    )
    return "\n".join(drawn)


PICTURES = {
    "attacks/errors.svg": attack_errors,
    "attacks/black_box.svg": black_box_errors,
    "defenses/audit.svg": defence_errors,
}

if __name__ == "__main__":
    for name, picture in PICTURES.items():
        (DOCS / name).write_text(picture(), encoding="utf-8")
