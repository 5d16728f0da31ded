"""``vflens audit --weights`` of trees and networks: attacks on the given model, and what trees tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from vflens.experiments.audit.boosted import attack_trees, told_of_training
from vflens.experiments.audit.given import Joint, Reading
from vflens.experiments.audit.outcomes import AttackOutcome, summary
from vflens.experiments.audit.record import AuditRecord, TreeFile
from vflens.experiments.audit.run import Keep, errors_of, stated_in_units, worst_case
from vflens.experiments.outcome.words import number
from vflens.experiments.results.results import BLIND_GUESSES
from vflens.experiments.weights.network import Graph
from vflens.experiments.weights.trees import TreeModel
from vflens.types import Facts, Phase, Progress
from vflens.words import counted

_NAMES = {"pra": "path restriction", "wmi": "white-box inversion"}
_IF = "If no row had a weight or a base margin of its own{} and every tree saw the same rows, "


def audit_given(
    model: Graph | TreeModel, joint: Joint, weights: Path, progress: Progress, keep: Keep
) -> AuditRecord:
    """All results: see ``docs/others.md``.

    ``keep`` receives the most exposed rows: they are for the party alone.

    Raises:
        ConfigError: a network, and torch is not installed; a tolerance of an unknown column.
    """
    tolerance = stated_in_units(joint.bench)
    readings, trees = _readings(model, joint, progress)
    outcomes = [_outcome(joint, reading) for reading in readings]
    best = min(range(len(readings)), key=lambda i: outcomes[i].mse)
    worst = worst_case(joint.bench, Phase.PREDICT, [readings[best].answer])
    if worst:
        keep({worst.case.scored_set: {worst.case.attack: worst.exposed}})
    return AuditRecord.of(
        joint.bench,
        outcomes,
        weights=str(weights),
        model=_described(model),
        tells=tuple(getattr(model, "tells", ())),
        inputs=model.width,
        others_drawn=joint.drawn,
        trees=trees,
        worst_cases=(worst.case,) if worst else (),
        tolerance=tolerance,
    )


def _readings(
    model: Graph | TreeModel, joint: Joint, progress: Progress
) -> tuple[list[Reading], TreeFile | None]:
    """What attacks make of each release; of trees what their file tells."""
    if isinstance(model, TreeModel):
        readings, blind = attack_trees(model, joint, progress)
        return readings, replace(told_of_training(model, joint), blind_branches=blind)
    from vflens.experiments.audit.inverted import attack_network  # needs torch

    return [attack_network(model, joint, progress)], None


def _outcome(joint: Joint, reading: Reading) -> AttackOutcome:
    subject, attack = joint.bench.subject, reading.answer.attack
    errors = errors_of(joint.bench, reading.answer)
    return replace(summary(attack, "given", [errors], subject, released=reading.released), **reading.facts)


def _described(model: Graph | TreeModel) -> str:
    if isinstance(model, TreeModel):
        used, trees = len(model.trees), counted(len(model.training.trees), "boosted tree")
        return trees if used == len(model.training.trees) else f"{used} of {trees}"
    return f"a network of {counted(model.layers, 'matrix', many='matrices')}"


def of_given(record: AuditRecord) -> Iterator[str]:
    """Errors of attacks on a given model, beside a blind guess; what was drawn, what its file tells."""
    guess = f"best blind guess ({BLIND_GUESSES[record.blind_guess]}) {number(record.blind_error)}"
    for a in record.attacks:
        yield (
            f"From the {a.released} of {record.model} {_NAMES[a.attack]} errs by {number(a.mse)} per "
            f"column on {counted(a.rows, 'row')}, {guess}.{_paths(a, record)}"
        )
    if record.others_drawn:
        yield "The inputs of others are random: the file holds yours alone."
    if record.trees and record.trees.unused_trees:
        yield (
            "The file's best_iteration ends the scores there, as scikit-learn's wrapper releases them; "
            "Booster.predict adds all trees."
        )
    yield "What its training gave away is not in these figures: they are of what the model releases."
    yield from training(record.trees) if record.trees else ()


def _paths(attack: AttackOutcome, record: AuditRecord) -> str:
    paths, trees = attack.paths, record.trees
    if paths is None or trees is None:
        return ""
    if paths.right_branches is None or trees.blind_branches is None:
        return " No tree splits one of your columns: they reveal nothing."
    unfinished = f"; for {paths.unfinished:.0%} the search stopped early" if paths.unfinished else ""
    return (
        f" {paths.right_branches:.1%} of the branches on your columns are right, by a blind guess "
        f"{trees.blind_branches:.1%}; {paths.determined:.0%} of the rows have one possible path{unfinished}."
    )


def training(trees: TreeFile) -> Iterator[str]:
    """What trees tell of the rows that trained them, and why it is no more."""
    leaves = trees.training_rows
    if leaves:
        yield _IF.format("") + (_classes(leaves) if "class" in leaves[0] else _alone(leaves))
    if trees.training_boxes:
        yield _IF.format(", no value was missing") + _later(trees.training_boxes)
    if trees.training_untold:
        begin = "It tells no more here" if leaves else "Here it tells nothing of training rows"
        yield f"The file was searched for its training. {begin}: {trees.training_untold}."
    if trees.pruned_nodes:
        yield (
            f"It keeps {counted(trees.pruned_nodes, 'node')} that pruning cut, with the weights of "
            "smaller groups of rows: they are not read here."
        )


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
