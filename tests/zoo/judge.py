"""Compare what ``vflens audit --weights`` prints of training with the rows that trained: ``judge.py FOLDER``.

It ends with 1 where a count is false although no row had a weight and every tree saw the same rows, or a
sentence lacks this condition. What is false where the condition fails is counted apart.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple, cast

import numpy as np

from vflens.errors import DataError
from vflens.experiments.audit.boosted import told_of_training
from vflens.experiments.audit.given import Joint
from vflens.experiments.audit.given_run import training
from vflens.experiments.audit.record import TreeFile
from vflens.experiments.weights.tree_file import read_trees
from vflens.experiments.weights.trees import TreeModel
from vflens.numerics.boosting.rates import rates
from vflens.numerics.boosting.stated_counts import stated_means
from vflens.types import Array, Document

_CONDITION = ("no row had a weight", "every tree saw the same rows")
_BOX = "a box"  # how the finding begins: its condition is also that no value was missing
_NUMBERS = (_BOX, "class ", "a leaf ", "a mean label ")
_SINGLE = 4e-6  # of a label in single precision, beside the largest


class Model(NamedTuple):
    """A file and its truth: rows ``x`` (n, D), labels ``y`` (n,), ``leaf`` (n, k) of first trees."""

    file: Path
    about: Mapping[str, Any]
    x: Array
    y: Array
    leaf: Array


class Verdict(NamedTuple):
    """Numbers that were compared of leaves and boxes, and sentences that are false."""

    leaves: int
    boxes: int
    false: list[str]
    refused: str = ""


def models(folder: Path) -> list[Model]:
    """Those that ``train.py`` or ``train_others.py`` wrote to a folder."""
    about = json.loads((folder / "zoo.json").read_text(encoding="utf-8"))
    with np.load(folder / "truth.npz") as truth:
        parts = {key: truth[key] for key in truth.files}
    return [
        Model(folder / name, of, *(parts[f"{name}:{part}"] for part in ("x", "y", "leaf")))
        for name, of in about.items()
    ]


def told(model: Model) -> tuple[TreeModel, TreeFile]:
    """What the audit of all columns prints of a model; raises DataError for one that it refuses."""
    tree_model, x = read_trees(model.file), np.nan_to_num(model.x)
    low, high = x.min(axis=0) - 1, x.max(axis=0) + 1
    joint = SimpleNamespace(x=x, mine=np.arange(x.shape[1]), bounds=np.stack([low, high], axis=1))
    return tree_model, told_of_training(tree_model, cast(Joint, joint))


def judged(model: Model) -> Verdict:
    """Each number that is printed beside the truth."""
    try:
        tree_model, found = told(model)
    except DataError as error:
        return Verdict(0, 0, [], str(error))
    leaves, boxes = found.training_rows, found.training_boxes.get("boxes", [])
    false = [*_of_leaves(model, leaves), *_of_sentences(found)]
    if leaves and "mean_label_off" in leaves[0]:
        false += _of_labels(model, tree_model, leaves)
    for box in boxes:
        inside = _inside(model.x, box)
        rows, ones = int(inside.sum()), int(model.y[inside].sum())
        if rows != box["rows"] or not box["least"] <= ones <= box["most"]:
            false.append(
                f"a box of {box['rows']} rows, {box['least']} to {box['most']} of class 1: {rows}, {ones}"
            )
    return Verdict(len(leaves), len(boxes), false)


def _of_leaves(model: Model, leaves: Sequence[Document]) -> list[str]:
    """For each class the leaves whose numbers differ: by its values, or by all numbers where some miss."""
    false = []
    for k in range(model.leaf.shape[1]):
        name = k + (model.leaf.shape[1] == 1)
        of_class = [leaf for leaf in leaves if leaf.get("class", name) == name]
        member = model.y == name
        if leaves and model.about["missing"]:
            reached = [model.leaf[:, k] == leaf for leaf in np.unique(model.leaf[:, k])]
            true = Counter((int(rows.sum()), int(member[rows].sum())) for rows in reached)
        else:
            true = Counter(
                (int(r.sum()), int(member[r].sum()))
                for r in (_inside(model.x, leaf) for leaf in of_class)
                if r.any()
            )
        if any("class" not in leaf for leaf in of_class):  # a regression has no members
            true = Counter((rows, 0) for rows, _ in true.elements())
        stated = Counter((leaf["rows"], leaf.get("members", 0)) for leaf in of_class if leaf["rows"])
        false += [
            f"class {name}: a leaf of {pair}, in truth {sorted(true - stated)}" for pair in stated - true
        ]
        if not model.about["missing"]:
            false += _misplaced(model, of_class, member)
    return false


def _misplaced(model: Model, leaves: Sequence[Document], member: Array) -> list[str]:
    """Leaves whose rows stand elsewhere."""
    false = []
    for leaf in leaves:
        inside = _inside(model.x, leaf)
        due = (int(inside.sum()), int(member[inside].sum()))
        if (leaf["rows"], leaf.get("members", due[1])) != due:
            false.append(f"a leaf has {leaf['rows']} rows, {leaf.get('members')} members: {due}")
    return false


def _of_labels(model: Model, tree_model: TreeModel, leaves: Sequence[Document]) -> list[str]:
    """The mean labels of a regression that follow from the leaves' values, beside the true ones."""
    if any(leaf["mean_label_off"] is None for leaf in leaves):
        return []
    training = tree_model.training
    assert training.base is not None
    first, base = training.trees[0], float(training.base[0])
    if training.stated is None:
        means = base - rates(training.trees).gradients(first)[0] / [leaf["rows"] for leaf in leaves]
    else:
        means = stated_means(first, base, training.stated)
    false = []
    for leaf, mean in zip(leaves, means.tolist(), strict=True):
        inside = _inside(model.x, leaf)
        if not inside.sum() or model.about["missing"]:
            continue
        true = model.y[inside].mean()
        if abs(mean - true) > leaf["mean_label_off"] + _SINGLE * np.abs(model.y).max():
            false.append(f"a mean label of {mean:.6g} ± {leaf['mean_label_off']:.2g}: {true:.6g}")
    return false


def _of_sentences(found: TreeFile) -> list[str]:
    """Printed sentences on training rows that lack their condition."""
    needed = {"training_rows": _CONDITION, "training_boxes": (*_CONDITION, "no value was missing")}
    text = [s for s in training(found) if "of the first tree" in s or " of values, and the class of " in s]
    stated = [key for key in needed if getattr(found, key)]
    if len(text) != len(stated):
        return [f"{len(text)} sentences on {stated}"]
    return [s for s, key in zip(text, stated, strict=True) if not all(words in s for words in needed[key])]


def _inside(x: Array, box: Document) -> Array:
    """Whether each row (n,) has values from ``low`` to below ``high``."""
    inside: Array = ((x >= box["low"]) & (x < np.array(box["high"]))).all(axis=1)
    return inside


def by_command(model: Model) -> list[str]:
    """Whether the whole command prints what :func:`told` returns."""
    _, found = told(model)
    names = [f"f{j}" for j in range(model.x.shape[1])]
    with tempfile.TemporaryDirectory() as folder:
        table, page = Path(folder, "table.csv"), Path(folder, "page.html")
        rows = [",".join(map(repr, [i, *row])) for i, row in enumerate(model.x.astype(float).tolist())]
        table.write_text("\n".join([",".join(["id", *names]), *rows]), encoding="utf-8")
        given = [
            "audit",
            str(table),
            "--columns",
            ",".join(names),
            "--weights",
            str(model.file),
            "--rows",
            "10",
        ]
        command = [str(Path(sys.executable).with_name("vflens")), *given, "--out", str(page), "--json"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
    if ran.returncode:
        return [f"the command ends with {ran.returncode}: {ran.stderr[-300:]}"]
    printed = json.loads(ran.stdout)
    stated = TreeFile(**{f.name: printed[f.name] for f in fields(TreeFile)})
    if _counts(found) != _counts(stated):
        return ["the command prints other counts"]
    due = list(training(stated))  # its widths are beside the table's ranges
    return [] if printed["verdict"][-len(due) :] == due else ["it prints other sentences"]


def _counts(of: TreeFile) -> list[list[tuple[Any, ...]]]:
    """The numbers of leaves and boxes."""
    parts = (
        (of.training_rows, ("class", "rows", "members")),
        (of.training_boxes.get("boxes", []), ("rows", "least", "most")),
    )
    return [[tuple(one.get(key) for key in keys) for one in listed] for listed, keys in parts]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--commands", type=int, default=0, help="models that the whole command audits, too")
    parser.add_argument("--report", type=Path)
    parser.add_argument("--like", default="", help="options with these letters alone")
    asked = parser.parse_args()
    zoo = [model for model in models(asked.folder) if asked.like in model.about["option"]]
    with ProcessPoolExecutor(2) as pool:
        verdicts = list(pool.map(judged, zoo, chunksize=4))
    table, bad = _table(zoo, verdicts)
    told_of = [
        m
        for m, v in zip(zoo, verdicts, strict=True)
        if v.leaves and not m.about["missing"] and len(m.y) < 400
    ]
    some = told_of[:: max(1, len(told_of) // asked.commands)][: asked.commands] if asked.commands else []
    for model in some:
        bad += [f"{model.file.name}: {words}" for words in by_command(model)]
    end = f"{len(some)} of them by the whole command. False under the condition: {len(bad)}\n"
    print(table + end, *bad, sep="\n")
    if asked.report:
        asked.report.write_text(table + end, encoding="utf-8")
    return bool(bad)


def under_condition(model: Model, false: Sequence[str]) -> list[str]:
    """What is false although the condition that is printed holds, and sentences that lack it."""
    equal, missing = model.about["equal"], model.about["missing"]
    return [
        words
        for words in false
        if (equal and not (missing and words.startswith(_BOX))) or not words.startswith(_NUMBERS)
    ]


def _table(zoo: Sequence[Model], verdicts: Sequence[Verdict]) -> tuple[str, list[str]]:
    """Numbers by option, and what is false under the condition."""
    sums: dict[str, Counter[str]] = defaultdict(Counter)
    bad = []
    for model, verdict in zip(zoo, verdicts, strict=True):
        of, false = sums[model.about["option"]], verdict.false
        under = under_condition(model, false)
        of.update(
            models=1, refused=bool(verdict.refused), leaves=bool(verdict.leaves), boxes=bool(verdict.boxes)
        )
        of.update(
            compared=verdict.leaves + verdict.boxes, false=len(under), conditional=len(false) - len(under)
        )
        bad += [f"{model.file.name}: {words}" for words in under]
    keys = ("models", "refused", "leaves", "boxes", "compared", "false", "conditional")
    total: Counter[str] = sum(sums.values(), Counter())
    lines = [
        f"{option:28}" + "".join(f"{of[key]:12}" for key in keys)
        for option, of in [*sums.items(), ("all", total)]
    ]
    head = f"{'option':28}" + "".join(f"{key:>12}" for key in keys)
    return "\n".join([head, *lines]) + "\n", bad


if __name__ == "__main__":
    sys.exit(main())
