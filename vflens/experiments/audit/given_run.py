"""``vflens audit --weights`` of trees and networks: attacks on the given model, and the verdict in words."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from vflens.experiments.audit.boosted import attack_trees
from vflens.experiments.audit.given import Joint
from vflens.experiments.audit.outcomes import column_blind
from vflens.experiments.pages.page import templates, write_page
from vflens.experiments.results.results import BLIND_GUESSES
from vflens.experiments.results.verdict import number
from vflens.experiments.weights.network import Graph
from vflens.experiments.weights.xgboost import TreeModel
from vflens.types import Document, Facts, Progress
from vflens.words import counted

_ATTACKS = {"pra": "path restriction", "wmi": "white-box inversion"}


def audit_given(model: Graph | TreeModel, joint: Joint, weights: Path, progress: Progress) -> Document:
    """All results under stable keys: see ``docs/others.md``.

    Raises:
        ConfigError: a network, and torch is not installed.
    """
    subject = joint.bench.subject
    if isinstance(model, TreeModel):
        found = attack_trees(model, joint, progress)
    else:
        from vflens.experiments.audit.inverted import attack_network  # needs torch

        found = attack_network(model, joint, progress)
    return {
        "subject": subject.name,
        "weights": str(weights),
        "model": _described(model),
        "rows": len(subject.x),
        "columns": [c.name for c in subject.columns],
        "inputs": model.width,
        "others_drawn": joint.drawn,
        "clipped": subject.clipped,
        "blind": joint.bench.blind,
        "blind_guess": joint.bench.blind_guess,
        "column_blind": column_blind(joint.bench.truth).tolist(),
        **found,
        "plan": asdict(joint.bench.plan),
    }


def _described(model: Graph | TreeModel) -> str:
    if isinstance(model, TreeModel):
        return f"{counted(len(model.trees), 'boosted tree')}"
    return f"a network of {counted(model.layers, 'matrix', many='matrices')}"


def sentences(found: Facts) -> list[str]:
    """The verdict: the error of each attack beside the blind guess, right branches, what was drawn."""
    blind = found["blind"][found["blind_guess"]]
    guess = f"best blind guess ({BLIND_GUESSES[found['blind_guess']]}) {number(blind)}"
    said = []
    for a in found["attacks"]:
        words = (
            f"From the {a['released']} of {found['model']} {_ATTACKS[a['attack']]} errs by "
            f"{number(a['mse'])} per column on {counted(a['rows'], 'row')}, {guess}."
        )
        said.append(words + _paths(a, found))
    if found["others_drawn"]:
        said.append("The inputs of others are random: the file holds yours alone.")
    said.append("What its training gave away is not in these figures: they are of what the model releases.")
    return said


def _paths(attack: Facts, found: Facts) -> str:
    if "right_branches" not in attack:
        return ""
    if attack["right_branches"] is None:
        return " No tree splits one of your columns: they reveal nothing."
    unfinished = f"; for {attack['unfinished']:.0%} the search stopped early" if attack["unfinished"] else ""
    return (
        f" {attack['right_branches']:.1%} of the branches on your columns are right, by a blind guess "
        f"{found['blind_branches']:.1%}; {attack['determined']:.0%} of the rows have one possible "
        f"path{unfinished}."
    )


def table(found: Facts) -> list[tuple[str, ...]]:
    """Attack, what it reads, rows, error with its 95 % interval, blind error, right branches, blind ones."""
    blind = number(found["blind"][found["blind_guess"]])
    rows = [
        (
            a["attack"],
            a["released"],
            str(a["rows"]),
            number(a["mse"]),
            f"{number(a['low'])} … {number(a['high'])}",
            blind,
            number(a.get("right_branches")),
            number(found.get("blind_branches")),
        )
        for a in found["attacks"]
    ]
    header = ("attack", "reads", "rows", "MSE", "range", "blind", "right branches", "blind branches")
    return [header, *rows]


def columns_table(found: Facts) -> list[tuple[str, ...]]:
    """Each column's error by each attack and by the best blind guess; the mean width of its interval."""
    figures = {f"MSE, {a['released']}": a["columns"] for a in found["attacks"]}
    figures["blind"] = found["column_blind"]
    figures |= {f"width, {a['released']}": a["widths"] for a in found["attacks"] if "widths" in a}
    rows = zip(found["columns"], *figures.values(), strict=True)
    return [("column", *figures), *((name, *map(number, values)) for name, *values in rows)]


def write_given(found: Facts, out: Path) -> None:
    """Write the page to ``out``.

    Raises:
        StorageError: it cannot be written.
    """
    page = templates().get_template("given.html.j2")
    shown = {"found": found, "sentences": sentences(found)}
    write_page(out, page.render(**shown, tables=[table(found), columns_table(found)]))
