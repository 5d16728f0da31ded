"""Writes the measured table of ``docs/attacks/exact_inversion.md``.

``VFLENS_DATA=… python docs/exact_inversion_grid.py`` runs what the folder ``.scoreboard`` lacks, cell by
cell, and puts into the page what is there: an interrupted call goes on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn.functional import cross_entropy

from vflens.experiments.figures.tableak import Encoded, encoded
from vflens.experiments.outcome.batches import Layers, fresh, inverted
from vflens.numerics.assignment import in_order_of
from vflens.numerics.gradients.exact_batch import EXACT
from vflens.types import Array

ROOT = Path(__file__).parents[1]
KEPT, PAGE = ROOT / ".scoreboard" / "exact_inversion.jsonl", ROOT / "docs" / "attacks" / "exact_inversion.md"
BEGIN, END = "<!-- measured -->\n", "<!-- end -->\n"
TABLES, SIZES = ("adult", "bank", "digits"), (2, 4, 8, 12, 16, 24, 32)
HIDDEN = (100, 100), (32,), (256,), (32, 32)
BATCHES, TRAINED_STEPS = 3, 500
_ORDER = 2, 4, 8, 16, 24, 12, 32
OTHERS = [(table, (100, 100), trained, 8) for table in ("adult", "bank") for trained in (False, True)]


def cells() -> Iterator[tuple[Any, ...]]:
    """Table, hidden layers, whether they are trained, rows of a batch: what says most comes first."""
    for size, trained, hidden, table in product(_ORDER, (False, True), HIDDEN, TABLES):
        yield table, hidden, trained, size


def network(data: Encoded, hidden: tuple[int, ...], trained: bool, seed: int) -> Layers:
    """Fresh layers, or those after Adam on batches of 64."""
    widths = (data.x.shape[1], *hidden, int(data.labels.max()) + 1)
    layers = fresh(widths, np.random.default_rng((seed, 1)))
    if not trained:
        return layers
    free = [torch.tensor(part, requires_grad=True) for layer in layers for part in layer]
    adam, rng = torch.optim.Adam(free, lr=0.005), np.random.default_rng((seed, 2))
    for _ in range(TRAINED_STEPS):
        places = rng.integers(len(data.x), size=64)
        h = torch.tensor(data.x[places])
        for number in range(0, len(free), 2):
            h = nn.functional.linear(torch.relu(h) if number else h, free[number], free[number + 1])
        adam.zero_grad()
        torch.autograd.backward(cross_entropy(h, torch.tensor(data.labels[places])))
        adam.step()
    parts = [p.detach().numpy() for p in free]
    return [*zip(parts[::2], parts[1::2], strict=True)]


def measured(table: str, hidden: tuple[int, ...], trained: bool, size: int) -> dict[str, Any]:
    """The rows found in each of :data:`BATCHES` batches, in float32 and in float64."""
    data, found = encoded(table), {"float32": 0, "float64": 0}
    for seed in range(BATCHES):
        places = np.random.default_rng((seed, size)).choice(len(data.x), size, replace=False)
        x, labels, layers = data.x[places], data.labels[places], network(data, hidden, trained, seed)
        for precision in found:
            rng = np.random.default_rng((seed, size, 3))
            found[precision] += inverted(x, labels, layers, rng, precision=precision)
    return {**found, "rows": BATCHES * size}


def beside(table: str, hidden: tuple[int, ...], trained: bool, size: int) -> dict[str, Any]:
    """Cells found by ``tabular_inversion`` (labels known, eight starts of 300 steps), and by other rows of
    the table matched alike; rows that are exact.
    """
    from vflens.attacks.helpers.gradients.table_rows import TableRows, one_hot_groups
    from vflens.attacks.helpers.gradients.tabular import Descents, TableBatch, tabular_inversion

    data, seed = encoded(table), 0
    rng = np.random.default_rng((seed, size))
    places = rng.choice(len(data.x), size, replace=False)
    x, labels, layers = data.x[places], data.labels[places], network(data, hidden, trained, seed)
    model, gradient = _whole(layers, x, labels)
    batch = TableBatch(
        TableRows(one_hot_groups(data.columns)), x.shape[1], labels, int(data.labels.max()) + 1
    )
    guess = {
        "tabular_inversion": tabular_inversion(model, gradient, batch, Descents(8, 300, 100, 0.06), rng).x
    }
    guess["other rows"] = data.guesses(places, rng)["other rows"]
    ordered = {name: in_order_of(x, values[None], labels)[0] for name, values in guess.items()}
    return {
        name: {"cells": data.found(v, x), "rows": int((np.abs(v - x).max(axis=1) < EXACT).sum())}
        for name, v in ordered.items()
    }


def _whole(layers: Layers, x: Array, labels: Array) -> tuple[nn.Module, dict[str, Array]]:
    modules: list[nn.Module] = []
    for weight, bias in layers:
        linear = nn.Linear(weight.shape[1], len(bias), dtype=torch.float64)
        linear.load_state_dict({"weight": torch.tensor(weight), "bias": torch.tensor(bias)})
        modules += [linear, nn.ReLU()]
    model = nn.Sequential(*modules[:-1])
    loss = cross_entropy(model(torch.tensor(x)), torch.tensor(labels))
    found = torch.autograd.grad(loss, list(model.parameters()))
    return model, {n: g.numpy() for (n, _), g in zip(model.named_parameters(), found, strict=True)}


def kept() -> dict[str, dict[str, Any]]:
    """What is there, by cell."""
    lines = KEPT.read_text().splitlines() if KEPT.exists() else []
    return {row.pop("cell"): row for row in map(json.loads, lines)}


def table(rows: dict[str, dict[str, Any]]) -> str:
    """Shares of rows found, of each table, network and size."""
    sizes = [s for s in SIZES if any(json.loads(name)[-1] == s for name in rows)]
    lines = [
        f"| table | hidden layers | model | {' | '.join(map(str, sizes))} |",
        "|---" * (3 + len(sizes)) + "|",
    ]
    for name, hidden, trained in product(TABLES, HIDDEN, (False, True)):
        found = [rows.get(_key("measured", name, hidden, trained, size)) for size in sizes]
        shown = ["–" if f is None else _share(f) for f in found]
        if any(found):
            state = "trained" if trained else "fresh"
            lines.append(f"| {name} | {', '.join(map(str, hidden))} | {state} | {' | '.join(shown)} |")
    lines += ["", "| batch of 8 | attack | cells found | rows exact |", "|---|---|---|---|"]
    for cell in OTHERS:
        for attack, found in rows.get(_key("beside", *cell), {}).items():
            state = "trained" if cell[2] else "fresh"
            lines.append(f"| {cell[0]}, {state} | {attack} | {found['cells']:.2f} | {found['rows']} |")
    return "\n".join(lines) + "\n"


def _share(found: dict[str, Any]) -> str:
    low, high = (f"{found[precision] / found['rows']:.2f}" for precision in ("float32", "float64"))
    return low if low == high else f"{low} ({high})"


def _key(*cell: Any) -> str:
    return json.dumps(cell)


def main() -> None:
    """Run what is missing, and write the page."""
    KEPT.parent.mkdir(exist_ok=True)
    torch.set_num_threads(1)
    work = [("measured", measured, cell) for cell in cells()]
    work[24:24] = [("beside", beside, cell) for cell in OTHERS]
    for what, measure, cell in work:
        rows = kept()
        if _key(what, *cell) not in rows:
            row = partial(measure, *cell)()
            with KEPT.open("a") as file:
                file.write(json.dumps({"cell": _key(what, *cell), **row}) + "\n")
            write()
    write()


def write() -> None:
    """Put what is there into the page."""
    text = PAGE.read_text()
    head, rest = text.split(BEGIN)
    PAGE.write_text(f"{head}{BEGIN}\n{table(kept())}\n{END}{rest.split(END)[1]}")


if __name__ == "__main__":
    main()
