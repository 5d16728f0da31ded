"""What the numbers of the scoreboard mean, in words, by a stated rule (:data:`RULE`)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from vflens.experiments.pages.cost import DECIDED, FEWEST
from vflens.experiments.sweeps.pool import Rows
from vflens.numerics.measures.intervals import Pooled, least_first, pooled
from vflens.words import counted

HIDES = 0.1  # of a blind guess's error: a smaller change is none
EXACT = 0.1
RULE = f"""\
The **relative error** is the error of an attack over that of the best blind guess on the same rows: 0 is
exact, 1 no better than blind. Over seeds both errors are added before they are divided; a seed in which
both are 0 had nothing to find: it is left out, and counted as *undefined*. An attack **beats a blind guess**
if its 95 % interval over seeds (Student's t) ends below 1; the tables print it **bold**. Below {EXACT} on
average it finds nearly all. The *best attack* is the one of least relative error among those. A defence

- **hides all**: no attack beats a blind guess;
- **hides nothing**: the best attack's relative error is at most {HIDES} larger than without a defence;
- **hides part**: anything between.

There is **no verdict** from fewer than {FEWEST} seeds with a result.

Its **cost** is in AUC for two classes, else in accuracy: the mean difference from the undefended model, seed
by seed, on runs without attacks. Beside it stands the **gain**: what the federation has over the active party
alone (over each client alone). The words are

- **no use left**: the interval of the gain contains 0, or lies below it;
- **not decided**: the half width of the interval of the difference is over {DECIDED};
- **at no measured cost**: that interval contains 0; else **at a cost of** the mean;
- **the model is of no use**: the undefended one's gain contains 0, so nothing is said of its defences."""


@dataclass(frozen=True)
class CellResult:
    """One attack against one defence, seed by seed: what it is measured by, its ``figure`` and that of the
    ``blind`` guess, means over targets.
    """

    attack: str
    measure: str
    figure: tuple[float, ...]
    blind: tuple[float, ...]

    @cached_property
    def relative(self) -> Pooled:
        """The relative error, pooled over seeds."""
        pairs = zip(self.figure, self.blind, strict=True)
        return pooled(pairs if self.measure == "MSE" else ((1 - found, 1 - guess) for found, guess in pairs))

    @property
    def mean(self) -> float:
        """The relative error."""
        return self.relative.mean

    @property
    def is_decided(self) -> bool:
        """Whether there are seeds enough for a verdict."""
        return self.relative.seeds >= FEWEST

    @property
    def beats_blind(self) -> bool:
        """See :data:`RULE`."""
        return self.is_decided and self.mean + self.relative.half < 1


def over_seeds(rows: Rows) -> CellResult | None:
    """One attack's ``rows`` against one defence; of several scored sets that of the least relative error."""
    found = [
        _of_set([r for r in rows if r["rows"] == chosen]) for chosen in sorted({r["rows"] for r in rows})
    ]
    return min(found, key=lambda f: (not f.is_decided, least_first(f.mean)), default=None)


def _of_set(rows: Rows) -> CellResult:
    seeds = [[r for r in rows if r["seed"] == seed] for seed in sorted({r["seed"] for r in rows})]
    figure, blind = (
        tuple(math.fsum(r[name] for r in own) / len(own) for own in seeds) for name in ("figure", "blind")
    )
    return CellResult(rows[0]["attack"], rows[0]["measure"], figure, blind)


def best(found: Sequence[CellResult]) -> CellResult | None:
    """The most successful attack that beats a blind guess."""
    return min((f for f in found if f.beats_blind), key=lambda f: f.mean, default=None)


def protection(found: Sequence[CellResult], undefended: Sequence[CellResult]) -> str:
    """What a defence hides from attacks of one family, in words."""
    if not found:
        return "nothing was scored"
    if not any(f.is_decided for f in found) or not any(f.is_decided for f in undefended):
        return f"no verdict: fewer than {FEWEST} results"
    strongest, before = best(found), best(undefended)
    if before is None:
        return "nothing to hide" if strongest is None else f"opens to {strongest.attack}"
    if strongest is None:
        return "hides all"
    hides = "nothing" if strongest.mean - before.mean <= HIDES else "part"
    return f"hides {hides} ({strongest.attack}, {amount(strongest)})"


def success(found: CellResult) -> str:
    """What an attack achieves where nothing defends, in words."""
    if not found.is_decided:
        return f"no verdict: {found.relative.seeds} of at least {FEWEST} results{_undefined(found)}"
    if not found.beats_blind:
        return f"no better than blind{_undefined(found)}"
    if found.mean < EXACT:
        return f"finds nearly all{_undefined(found)}"
    return f"finds part ({amount(found)}){_undefined(found)}"


def amount(found: CellResult) -> str:
    """The relative error and its half width, in words."""
    return f"{found.mean:.2f} ± {found.relative.half:.2f}"


def _undefined(found: CellResult) -> str:
    count, seeds = found.relative.undefined, len(found.figure)
    return f", of {counted(seeds, 'seed')} {count} undefined" if count else ""
