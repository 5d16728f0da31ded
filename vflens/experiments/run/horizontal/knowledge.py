"""Attacks that every run of an experiment would skip, because no party grants what they need."""

from vflens.config import build_plugins
from vflens.errors import KnowledgeError
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.plugins.attack import Attack
from vflens.registry import ATTACKS
from vflens.types import Knowledge

#: What a client grants of single rows, which an attack on them reads: knowledge → disclosure.
_OF_ROWS = {Knowledge.EMBEDDINGS: "embeddings", Knowledge.GRADIENTS: "gradients"}


def check_served(experiment: HorizontalExperiment) -> None:
    """Refuse an attack on rows that no client grants, or not to the party that it sits in.

    Raises:
        KnowledgeError: names the attack, what it needs, and the table that grants it.
    """
    granted, server = {g.what for g in experiment.disclose}, experiment.parties.server
    built = build_plugins(ATTACKS, experiment.attacks)
    for placed, (name, attack) in zip(experiment.attacks, built, strict=True):
        seat, whats = experiment.seat(placed), _served_by(attack)
        if attack.estimated_round and not attack.unordered and not experiment.horizontal.is_split:
            raise KnowledgeError(
                f"attack {name!r} at {seat!r} would never run: horizontal.method = "
                f"{experiment.horizontal.method!r} sends no embeddings in a round: let it attack granted "
                "ones, or leave it out"
            )
        if whats and seat != server:
            raise KnowledgeError(
                f"attack {name!r} at {seat!r} would never run: clients grant {' or '.join(whats)} to their "
                "server alone: let it sit there, or attack a round's rows"
            )
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
    if attack.of_candidates:
        return ["candidates"]
    return [what for k, what in _OF_ROWS.items() if k in needs] or list(_OF_ROWS.values())
