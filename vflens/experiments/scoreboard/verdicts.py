"""What the numbers of the scoreboard mean, in words, by the rule that ``docs/scoreboard.md`` states.

:func:`words` says all that the page says of attacks; what a defence costs has its words in
:mod:`vflens.experiments.pages.cost`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from vflens.experiments.outcome.table import where
from vflens.experiments.pages.cost import FEWEST
from vflens.experiments.results.titles import ON_GRANTS_ONLY
from vflens.experiments.scoreboard.kinds import Kind, kind_of
from vflens.experiments.sweeps.pool import Rows
from vflens.numerics.measures.intervals import Pooled, finite_pair, least_first, pooled
from vflens.words import counted

HIDES = 0.1  # of a blind guess's error: a smaller change is none
EXACT = 0.1
#: Measures of which less is better for the attack; of the others 1 less the figure is its error.
ERRORS = ("MSE", "distance")


@dataclass(frozen=True)
class CellResult:
    """One attack against one defence, seed by seed: what it is measured by, its ``figure`` and that of the
    ``blind`` guess, means over targets; ``granted``: it read what is granted and a defence may change.
    """

    attack: str
    measure: str
    figure: tuple[float, ...]
    blind: tuple[float, ...]
    granted: bool = False

    @cached_property
    def kind(self) -> Kind:
        """The kind of the attack, looked up once: a page asks for it a hundred thousand times."""
        kind = kind_of(self.attack)
        assert kind is not None
        return kind

    @property
    def family(self) -> str:
        """What is compared of the attack: a key of :data:`vflens.experiments.scoreboard.board.FAMILIES`."""
        return self.kind.estimates

    @cached_property
    def relative(self) -> Pooled:
        """The relative error, pooled over seeds."""
        pairs = zip(self.figure, self.blind, strict=True)
        is_error = self.measure in ERRORS
        return pooled(pairs if is_error else ((1 - found, 1 - guess) for found, guess in pairs))

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
        """Whether the interval of the relative error ends below 1, of enough seeds."""
        return self.is_decided and self.mean + self.relative.half < 1


def over_seeds(rows: Rows) -> CellResult | None:
    """One attack's ``rows`` against one defence; of several scored sets that of the least relative error."""
    found = [_of_set(where(rows, rows=chosen)) for chosen in sorted({r["rows"] for r in rows})]
    return min(found, key=lambda f: (not f.is_decided, least_first(f.mean)), default=None)


def _of_set(rows: Rows) -> CellResult:
    pairs = [_mean_over_targets(where(rows, seed=seed)) for seed in sorted({r["seed"] for r in rows})]
    figure, blind = (tuple(pair[i] for pair in pairs) for i in (0, 1))
    granted = any(r.get("granted") for r in rows)
    return CellResult(rows[0]["attack"], rows[0]["measure"], figure=figure, blind=blind, granted=granted)


def _mean_over_targets(rows: Rows) -> tuple[float, float]:
    """Mean figure and blind figure of one seed, over the targets that have finite ones; nan without any."""
    pairs = [pair for pair in ((r["figure"], r["blind"]) for r in rows) if finite_pair(*pair)]
    if not pairs:
        return math.nan, math.nan
    return math.fsum(f for f, _ in pairs) / len(pairs), math.fsum(b for _, b in pairs) / len(pairs)


def best(found: Sequence[CellResult]) -> CellResult | None:
    """The most successful attack that beats a blind guess."""
    return min((f for f in found if f.beats_blind), key=lambda f: f.mean, default=None)


def words(
    found: Sequence[CellResult],
    undefended: Sequence[CellResult] | None = None,
    *,
    on_grants_only: bool = False,
    missing: Sequence[str] = (),
) -> str:
    """What attacks of one family achieve: where nothing defends, or against a defence beside what they
    achieve ``undefended``; ``on_grants_only``: the defence acts on nothing else; ``missing``: attacks that
    are made for the defence and have no result, in words.
    """
    if undefended is None:
        return _success(found)
    if on_grants_only:
        reading, before = ([f for f in some if f.granted] for some in (found, undefended))
        return ON_GRANTS_ONLY + (
            f"; of it: {_without(missing, protection(reading, before))}" if before else ""
        )
    return _without(missing, protection(found, undefended))


def _without(missing: Sequence[str], text: str) -> str:
    """No verdict that a defence hides, where attacks are ``missing`` that are made for it."""
    if missing and text.startswith(("hides all", "hides part")):
        return f"not decided ({text} without {', '.join(missing)})"
    return text


def protection(found: Sequence[CellResult], undefended: Sequence[CellResult]) -> str:
    """What a defence hides from attacks of one family, in words."""
    if not found:
        return "nothing was scored"
    if not any(f.is_decided for f in undefended):
        return _few(undefended)
    strongest, before = best(found), best(undefended)
    if strongest is not None:
        return f"opens to {_amount(strongest)}" if before is None else _hidden(strongest, before)
    if before is None:
        return "nothing to hide" if any(f.is_decided for f in found) else _few(found)
    beating = {f.attack for f in undefended if f.beats_blind}
    return _beaten([f for f in found if f.attack in beating])


def _hidden(strongest: CellResult, before: CellResult) -> str:
    """How much a defence hides that ``strongest`` passes, where nothing hid anything from ``before``."""
    larger = strongest.mean - before.mean
    half = math.hypot(strongest.relative.half, before.relative.half)
    if larger + half <= HIDES:
        return f"hides nothing ({_amount(strongest)})"
    surely = "part" if larger - half > HIDES else "nothing or part"
    return f"hides {surely} ({_amount(strongest)})"


def _beaten(found: Sequence[CellResult]) -> str:
    """What is said where none of ``found``, which beat a blind guess undefended, beats it any more."""
    if few := [f for f in found if not f.is_decided]:
        return _few(few)
    least = min(found, key=lambda f: f.mean, default=None)
    if least is not None and least.mean < 1 - HIDES:
        return f"not decided ({_amount(least)})"
    return "hides all"


def _success(found: Sequence[CellResult]) -> str:
    """What attacks achieve where nothing defends, in words."""
    if not found:
        return "nothing was scored"
    strongest = best(found)
    if strongest is not None:
        finds = "nearly all" if strongest.mean + strongest.relative.half < EXACT else "part"
        return f"{strongest.attack} finds {finds} ({_numbers(strongest)})"
    if not any(f.is_decided for f in found):
        return _few(found)
    return (
        "no attack beats a blind guess"
        if len(found) > 1
        else f"{found[0].attack} does not beat a blind guess"
    )


def _few(found: Sequence[CellResult]) -> str:
    """That ``found`` are too few results; the attack of which there are most."""
    most = max(found, key=lambda f: f.relative.seeds, default=None)
    if most is None:
        return f"no verdict: 0 of at least {FEWEST} results"
    return (
        f"no verdict: {most.relative.seeds} of at least {FEWEST} results of {most.attack}{_undefined(most)}"
    )


def _amount(found: CellResult) -> str:
    return f"{found.attack}, {_numbers(found)}"


def _numbers(found: CellResult) -> str:
    """The relative error, its half width, and the seeds that it lacks."""
    return f"{found.mean:.2f} ± {found.relative.half:.2f}{_undefined(found)}"


def _undefined(found: CellResult) -> str:
    count, seeds = found.relative.undefined, len(found.figure)
    return f", of {counted(seeds, 'seed')} {count} undefined" if count else ""
