"""What the numbers of the scoreboard mean, in words, by a stated rule (:data:`RULE`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vflens.experiments.sweeps.pool import Rows
from vflens.experiments.sweeps.sweep_page import interval

HIDES = 0.1  # of a blind guess's error: a smaller change is none
EXACT = 0.1
RULE = f"""\
The **relative error** is the error of an attack over that of the best blind guess on the same rows: 0 is
exact, 1 no better than blind. An attack **beats a blind guess** if its 95 % interval over seeds
(Student's t) ends below 1; the tables print it **bold**. Below {EXACT} on average it finds nearly all.
The *best attack* is the one of least mean relative error among those. A defence

- **hides all**: no attack beats a blind guess;
- **hides nothing**: the best attack's relative error is at most {HIDES} larger than without a defence;
- **hides part**: anything between.

It does so **at no measured cost** if the interval of the difference in accuracy, seed by seed, contains
0; else **at a cost of** the mean difference. Three seeds give wide intervals."""


@dataclass(frozen=True)
class Found:
    """One attack against one defence, over seeds: what it is measured by, its ``figure`` and the ``blind``
    guess's, and the ``relative`` errors.
    """

    attack: str
    measure: str
    figure: tuple[float, ...]
    blind: tuple[float, ...]
    relative: tuple[float, ...]

    @property
    def mean(self) -> float:
        """The mean relative error."""
        return interval(self.relative)[0]

    @property
    def beats_blind(self) -> bool:
        """See :data:`RULE`."""
        mean, half = interval(self.relative)
        return len(self.relative) > 1 and mean + half < 1


def over_seeds(rows: Rows) -> Found | None:
    """One attack's ``rows`` against one defence; of several scored sets that of the least mean error.

    A seed's figures are means over targets.
    """
    found = [
        _of_set([r for r in rows if r["rows"] == chosen]) for chosen in sorted({r["rows"] for r in rows})
    ]
    return min(found, key=lambda f: f.mean, default=None)


def _of_set(rows: Rows) -> Found:
    seeds = [[r for r in rows if r["seed"] == seed] for seed in sorted({r["seed"] for r in rows})]
    figure, blind, relative = (
        tuple(sum(r[name] for r in own) / len(own) for own in seeds)
        for name in ("figure", "blind", "relative")
    )
    return Found(rows[0]["attack"], rows[0]["measure"], figure, blind, relative)


def best(found: Sequence[Found]) -> Found | None:
    """The most successful attack that beats a blind guess."""
    return min((f for f in found if f.beats_blind), key=lambda f: f.mean, default=None)


def protection(found: Sequence[Found], undefended: Sequence[Found]) -> str:
    """What a defence hides from attacks of one family, in words."""
    strongest, before = best(found), best(undefended)
    if not found:
        return "nothing was scored"
    if before is None:
        return "nothing to hide" if strongest is None else f"opens to {strongest.attack}"
    if strongest is None:
        return "hides all"
    hides = "nothing" if strongest.mean - before.mean <= HIDES else "part"
    return f"hides {hides} ({strongest.attack}, {strongest.mean:.2f})"


def cost(accuracies: dict[int, float], undefended: dict[int, float]) -> str:
    """What a defence costs in accuracy, in words; both by seed."""
    lost = [undefended[seed] - accuracy for seed, accuracy in accuracies.items() if seed in undefended]
    if len(lost) < 2:
        return "at an unknown cost"
    mean, half = interval(lost)
    if abs(mean) <= half or mean == 0:
        return "at no measured cost"
    return f"at a cost of {mean:.2f} accuracy" if mean > 0 else f"with {-mean:.2f} more accuracy"


def success(found: Found) -> str:
    """What an attack achieves where nothing defends, in words."""
    if not found.beats_blind:
        return "no better than blind"
    return "finds nearly all" if found.mean < EXACT else f"finds part ({found.mean:.2f})"
