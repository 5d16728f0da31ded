"""Protection and cost of each installed defence for the audited party, measured on trained models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from vflens.errors import VflensError
from vflens.experiments.audit.bench import Bench, blind_errors
from vflens.experiments.audit.models import World, simulate
from vflens.experiments.audit.outcomes import column_blind, shares
from vflens.experiments.pages.cost import Cost, Use, use_of
from vflens.plugins.defense import Defense
from vflens.registry import DEFENSES
from vflens.types import Array, Document, Facts, Progress

_ACTING = frozenset({"on_inputs", "on_embedding", "on_scores", "on_parameters"})
_IN_TRAINING = frozenset({"on_inputs", "on_embedding"})
ATTACKED_MODELS = 3  # for every strength of every defence, and for attacks on training
COST_MODELS = 20  # what a defence costs is measured on more: it takes no attack
_ROWS = 300


@dataclass(frozen=True)
class Defended:
    """The strongest attack against one defence, of predictions or of training in the clear, whichever takes
    more; ``at`` switches it on. Means over models.

    ``attack`` is "" where none of those ``tried``, which had what they need, beats the best blind guess,
    whose error ``mse`` then is. ``leak`` is the largest share of the best blind guess's error in a
    ``column`` that one of them takes. ``price`` is ``cost`` in words, ``gain`` what the federation still has
    over the active party alone. ``mean_kl`` compares the released
    scores with those of the undefended model, in nats. ``withheld`` says that no parameters were disclosed.
    ``reason`` says why a defence could not be simulated, its figures are then None.
    """

    defense: str
    settings: Facts
    at: str
    mse: float | None = None
    attack: str = ""
    leak: float | None = None
    column: str = ""
    cost: Cost | None = None
    price: str = ""
    gain: str = ""
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
    """Every candidate, in order: all on one model after another, so that one is in memory at a time."""
    fewer = replace(bench, rows=bench.rows[:_ROWS])
    trials = [_Trial(fewer, name, settings, kind) for name, settings, kind in candidates()]
    for i in range(COST_MODELS):
        plain = simulate(bench.subject, "trained", bench.plan.rng("trained", i))
        alone = plain.alone(bench.plan.rng("alone", i))
        for trial in trials:
            trial.on(plain, alone, i)
        progress("defences tried", i + 1, COST_MODELS)
    return [trial.result() for trial in trials]


def reached(wanted: Facts, mse: float, leak: float) -> bool:
    """Whether an error and the largest leak of a column are what the party asks for."""
    least = wanted["least_error"]
    return bool(leak <= wanted["most_leak"] if least is None else mse >= least)


def fitting(defended: Sequence[Defended], wanted: Facts) -> list[Defended]:
    """Those that reach what is ``wanted`` at a decided cost, the cheapest first: least cost, none where none
    was measured, then least KL (∞ is common), then least leak, then what discloses least.
    """
    fit = [
        (d, d.cost.loss)
        for d in reaching(defended, wanted)
        if d.cost is not None and d.cost.is_decided and d.cost.loss <= wanted["most_loss"]
    ]
    return [d for d, _ in sorted(fit, key=lambda f: (f[1], f[0].mean_kl, f[0].leak, not f[0].withheld))]


def reaching(defended: Sequence[Defended], wanted: Facts) -> list[Defended]:
    """Those that reach what is ``wanted``, whatever they cost."""
    measured = (d for d in defended if d.mse is not None and d.leak is not None)
    return [d for d in measured if reached(wanted, d.mse or 0.0, d.leak or 0.0)]


class _Trial:
    """One defence on one model after another."""

    def __init__(self, bench: Bench, name: str, settings: Document, kind: type[Defense]) -> None:
        self._bench, self._kind, self._settings = bench, kind, settings
        at = "the coordinator" if "on_scores" in kind.hooks() else "you"
        self._result = Defended(name, settings, at)
        self._figures: list[tuple[float, float, float]] = []
        self._worth: list[tuple[str, Use, Use]] = []  # measure, of the model before and after
        self._errors: dict[str, list[tuple[Array, Array, float]]] = {}  # by column, of blind guesses; blind

    def on(self, plain: World, alone: Array, model: int) -> None:
        """The next undefended model ``plain``; ``alone`` are the scores of the active party's own."""
        if self._result.reason:
            return
        try:
            world = self._defended(plain, model)
            self._price(plain, world, alone)
            if model < min(ATTACKED_MODELS, self._bench.plan.models):
                self._attack(world, model)
        except (
            Exception
        ) as error:  # a plug-in that needs more than this simulation has must not end the audit
            reason = f"{type(error).__name__}: {error}".partition("\n")[0]
            self._result = replace(self._result, reason=reason)

    def _defended(self, plain: World, model: int) -> World:
        named = (self._result.defense, self._kind(**self._settings))
        if not self._kind.hooks() & _IN_TRAINING:
            return plain.under(named)
        return simulate(self._bench.subject, "trained", self._bench.plan.rng("trained", model), [named])

    def _price(self, plain: World, world: World, alone: Array) -> None:
        by_itself = dict(zip(("accuracy_alone", "auc_alone"), plain.figures(alone), strict=True))
        (before, plain_auc), (after, world_auc) = plain.figures(plain.released), plain.figures(world.released)
        classes = self._bench.subject.classes
        measure, undefended = use_of({"accuracy": before, "auc": plain_auc, **by_itself}, classes)
        _, defended = use_of({"accuracy": after, "auc": world_auc, **by_itself}, classes)
        assert undefended is not None
        assert defended is not None
        self._worth.append((measure, undefended, defended))
        scores = plain.released, world.released
        self._figures.append((before - after, _mean_kl(*scores), _argmax_kept(*scores)))

    def _attack(self, world: World, model: int) -> None:
        self._result = replace(self._result, withheld=world.parameters is None)
        of_predictions = self._bench.estimates(world, "trained", model, slow=False)
        for name, rows, values in (*of_predictions, *self._bench.of_training(world, model)):
            x = self._bench.subject.x[rows]
            errors = ((values - x) ** 2).mean(axis=0), column_blind(x), min(blind_errors(x).values())
            self._errors.setdefault(name, []).append(errors)

    def result(self) -> Defended:
        """The means over models."""
        if self._result.reason:
            return self._result
        loss, kl, kept = np.mean(self._figures, axis=0).tolist()
        measures, before, after = zip(*self._worth, strict=True)
        cost = Cost.of(measures[0], dict(enumerate(after)), dict(enumerate(before)))
        priced = {"cost": cost, "price": str(cost), "gain": cost.gain, "accuracy_loss": loss}
        return replace(self._result, **self._strongest(), **priced, mean_kl=kl, argmax_kept=kept)

    def _strongest(self) -> Document:
        bench, models = self._bench, min(ATTACKED_MODELS, self._bench.plan.models)
        means = {
            name: [np.mean(part, axis=0) for part in zip(*found, strict=True)]
            for name, found in self._errors.items()
            if len(found) == models or name in bench.training_attacks
        }
        beating = {
            name: float(errors.mean()) for name, (errors, _, blind) in means.items() if errors.mean() < blind
        }
        blind = bench.blind[bench.blind_guess]
        attack, mse = min(beating.items(), key=lambda item: item[1], default=("", blind))
        taken = np.array(
            [shares(errors, of_column) for errors, of_column, _ in means.values()] or [np.zeros(1)]
        )
        leak = float(taken.max())
        column = bench.subject.columns[int(taken.max(axis=0).argmax())].name if leak else ""
        return {"attack": attack, "mse": mse, "leak": leak, "column": column, "tried": tuple(means)}


def _mean_kl(exact: Array, released: Array) -> float:
    """Mean over rows of KL(c‖c̃), infinite where a possible class was released as impossible."""
    c = np.exp(exact)
    with np.errstate(invalid="ignore"):  # 0·∞
        return float(np.where(c > 0, c * (exact - released), 0.0).sum(axis=1).mean())


def _argmax_kept(before: Array, after: Array) -> float:
    """Share of rows in which a most likely class stays among the most likely."""
    top, now = (s == s.max(axis=1, keepdims=True) for s in (before, after))
    return float((top & now).any(axis=1).mean())
