"""Attacks that every run of an experiment would skip, because no party grants what they need."""

from collections.abc import Collection, Iterator, Mapping, Sequence

from vflens.config import build_plugins
from vflens.errors import KnowledgeError
from vflens.experiments.run.vertical.experiment import Experiment
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


def check_granted(experiment: Experiment) -> None:
    """Refuse an attack that lacks a grant for each of its targets. What a scenario's defence withholds is its
    subject, and no fault.

    Raises:
        KnowledgeError: names the attack, what it needs, and the table that grants it.
    """
    built = build_plugins(ATTACKS, experiment.attacks)
    for placed, (name, attack) in zip(experiment.attacks, built, strict=True):
        seat = experiment.seat(placed)
        try:
            attack.check_label(experiment.model.label_kind)
        except KnowledgeError as error:
            raise KnowledgeError(
                f"attack {name!r} at {seat!r} would never run: {error}: leave it out"
            ) from None
        for lacking in _lacking(experiment, attack, seat, placed.colluders):
            raise KnowledgeError(f"attack {name!r} at {seat!r} would never run: {lacking}")


def _lacking(experiment: Experiment, attack: Attack, seat: str, colluders: Sequence[str]) -> Iterator[str]:
    """What ``attack`` needs and no target of it grants to ``seat`` or a colluder, with the remedy."""
    if attack.estimates == "membership":
        if not any(g.what == "candidates" for g in experiment.disclose):
            yield (
                f"{experiment.parties.active!r} grants no candidates: set data.returning, and add "
                f"[[disclose]] with what = 'candidates', to = {seat!r} and rows, or leave the attack out"
            )
        return
    features, needs = attack.estimates == "features", attack.declared().needs
    everybody = experiment.parties.passive if features else (experiment.parties.active,)
    targets = [name for name in everybody if name not in colluders]
    for knowledge, whats in (_OF_COLUMNS if features else _OF_LABELS).items():
        if knowledge not in needs or _is_own(knowledge, attack, experiment):
            continue
        to = (seat, *colluders)
        has = [any(_grants(experiment, t, to, what) for what in whats) for t in targets]
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


def _grants(experiment: Experiment, party: str, to: Collection[str], what: str) -> bool:
    return any(g.what == what and g.to in to and g.by in (None, party) for g in experiment.disclose)


def _releases_a_table(experiment: Experiment) -> bool:
    defenses = [d for s in experiment.scenarios for d in s.defenses]
    return any("on_dataset" in defense.hooks() for _, defense in build_plugins(DEFENSES, defenses))
