"""Attacks that every run of an experiment would skip, because no party grants what they need."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vflens.config import build_plugins
from vflens.errors import KnowledgeError
from vflens.experiments.run.experiment import Experiment
from vflens.experiments.run.horizontal import HorizontalExperiment
from vflens.plugins.attack import Attack, JointAttack
from vflens.registry import ATTACKS, DEFENSES
from vflens.types import Knowledge

#: What a passive party grants of its columns, and the active party of its labels: knowledge → disclosures.
_OF_COLUMNS: Mapping[Knowledge, tuple[str, ...]] = {
    Knowledge.PARAMETERS: ("parameters",),
    Knowledge.AUXILIARY: ("auxiliary",),
    Knowledge.MOMENTS: ("moments", "auxiliary"),
}
_OF_LABELS = {Knowledge.KNOWN_LABELS: ("labels",)}
#: What a client grants of single rows, which an attack on them reads: knowledge → disclosure.
_OF_ROWS = {Knowledge.EMBEDDINGS: "embeddings", Knowledge.GRADIENTS: "gradients"}


def check_granted(experiment: Experiment) -> None:
    """Refuse an attack that lacks a grant for each of its targets. What a scenario's defence withholds is its
    subject, and no fault.

    Raises:
        KnowledgeError: names the attack, what it needs, and the table that grants it.
    """
    built = build_plugins(ATTACKS, experiment.attacks)
    for placed, (name, attack) in zip(experiment.attacks, built, strict=True):
        seat = experiment.seat(placed)
        for lacking in _lacking(experiment, attack, seat):
            raise KnowledgeError(f"attack {name!r} at {seat!r} would never run: {lacking}")


def check_served(experiment: HorizontalExperiment) -> None:
    """Refuse an attack in the server on rows that no client grants.

    Raises:
        KnowledgeError: names the attack, what it needs, and the table that grants it.
    """
    granted, server = {g.what for g in experiment.disclose}, experiment.parties.server
    for name, attack in build_plugins(ATTACKS, experiment.attacks):
        if attack.estimated_round and not attack.unordered and not experiment.horizontal.is_split:
            raise KnowledgeError(
                f"attack {name!r} at {server!r} would never run: horizontal.method = "
                f"{experiment.horizontal.method!r} sends no embeddings in a round: let it attack granted "
                "ones, or leave it out"
            )
        whats = _served_by(attack)
        if whats and not granted & set(whats):
            raise KnowledgeError(
                f"attack {name!r} at {server!r} would never run: no client grants {' or '.join(whats)}: add "
                f"[[disclose]] with what = {whats[0]!r}, to = {server!r} and rows, or leave the attack out"
            )


def _served_by(attack: Attack) -> list[str]:
    """The grants of which ``attack`` needs one for its rows; [] if a round shows them."""
    needs = attack.declared().needs
    if attack.estimated_round:
        return ["embeddings"] if not attack.unordered and Knowledge.AUXILIARY in needs else []
    if attack.estimates == "membership":
        return ["candidates"]
    return [what for k, what in _OF_ROWS.items() if k in needs] or list(_OF_ROWS.values())


def _lacking(experiment: Experiment, attack: Attack, seat: str) -> Iterator[str]:
    """What ``attack`` needs and no target of it grants, with the remedy."""
    features, needs = attack.estimates == "features", attack.declared().needs
    targets = experiment.parties.passive if features else (experiment.parties.active,)
    for knowledge, whats in (_OF_COLUMNS if features else _OF_LABELS).items():
        if knowledge not in needs or _is_own(knowledge, attack, experiment):
            continue
        has = [any(_grants(experiment, t, seat, what) for what in whats) for t in targets]
        joint = isinstance(attack, JointAttack) or knowledge is Knowledge.MOMENTS
        if not (all(has) if joint else any(has)):
            rows = "" if whats[0] not in ("auxiliary", "labels") else " and rows"
            yield (
                f"{targets[has.index(False)]!r} does not grant it its {knowledge}: add [[disclose]] with "
                f"what = {whats[0]!r}, to = {seat!r}{rows}, or leave the attack out"
            )
    if Knowledge.PUBLIC in needs and not (experiment.data and experiment.data.public):
        yield "there are no public rows: set data.public, or leave the attack out"
    if Knowledge.RELEASED_TABLE in needs and not _releases_a_table(experiment):
        yield (
            "no party releases its table: add the defence 'release_table' to a scenario, or leave the attack "
            "out"
        )


def _is_own(knowledge: Knowledge, attack: Attack, experiment: Experiment) -> bool:
    """Whether the attack may need the parameters of its own party only: softmax regression has such."""
    own = experiment.model.linear and not isinstance(attack, JointAttack)
    return knowledge is Knowledge.PARAMETERS and own


def _grants(experiment: Experiment, party: str, to: str, what: str) -> bool:
    return any(g.what == what and g.to == to and g.by in (None, party) for g in experiment.disclose)


def _releases_a_table(experiment: Experiment) -> bool:
    defenses = [d for s in experiment.scenarios for d in s.defenses]
    return any("on_dataset" in defense.hooks() for _, defense in build_plugins(DEFENSES, defenses))
