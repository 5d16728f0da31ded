"""``vflens audit --weights`` of trees and networks: attacks on the given model, and the verdict in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from vflens.experiments.audit.advice import takes
from vflens.experiments.audit.boosted import attack_trees, told_of_training
from vflens.experiments.audit.defenses import reached
from vflens.experiments.audit.given import Joint, Reading
from vflens.experiments.audit.outcomes import (
    AttackOutcome,
    ModelErrors,
    by_column,
    column_blind,
    columns_json,
    summary,
)
from vflens.experiments.audit.run import Keep
from vflens.experiments.audit.words import columns_found, exposed_file, figure_of, worst_cases
from vflens.experiments.audit.worst import stated_in_units, tolerance_of, worst_case
from vflens.experiments.outcome.words import in_own_unit, number
from vflens.experiments.pages.page import templates, write_page
from vflens.experiments.results.results import BLIND_GUESSES
from vflens.experiments.weights.network import Graph
from vflens.experiments.weights.trees import TreeModel
from vflens.registry import ATTACKS
from vflens.types import Document, Facts, Phase, Progress
from vflens.words import counted

_ATTACKS = {"pra": "path restriction", "wmi": "white-box inversion"}
_PATHS = (
    "Path restriction: the choices of one leaf per tree that fit what is released, and the values that they "
    "leave (Luo et al., 2021)."
)
_CONDITION = ", if nobody saw the messages of training"


def audit_given(
    model: Graph | TreeModel, joint: Joint, weights: Path, progress: Progress, keep: Keep
) -> Document:
    """All results under stable keys: see ``docs/others.md``.

    ``keep`` receives the most exposed rows: they are for the party alone.

    Raises:
        ConfigError: a network, and torch is not installed; a tolerance of an unknown column.
    """
    bench, subject = joint.bench, joint.bench.subject
    tolerance = tolerance_of(subject, bench.plan.tolerance)
    readings, blind_branches = _readings(model, joint, progress)
    outcomes = [_outcome(joint, reading) for reading in readings]
    best = min(range(len(readings)), key=lambda i: outcomes[i].mse)
    worst = worst_case(bench, Phase.PREDICT, [readings[best].answer])
    if worst:
        keep({worst.case.scored_set: {worst.case.attack: worst.exposed}})
    units = [] if subject.units is None else subject.units.tolist()
    return {
        "subject": subject.name,
        "weights": str(weights),
        "model": _described(model),
        "tells": [list(fact) for fact in getattr(model, "tells", ())],
        "rows": len(subject.x),
        "columns": bench.names,
        "categories": bench.categories,
        "inputs": model.width,
        "others_drawn": joint.drawn,
        "clipped": subject.clipped,
        "units": units,
        "blind": bench.blind,
        "blind_guess": bench.blind_guess,
        "column_blind": column_blind(bench.truth, {}).tolist(),
        "attacks": [{**asdict(o), **r.facts} for o, r in zip(outcomes, readings, strict=True)],
        **blind_branches,
        "own_units": columns_json(by_column(outcomes, subject)),
        "table_rows": len(subject.x) if subject.there is None else subject.there.rows,
        "worst_cases": [worst.case.json] if worst else [],
        "tolerance": stated_in_units(subject, tolerance),
        "wanted": bench.plan.wanted(),
        "plan": asdict(bench.plan),
    }


def _readings(model: Graph | TreeModel, joint: Joint, progress: Progress) -> tuple[list[Reading], Document]:
    """What attacks make of each release; of trees the share of right branches of a blind guess."""
    if isinstance(model, TreeModel):
        readings, blind = attack_trees(model, joint, progress)
        return readings, {"blind_branches": blind, **told_of_training(model, joint)}
    from vflens.experiments.audit.inverted import attack_network  # needs torch

    return [attack_network(model, joint, progress)], {}


def _outcome(joint: Joint, reading: Reading) -> AttackOutcome:
    tolerance = tolerance_of(joint.bench.subject, joint.bench.plan.tolerance)
    found = [ModelErrors.of(joint.bench.subject, reading.answer, {}, tolerance)]
    return summary(reading.answer.attack, "given", found, joint.bench.subject, released=reading.released)


def _described(model: Graph | TreeModel) -> str:
    if isinstance(model, TreeModel):
        used, trees = len(model.trees), counted(len(model.training.trees), "boosted tree")
        return trees if used == len(model.training.trees) else f"{used} of {trees}"
    return f"a network of {counted(model.layers, 'matrix', many='matrices')}"


def decision(found: Facts) -> str:
    """The first sentence: join as planned, join with less released, or not as planned; against what is
    wanted.
    """
    within, beyond = _within(found), [a for a in found["attacks"] if a not in _within(found)]
    if not beyond:
        return f"Join as planned{_CONDITION}: {_takes(found, max(within, key=_leak))}."
    if within:
        others = "; ".join(f"from the {a['released']} {_takes(found, a)}" for a in beyond)
        first = within[0]
        return (
            f"Join with the {first['released']} alone released{_CONDITION}: {_takes(found, first)}; {others}."
        )
    least = min(beyond, key=_leak)
    return (
        f"Do not join as planned: from the {least['released']} {_takes(found, least)}, and no defence is "
        "measured on a model of another framework."
    )


def _within(found: Facts) -> list[Facts]:
    """The attacks that keep to what is wanted."""
    return [a for a in found["attacks"] if reached(found["wanted"], a["mse"], a["leak"])]


def _leak(attack: Facts) -> float:
    return float(attack["leak"])


def _takes(found: Facts, attack: Facts) -> str:
    return takes(found, attack)


def sentences(found: Facts) -> list[str]:
    """The verdict: whether to join, which columns are found, the error of each attack beside the blind guess
    with right branches, what was drawn.
    """
    blind = found["blind"][found["blind_guess"]]
    guess = f"best blind guess ({BLIND_GUESSES[found['blind_guess']]}) {number(blind)}"
    said = [decision(found), columns_found(found)]
    for a in found["attacks"]:
        words = (
            f"From the {a['released']} of {found['model']} {_ATTACKS[a['attack']]} errs by "
            f"{number(a['mse'])} per column on {counted(a['rows'], 'row')}, {guess}."
        )
        said.append(words + _paths(a, found))
    if found["others_drawn"]:
        said.append("The inputs of others are random: the file holds yours alone.")
    if found.get("unused_trees"):
        said.append(
            "The file's best_iteration ends the scores there, as scikit-learn's wrapper releases them; "
            "Booster.predict adds all trees."
        )
    said.append("What its training gave away is not in these figures: they are of what the model releases.")
    return [*said, *_training(found)] if "training_rows" in found else said


_IF = "If no row had a weight or a base margin of its own{} and every tree saw the same rows, "


def _training(found: Facts) -> list[str]:
    """What trees tell of the rows that trained them, and why it is no more."""
    leaves, boxes, untold = (found[f"training_{key}"] for key in ("rows", "boxes", "untold"))
    said = []
    if leaves:
        said.append(_IF.format("") + (_classes(leaves) if "class" in leaves[0] else _alone(leaves)))
    if boxes:
        said.append(_IF.format(", no value was missing") + _later(boxes))
    if untold:
        begin = "It tells no more here" if leaves else "Here it tells nothing of training rows"
        said.append(f"The file was searched for its training. {begin}: {untold}.")
    if found["pruned_nodes"]:
        said.append(
            f"It keeps {counted(found['pruned_nodes'], 'node')} that pruning cut, with the weights of "
            "smaller groups of rows: they are not read here."
        )
    return said


def _classes(leaves: Sequence[Facts]) -> str:
    """What the first tree of each class tells, by the class that gains most."""
    by_class = {leaf["class"]: [of for of in leaves if of["class"] == leaf["class"]] for leaf in leaves}
    shares = {name: _right(of) for name, of in by_class.items()}
    name = max(shares, key=lambda k: shares[k][0] - shares[k][1])
    right, blind = shares[name]
    rows = sum(leaf["rows"] for leaf in by_class[name])
    classes = f" of each of {counted(len(shares), 'class')}" if len(shares) > 1 else ""
    return (
        f"the file tells how many of {counted(rows, 'training row', ',')} end in each leaf of the first tree"
        f"{classes} and how many of them have its class: whether a row has class {name}, a guess from the "
        f"leaf is right for {right:.1%}, the more frequent answer for {blind:.1%}."
    )


def _alone(leaves: Sequence[Facts]) -> str:
    """What the first tree of a regression tells."""
    rows, alone = sum(leaf["rows"] for leaf in leaves), sum(leaf["rows"] == 1 for leaf in leaves)
    labels = (
        "their labels do not follow"
        if "mean_label_off" not in leaves[0]
        else "the mean label of each leaf follows from its value, and so does the label of each of these"
        if all(leaf["mean_label_off"] is not None for leaf in leaves)
        else "their labels do not follow, since it hides the learning rate or the penalty"
    )
    return (
        f"the file tells how many of {counted(rows, 'training row', ',')} end in each leaf of the first "
        f"tree: {alone:,} end in one alone; {labels}."
    )


def _later(found: Facts) -> str:
    """What later trees tell of these rows."""
    return (
        f"its first {counted(found['trees'], 'tree')} tell how many of "
        f"these rows stand in each of {counted(len(found['boxes']), 'box', ',')} of values, and the class of "
        f"{found['certain']:.1%}: a row's box leaves {found['width']:.1%} of the range of one of your "
        f"columns on average, its leaf of the first tree {found['first_width']:.1%}."
    )


def _right(leaves: Sequence[Facts]) -> tuple[float, float]:
    """The share of rows of whose class a guess from the ``leaves`` of a tree is right, and without them."""
    rows, members = (sum(leaf[key] for leaf in leaves) for key in ("rows", "members"))
    right = sum(max(leaf["members"], leaf["rows"] - leaf["members"]) for leaf in leaves)
    return right / rows, max(members, rows - members) / rows


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


def explained(found: Facts) -> dict[str, str]:
    """Attack → what it does."""
    return {
        a["attack"]: _PATHS if a["attack"] == "pra" else ATTACKS.summary(a["attack"])
        for a in found["attacks"]
    }


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
    """Each column in its own unit under the attack that takes most of it, beside a blind guess, the most
    exposed first; the mean width of the values that each release leaves it.
    """
    widths = {
        f"width, {a['released']}": [w * unit for w, unit in zip(a["widths"], found["units"], strict=True)]
        for a in found["attacks"]
        if "widths" in a
    }
    rows = [
        (
            *(own[key] for key in ("column", "found", "guessed")),
            f"{100 * own['share']:.0f} %",
            own["released"] if own["share"] else "–",
            *(
                "–" if (width := figure_of(own, w, found)) is None else in_own_unit(width)
                for w in widths.values()
            ),
        )
        for own in found["own_units"]
    ]
    return [("column", "found", "blind guess", "taken", "from", *widths), *rows]


def tells_table(found: Facts) -> list[tuple[str, ...]]:
    """What the file holds beyond its predictions: field, and what it tells."""
    return [("field of the file", "tells"), *(tuple(fact) for fact in found["tells"])]


def write_given(found: Facts, out: Path) -> None:
    """Write the page to ``out``.

    Raises:
        StorageError: it cannot be written.
    """
    page = templates().get_template("given.html.j2")
    shown = {
        "sentences": sentences(found),
        "may_join": bool(_within(found)),
        "explained": explained(found),
        "worst_cases": worst_cases(found),
        "exposed_file": exposed_file(out).name,
        "tables": [table(found), columns_table(found)],
        "tells": tells_table(found),
    }
    write_page(out, page.render(found=found, **shown))
