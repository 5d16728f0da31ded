"""Protection and cost of each installed defence for the audited party, measured on trained models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.util import find_spec

import numpy as np

from vflens.errors import VflensError
from vflens.experiments.audit.bench import Bench, Tell, Wanted, blind_errors, running
from vflens.experiments.audit.models import World, alone, simulate_several
from vflens.experiments.audit.outcomes import shares, worst_column, wrong_of
from vflens.experiments.pages.cost import Cost, Use, use_of
from vflens.experiments.results.titles import describe
from vflens.models.stacked import side_by_side
from vflens.numerics.measures.intervals import interval
from vflens.plugins.attack import installed_attack
from vflens.plugins.defense import Defense
from vflens.registry import DEFENSES
from vflens.storage.json_file import Number, Size, Word
from vflens.storage.metrics import Name
from vflens.types import Array, Document, Facts, Knowledge, Progress

_ACTING = frozenset({"on_inputs", "on_embedding", "on_scores", "on_parameters"})
_IN_TRAINING = frozenset({"on_inputs", "on_embedding"})
ATTACKED_MODELS = 3  # for every strength of every defence, and for attacks on training
COST_MODELS = 20  # what a defence costs is measured on more: it takes no attack
_ROWS = 300
#: Known rows that teach an attack enough: fewer mislead it, and hide what a defence leaves.
FEW_KNOWN = 10


@dataclass(frozen=True)
class Chosen:
    """A defence with its settings."""

    defense: Word
    settings: Facts

    @property
    def title(self) -> str:
        """It in words."""
        return describe({"name": self.defense, **self.settings})


@dataclass(frozen=True)
class Defended(Chosen):
    """The strongest attack against one defence, of predictions or of training in the clear, whichever takes
    more; ``at`` switches it on. Means over models.

    ``attack`` is "" where none of those ``tried``, which had what they need, beats the best blind guess,
    whose error ``mse`` then is. ``leak`` is the largest share of the best blind guess's error in a
    ``column`` that one of them takes of a model: the 95 % quantile over models, the worst column in the share
    ``alike`` of them. ``price`` is ``cost`` in words, ``gain`` what the federation still has over the active
    party alone. ``untested`` says why it is not recommended, whatever it hides: no attack that knows it ran.
    Of classes ``accuracy_loss``, ``mean_kl`` (nats) and ``argmax_kept`` compare
    the released scores with those of the undefended model. ``withheld`` says that no parameters were
    disclosed. ``reason`` says why a defence could not be simulated. Its figures are then None.
    """

    at: Word
    mse: Size | None = None
    attack: str = ""
    leak: Number | None = None
    column: str = ""
    cost: Cost | None = None
    price: str = ""
    gain: str = ""
    accuracy_loss: float | None = None
    mean_kl: float | None = None
    argmax_kept: float | None = None
    withheld: bool = False
    tried: tuple[str, ...] = ()
    alike: float = 1.0
    untested: str = ""
    reason: str = ""

    def __post_init__(self) -> None:
        if not self.reason and (self.mse is None or self.leak is None):
            raise ValueError("mse, leak: without a reason both are measured")

    def keeps_to(self, wanted: Wanted) -> bool:
        """Whether it is measured and reaches what is ``wanted``, whatever it costs."""
        return self.mse is not None and self.leak is not None and wanted.keeps(self.mse, self.leak)

    def fits(self, wanted: Wanted) -> bool:
        """Whether it does against an attack that knows it, at a decided cost that is ``wanted``."""
        paid = self.cost is not None and self.cost.is_decided and self.cost.loss <= wanted.most_loss
        return paid and not self.untested and self.keeps_to(wanted)


@dataclass(frozen=True)
class Mean:
    """A mean over models, and the half width of its interval; None of AUC on rows of one class."""

    mean: Number | None
    half: float | None = None


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
    here = find_spec("torch") is not None  # those of ours that need it act on networks: see candidates
    for name in DEFENSES.without("torch") if here else DEFENSES.names():
        try:
            loaded[name] = DEFENSES.get(name)
        except VflensError as error:
            reasons[name] = str(error)
    return loaded, reasons


def try_defenses(bench: Bench, progress: Progress) -> tuple[tuple[Defended, ...], dict[str, Mean]]:
    """Every candidate that the planned model gives something to act on, in order: all on one model after
    another, so that one is in memory at a time; and what the undefended models are worth, measure → mean
    and half width over them.
    """
    fewer = replace(bench, rows=bench.rows[:_ROWS])
    acting = _ACTING - bench.subject.family.unused_hooks
    trials = [_Trial(fewer, *one) for one in candidates() if one[2].hooks() & acting]
    worth: list[dict[str, float]] = []
    stage, total = "defences tried on models", COST_MODELS * len(trials)
    for models in side_by_side(COST_MODELS, bench.together):
        tell = running(progress, stage, models.start * len(trials), total)
        tell("training without one")
        plain = bench.worlds("trained", models)
        own = alone(plain, [bench.plan.rng("alone", i) for i in models])
        for trial in trials:
            trial.train(models, tell)
        for i, world, scores in zip(models, plain, own, strict=True):
            by_itself = {f"{name}_alone": figure for name, figure in world.figures(scores).items()}
            worth.append({**world.worth, **by_itself})
            for j, trial in enumerate(trials, i * len(trials)):
                trial.on(world, by_itself, i, running(progress, stage, j, total))
    progress(stage, total, total)
    utility = {name: Mean(*interval([figures[name] for figures in worth])) for name in worth[0]}
    return tuple(trial.result() for trial in trials), utility


def fitting(defended: Sequence[Defended], wanted: Wanted) -> tuple[Defended, ...]:
    """Those that fit what is ``wanted``, the cheapest first: least cost, none where none was measured, then
    least KL (∞ is common), then least leak, then what discloses least.
    """

    def order(d: Defended) -> tuple[float, float, float, bool]:
        return d.cost.loss if d.cost else 0.0, d.mean_kl or 0.0, d.leak or 0.0, not d.withheld

    return tuple(sorted((d for d in defended if d.fits(wanted)), key=order))


class _Trial:
    """One defence on one model after another."""

    def __init__(self, bench: Bench, name: str, settings: Document, kind: type[Defense]) -> None:
        self._bench, self._kind = bench, kind
        at = "the coordinator" if "on_scores" in kind.hooks() else "you"
        self._place, self._reason, self._withheld = (name, settings, at), "", False
        self._trained: dict[int, World] = {}  # under a defence that acts in training, until it is measured
        self._figures: list[tuple[float, float, float]] = []  # of classes
        self._worth: list[tuple[str, Use, Use]] = []  # measure, of the model before and after
        self._errors: dict[
            str, list[tuple[Array, Array, float]]
        ] = {}  # by column; taken of whole ones; blind

    def train(self, models: Sequence[int], tell: Tell) -> None:
        """The next ``models`` under the defence, if it acts in training."""
        name, settings, _ = self._place
        if self._reason or not self._kind.hooks() & _IN_TRAINING:
            return
        tell(f"training under {name}")
        rngs = [self._bench.plan.rng("trained", i) for i in models]
        with self._unharmed():
            worlds = simulate_several(self._bench.subject, "trained", rngs, [(name, self._kind(**settings))])
            self._trained = dict(zip(models, worlds, strict=True))

    def on(self, plain: World, alone: Facts, model: int, tell: Tell) -> None:
        """The next undefended model ``plain``; ``alone`` has the figures of the active party's own."""
        if self._reason:
            return
        name, settings, _ = self._place
        tell(name)
        with self._unharmed():
            world = self._trained.pop(model, None) or plain.under((name, self._kind(**settings)))
            self._price(plain, world, alone)
            if model < min(ATTACKED_MODELS, self._bench.plan.models):
                self._attack(world, model, lambda attack: tell(f"{name}, {attack}"))

    @contextmanager
    def _unharmed(self) -> Iterator[None]:
        """A plug-in that needs more than this simulation has must not end the audit."""
        try:
            yield
        except Exception as error:
            self._reason = f"{type(error).__name__}: {error}".partition("\n")[0]

    def _price(self, plain: World, world: World, alone: Facts) -> None:
        scores, classes = (plain.released, world.released), self._bench.subject.classes
        before, after = plain.worth, plain.figures(world.released)
        measure, undefended = use_of({**before, **alone}, classes)
        _, defended = use_of({**after, **alone}, classes)
        assert undefended is not None
        assert defended is not None
        self._worth.append((measure, undefended, defended))
        if "on_scores" not in self._bench.subject.family.unused_hooks:  # they are log-probabilities
            lost = before[Name.ACCURACY] - after[Name.ACCURACY]
            self._figures.append((lost, _mean_kl(*scores), _argmax_kept(*scores)))

    def _attack(self, world: World, model: int, tell: Tell) -> None:
        self._withheld = world.parameters is None
        knowing = self._bench.knowing(*self._place[:2])
        of_predictions = self._bench.estimates(world, "trained", model, tell, slow=False, besides=knowing)
        for answer in (*of_predictions, *self._bench.of_training(world, model, tell)):
            x, learnt = self._bench.subject.x[answer.rows], self._bench.guesses(answer.rows)
            taken = shares(*wrong_of(self._bench.subject, answer, learnt))
            errors = ((answer.inside - x) ** 2).mean(axis=0), taken, min(blind_errors(x, learnt).values())
            self._errors.setdefault(answer.attack, []).append(errors)

    def result(self) -> Defended:
        """The means over models."""
        if self._reason:
            return Defended(*self._place, withheld=self._withheld, reason=self._reason)
        strongest = self._strongest()
        of_classes: Document = {}
        if self._figures:
            names = ("accuracy_loss", "mean_kl", "argmax_kept")
            of_classes = dict(zip(names, np.mean(self._figures, axis=0).tolist(), strict=True))
        measures, before, after = zip(*self._worth, strict=True)
        cost = Cost.of(measures[0], dict(enumerate(after)), dict(enumerate(before)))
        priced: Document = {"cost": cost, "price": str(cost), "gain": cost.gain}
        untested = _untested(self._bench, self._bench.made_for(self._place[0]), strongest["tried"])
        figures = {**strongest, **priced, **of_classes}
        return Defended(*self._place, withheld=self._withheld, untested=untested, **figures)

    def _strongest(self) -> Document:
        bench, models = self._bench, min(ATTACKED_MODELS, self._bench.plan.models)
        ran = {
            name: [np.array(part) for part in zip(*found, strict=True)]  # a row for each model
            for name, found in self._errors.items()
            if len(found) == models or name in bench.training_attacks
        }
        beating = {
            name: float(errors.mean())
            for name, (errors, _, blind) in ran.items()
            if errors.mean() < blind.mean()
        }
        blind = bench.blind[bench.blind_guess]
        attack, mse = min(beating.items(), key=lambda item: item[1], default=("", blind))
        leaks = [worst_column(taken) for _, taken, _ in ran.values()]
        leak, place, alike = max(leaks, default=(0.0, 0, 0.0))
        column = bench.subject.whole[place][0] if leak else ""
        worst: Document = {"leak": leak, "column": column, "alike": alike}
        return {"attack": attack, "mse": mse, "tried": tuple(ran), **worst}


def _untested(bench: Bench, knowing: Sequence[str], tried: Sequence[str]) -> str:
    """Why nobody can say what a defence hides after attacks were ``tried``; "" after one of those ``knowing``
    it that had enough to learn from.
    """
    ran = sorted({*knowing} & {*tried})
    if any(len(bench.known) >= FEW_KNOWN or not _learns(name) for name in ran):
        return ""
    if ran:
        few, more = len(bench.known), bench.plan.stated("known", FEW_KNOWN)
        return f"not tested: {', '.join(ran)}, made for it, learnt from {few} known rows: state {more}"
    if knowing:
        return f"not tested: {', '.join(sorted(knowing))}, made for it, could not run here"
    return "not tested: no installed attack is made for it"


def _learns(name: str) -> bool:
    """Whether the attack takes what it assumes from known rows."""
    kind = installed_attack(name)
    return kind is not None and bool(kind.needs & {Knowledge.MOMENTS, Knowledge.AUXILIARY})


def _mean_kl(exact: Array, released: Array) -> float:
    """Mean over rows of KL(c‖c̃), infinite where a possible class was released as impossible."""
    c = np.exp(exact)
    with np.errstate(invalid="ignore"):  # 0·∞
        return float(np.where(c > 0, c * (exact - released), 0.0).sum(axis=1).mean())


def _argmax_kept(before: Array, after: Array) -> float:
    """Share of rows in which a most likely class stays among the most likely."""
    top, now = (s == s.max(axis=1, keepdims=True) for s in (before, after))
    return float((top & now).any(axis=1).mean())
