"""Protection and cost of each installed defence for the audited party, measured on trained models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vflens.errors import VflensError
from vflens.experiments.audit.bench import Bench, blind_errors
from vflens.experiments.audit.models import simulate
from vflens.plugins.defense import Defense, NamedDefense
from vflens.registry import DEFENSES
from vflens.types import Array, Document, Facts, Progress

_ACTING = frozenset({"on_inputs", "on_embedding", "on_scores", "on_parameters"})
TRAINED_MODELS = 3  # for every strength of every defence, and for attacks on training
_ROWS = 300


@dataclass(frozen=True)
class Defended:
    """The strongest attack against one defence, of predictions or of training in the clear, whichever takes
    more; ``at`` switches it on. Means over models.

    ``mean_kl`` compares the released scores with those of the undefended model, in nats. ``withheld`` says
    that no parameters were disclosed. ``attack`` is "" where none of those ``tried``, which had what they
    need, beats the best blind guess, whose error ``mse`` then is. ``reason`` says why a defence could not be
    simulated, its figures are then None.
    """

    defense: str
    settings: Facts
    at: str
    mse: float | None = None
    attack: str = ""
    accuracy_loss: float | None = None
    mean_kl: float | None = None
    argmax_kept: float | None = None
    withheld: bool = False
    tried: tuple[str, ...] = ()
    reason: str = ""


def candidates() -> Iterator[tuple[str, Document, type[Defense]]]:
    """Name, settings and class of everything that is tried: what acts on what a prediction releases.

    What watches gradients in training hides nothing.
    """
    for name, defense in _loadable()[0].items():
        if defense.hooks() & _ACTING and "on_received" not in defense.hooks():
            yield from ((name, dict(settings), defense) for settings in defense.strengths)


def left_out() -> dict[str, str]:
    """Why a defence cannot be loaded, by its name: it needs an extra that is not installed, say."""
    return _loadable()[1]


def _loadable() -> tuple[dict[str, type[Defense]], dict[str, str]]:
    """The installed defences by name, and what :func:`left_out` returns."""
    loaded: dict[str, type[Defense]] = {}
    reasons: dict[str, str] = {}
    for name in DEFENSES.names():
        try:
            loaded[name] = DEFENSES.get(name)
        except VflensError as error:
            reasons[name] = str(error)
    return loaded, reasons


def try_defenses(bench: Bench, progress: Progress) -> list[Defended]:
    """Every candidate, in order."""
    fewer, tried = replace(bench, rows=bench.rows[:_ROWS]), list(candidates())
    found = []
    for done, (name, settings, defense) in enumerate(tried, start=1):
        at = "the coordinator" if "on_scores" in defense.hooks() else "you"
        try:
            found.append(Defended(name, settings, at, **_measured(fewer, (name, defense(**settings)))))
        except (
            Exception
        ) as error:  # a plug-in that needs more than this simulation has must not end the audit
            reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            found.append(Defended(name, settings, at, reason=reason))
        progress("defences tried", done, len(tried))
    return found


def fitting(defended: Sequence[Defended], least_error: float, most_loss: float) -> list[Defended]:
    """Those that reach the error at that loss, the cheapest first: least KL (∞ is common), then least loss,
    then largest error, then what discloses least.
    """
    fit = [
        d
        for d in defended
        if d.mse is not None
        and d.accuracy_loss is not None
        and d.mse >= least_error
        and d.accuracy_loss <= most_loss
    ]
    return sorted(
        fit, key=lambda d: (d.mean_kl, max(d.accuracy_loss or 0.0, 0.0), -(d.mse or 0.0), not d.withheld)
    )


def _measured(bench: Bench, defense: NamedDefense) -> Document:
    """Means over a few trained models, against the same models undefended."""
    figures: list[tuple[float, float, float]] = []
    errors: dict[str, list[tuple[float, float]]] = {}
    models = min(TRAINED_MODELS, bench.plan.models)
    for i in range(models):
        plain = simulate(bench.subject, "trained", bench.plan.rng("trained", i))
        world = simulate(bench.subject, "trained", bench.plan.rng("trained", i), [defense])
        before, after = plain.released, world.released
        loss = plain.accuracy - world.accuracy
        figures.append((loss, _mean_kl(before, after), _argmax_kept(before, after)))
        of_predictions = bench.estimates(world, "trained", i, slow=False)
        for name, rows, values in (*of_predictions, *bench.of_training(world, i)):
            x = bench.subject.x[rows]
            error = float(((values - x) ** 2).mean()), min(blind_errors(x).values())
            errors.setdefault(name, []).append(error)
    blind = bench.blind[bench.blind_guess]
    whole = {n for n, found in errors.items() if len(found) == models or n in bench.training_attacks}
    means = {name: np.mean(found, axis=0) for name, found in errors.items() if name in whole}
    beating = {name: float(mse) for name, (mse, guess) in means.items() if mse < guess}
    attack, mse = min(beating.items(), key=lambda item: item[1], default=("", blind))
    named = ("accuracy_loss", "mean_kl", "argmax_kept")
    averages = dict(zip(named, np.mean(figures, axis=0).tolist(), strict=True))
    beaten = {"attack": attack, "withheld": world.parameters is None, "tried": tuple(means)}
    return {"mse": mse, **beaten, **averages}


def _mean_kl(exact: Array, released: Array) -> float:
    """Mean over rows of KL(c‖c̃), infinite where a possible class was released as impossible."""
    c = np.exp(exact)
    with np.errstate(invalid="ignore"):  # 0·∞
        return float(np.where(c > 0, c * (exact - released), 0.0).sum(axis=1).mean())


def _argmax_kept(before: Array, after: Array) -> float:
    """Share of rows in which a most likely class stays among the most likely."""
    top, now = (s == s.max(axis=1, keepdims=True) for s in (before, after))
    return float((top & now).any(axis=1).mean())
