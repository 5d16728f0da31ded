"""Which configured defences meet an attack that knows how they work, for ``vflens check``."""

from collections.abc import Collection, Mapping, Sequence

from vflens.config import Plugin
from vflens.experiments.run.any_experiment import Scenario
from vflens.models.family import ModelFamily
from vflens.plugins.attack import knowing
from vflens.types import Setting

#: Attack → the defences that it is made for.
Knowing = Mapping[str, Collection[str]]


def adaptive_notes(
    scenarios: Sequence[Scenario], attacks: Sequence[Plugin], model: ModelFamily, setting: Setting
) -> dict[str, str]:
    """:func:`pairs` of what is installed and made for such a ``model``."""
    return pairs(scenarios, [a.name for a in attacks], knowing(setting, linear=model.linear))


def pairs(scenarios: Sequence[Scenario], attacks: Collection[str], knows: Knowing) -> dict[str, str]:
    """A sentence for each scenario on its defences that no attack of the experiment knows, though one of
    ``knows`` does; and for each of ``attacks`` that is made for defences which no scenario has.

    Args:
        scenarios: of an experiment.
        attacks: the plug-ins that it configures.
        knows: see :func:`knowing`.
    """
    notes, known = {}, {d for a in attacks for d in knows.get(a, ())}
    used = {d.name for s in scenarios for d in s.defenses}
    for scenario in scenarios:
        left = [n for n in dict.fromkeys(d.name for d in scenario.defenses) if n not in known]
        wanted = {n: [a for a, of in knows.items() if n in of] for n in left}
        text = [f"none knows how {n!r} works, add {_or(to_add)}" for n, to_add in wanted.items() if to_add]
        if text:
            notes[f"{scenario.name}, attacks"] = "; ".join(text)
    for attack in attacks:
        made_for = sorted(knows.get(attack, ()))
        if made_for and not used & set(made_for):
            notes[attack] = f"it is made for {_or(made_for)}, which no scenario has"
    return notes


def _or(names: Sequence[str]) -> str:
    return " or ".join(map(repr, names))
