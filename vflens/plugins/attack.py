"""The base of every attack: it declares what it needs, receives a view, returns an estimate.

An attack never has the truth: its view holds what its party received and owns
(:mod:`vflens.plugins.views.vertical`), and its package cannot import data, scoring or wire.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict

from vflens.errors import ConfigError, KnowledgeError, PluginError
from vflens.numerics.linear_system import LinearSystem, in_range, residual_norm
from vflens.plugins.conditional import conditional, of_rows
from vflens.plugins.declared import Audited, Declared, Stated
from vflens.plugins.views.vertical import AdversaryView
from vflens.registry import ATTACKS
from vflens.types import (
    Array,
    ColumnInfo,
    Estimate,
    Knowledge,
    LabelKind,
    Moments,
    Phase,
    RowStatus,
    Setting,
    statuses,
)

if TYPE_CHECKING:
    from torch.nn import Module


#: What an attack estimates: columns, labels, who trained, or whose training row it is.
Estimated: TypeAlias = Literal["features", "labels", "membership", "source"]
#: The guess that what an attack on columns finds is compared with, wherever the adversary knows some rows.
FAIR_GUESS = "imputation"


class Attack(BaseModel, ABC):
    """One attack: frozen hyper-parameters as fields, one method.

    ``needs`` is the knowledge that it may read, ``phases`` the phases whose messages it may read.
    ``rowwise`` says that rows are estimated one by one: permuting the rows permutes the answer.
    ``estimates``: the target's columns (N, d), its labels, or a score of membership (N, 1) of each of
    ``view.candidates()``. Labels are of one ``label_kind``: a belief in each class (N, k), or a number in
    [0, 1] of its bounds (N, 1). ``estimated_rows``:
    prediction rows, training rows, or both. ``up_to_affine`` says that its values are the target's columns up
    to an affine map, which only the target can fit, ``up_to_renaming`` that its classes have no names: only
    the target can name each as one of its own. ``exact``: the answer is exact if the messages determine
    it; an iteration that stops early, or an estimate from a sample, is not. ``unknown_columns`` is the number
    of unknown columns that it is made for, None for any. ``settings`` are those of the federations that it is
    for: it gets a :class:`vflens.plugins.views.vertical.AdversaryView` in a vertical one, and in a horizontal
    one a :class:`vflens.plugins.views.horizontal.ServerView`. ``blind``: it reads nothing that the federation
    sends of the estimated rows, so that its error stands among those of blind guesses. ``means_only``: it
    estimates the means of columns, the same for every row. ``helped_by`` is
    knowledge that it uses where it is granted, and does without elsewhere. ``knows`` names the defences that
    it is made for: against them stands what an adversary achieves who knows how they work. ``audited`` is how
    ``vflens audit`` runs it, None where another attack covers it. ``stated`` is the theory of its error, or
    None. ``since``: the release in which it is new, so that it may still change; "" later.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    needs: ClassVar[frozenset[Knowledge]]
    phases: ClassVar[frozenset[Phase]] = frozenset({Phase.PREDICT, Phase.DISCLOSE})
    rowwise: ClassVar[bool] = True
    up_to_affine: ClassVar[bool] = False
    up_to_renaming: ClassVar[bool] = False
    estimated_rows: ClassVar[frozenset[Phase]] = frozenset({Phase.PREDICT})
    exact: ClassVar[bool] = True
    unknown_columns: ClassVar[int | None] = None
    estimates: ClassVar[Estimated] = "features"
    label_kind: ClassVar[LabelKind] = "classes"
    audited: ClassVar[Audited | None] = Audited()
    stated: ClassVar[Stated | None] = None
    settings: ClassVar[frozenset[Setting]] = frozenset({Setting.VERTICAL})
    blind: ClassVar[bool] = False
    means_only: ClassVar[bool] = False
    helped_by: ClassVar[frozenset[Knowledge]] = frozenset()
    knows: ClassVar[frozenset[str]] = frozenset()
    since: ClassVar[str] = ""

    def suits(self, columns: Sequence[ColumnInfo]) -> bool:
        """Whether it is made for these unknown ``columns``."""
        return self.unknown_columns in (None, len(columns))

    def declared(self) -> Declared:
        """What it reads and estimates as set: what the class declares, and what a setting adds."""
        return Declared(self.needs, self.phases, self.estimated_rows)

    @property
    def of_candidates(self) -> bool:
        """Whether its rows are candidates that a client or an active party grants."""
        return self.estimates in ("membership", "source")

    @property
    def unordered(self) -> bool:
        """Whether it estimates the rows that a client trained on in ``view.round``, in no known order; its
        ``rows`` are places.
        """
        return False

    @property
    def pooled(self) -> bool:
        """Whether it estimates the rows of all clients of a round together, from the sum of their updates:
        whose a row is, it cannot tell. Each client scores those that come nearest to its own.
        """
        return False

    @property
    def estimated_round(self) -> Literal["first", "last"] | None:
        """The recorded round of which it estimates the rows; None: rows by number.

        Rows of a round have no order where it is ``unordered``, else that of their embeddings.
        """
        return "first" if self.unordered else None

    def made_for(self) -> frozenset[Setting]:
        """The settings of the federations that it is for as set: a client's rounds are horizontal."""
        return frozenset({Setting.HORIZONTAL}) if self.estimated_round else self.settings

    def check(self, bottom: Module) -> None:
        """Refuse, before a run, settings that do not fit the target's new, untrained bottom model in torch.

        Raises:
            KnowledgeError: naming the setting.
        """

    def check_whole(self, model: Module) -> None:
        """The same of the whole model of a client, in torch, whose children are "bottom" and "top".

        Raises:
            KnowledgeError: what the model lacks.
        """

    def check_label(self, kind: LabelKind) -> None:
        """Refuse labels of another ``label_kind`` where it estimates or reads labels, as all do whose needs
        name them.

        Raises:
            KnowledgeError: there are none of its kind.
        """
        reads = self.declared().needs & {Knowledge.OWN_LABELS, Knowledge.KNOWN_LABELS}
        if kind != self.label_kind and (self.estimates != "features" or reads):
            raise KnowledgeError(
                "the label is a number, and this attack is made for classes"
                if kind == "number"
                else "the labels are classes, and this attack is made for a number"
            )

    @abstractmethod
    def reconstruct(self, view: Any, *, rng: np.random.Generator) -> Estimate:
        """Estimate ``view.target``'s columns, or labels, for ``view.rows``.

        Raises:
            KnowledgeError: something undeclared, withheld or never disclosed was read.
        """


def installed_attack(name: str) -> type[Attack] | None:
    """The class of the attack called ``name``; None if it is not installed or needs an extra that is not."""
    try:
        found: type[Attack] = ATTACKS.get(name)
    except (ConfigError, PluginError):
        return None
    return found


def up_to_renaming(attack: str) -> bool:
    """Whether the classes that ``attack`` finds have no names; False if it is not installed."""
    kind = installed_attack(attack)
    return kind is not None and kind.up_to_renaming


def up_to_affine(attack: str) -> bool:
    """Whether the values of ``attack`` are the columns up to an affine map: plain MSE has no meaning."""
    kind = installed_attack(attack)
    return kind is not None and kind.up_to_affine


def is_blind(attack: str) -> bool:
    """Whether ``attack`` is a blind guess; False if it is not installed."""
    kind = installed_attack(attack)
    return kind is not None and kind.blind


def means_only(attack: str) -> bool:
    """Whether ``attack`` estimates means of columns alone; False if it is not installed."""
    kind = installed_attack(attack)
    return kind is not None and kind.means_only


class JointAttack(Attack):
    """An attack that estimates the columns of all passive parties at once: its targets share the answer."""

    @abstractmethod
    def joint(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Estimate all unknown columns (N, d), in party-name order, for ``view.rows``; nothing else may
        depend on the target.

        Raises:
            KnowledgeError: something undeclared, withheld or never disclosed was read.
        """

    def reconstruct(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """The target's columns of :meth:`joint`; see :meth:`Attack.reconstruct`."""
        found = view.shared(self, lambda: self.joint(view, rng=rng), rng)
        extras = {name: extra.copy() for name, extra in found.extras.items()}
        values = found.values[:, view.columns()].copy()
        return Estimate(view.target, view.rows, values, found.status.copy(), extras=extras)


class LinearAttack(JointAttack):
    """An attack on the linear system A x = b' of logistic regression (RVG §III; ``docs/notation.md``).

    With several passive parties A has the columns of all of them: it is solved jointly and the
    target's columns are returned. An attack whose ``needs`` name no scores gets a system without
    equations, one with MOMENTS gets the moments of the unknown columns. Where it is ``exact``, the answer
    does not depend on the equations' basis either.
    """

    needs: ClassVar[frozenset[Knowledge]] = frozenset(
        {Knowledge.SCORES, Knowledge.PARAMETERS, Knowledge.OWN_FEATURES}
    )

    @abstractmethod
    def solve(
        self, A: Array, b: Array, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        """Estimate x (N, d) in A x = b from ``A`` (m, d) and ``b`` (N, m), finite float64."""

    def solve_system(
        self, system: LinearSystem, *, rng: np.random.Generator, moments: Moments | None = None
    ) -> Estimate:
        """:meth:`solve` in the federation, where ``system`` holds the scores themselves too."""
        return self.solve(system.A, system.b, rng=rng, moments=moments)

    def joint(self, view: AdversaryView, *, rng: np.random.Generator) -> Estimate:
        """Solve the system of each group of rows with the same usable scores; see :meth:`JointAttack.joint`.

        Rows with equations missing are SATURATED unless a worse state applies.
        """
        width, moments = sum(view.widths().values()), self.moments_of(view, rng=rng)
        found = self.solved(self.systems(view), width, rng=rng, moments=moments)
        return replace(found, target=view.target, rows=view.rows)

    def moments_of(self, view: AdversaryView, *, rng: np.random.Generator) -> Moments | None:
        """What :meth:`solve` gets: the moments of the unknown columns, given the own ones where the attack is
        ``helped_by`` known rows; see :func:`vflens.plugins.conditional.conditional`.
        """
        if Knowledge.MOMENTS not in self.needs:
            return None
        plain = view.moments()
        if Knowledge.AUXILIARY not in self.helped_by:
            return plain
        A = view.equations(self.believed(view)[0])

        def tried(rows: Array, x: Array, moments: Moments) -> Array:
            return self.solve(A, x @ A.T, rng=rng, moments=moments).values

        return conditional(view, plain, tried)

    def solved(
        self,
        systems: Sequence[tuple[Array, LinearSystem]],
        width: int,
        *,
        rng: np.random.Generator,
        moments: Moments | None = None,
    ) -> Estimate:
        """The estimate (N, ``width``) of the unnamed target from the ``systems`` of all N rows; see
        :meth:`joint`.
        """
        n = sum(len(rows) for rows, _ in systems)
        values, status = np.empty((n, width)), statuses(n)
        extras: dict[str, Array] = {}
        for rows, system in systems:
            part = self.solve_system(system, rng=rng, moments=of_rows(moments, rows))
            missing = system.saturated & (part.status == RowStatus.OK)
            values[rows], status[rows] = part.values, np.where(missing, RowStatus.SATURATED, part.status)
            for name, extra in part.extras.items():
                extras.setdefault(name, np.zeros((n, *extra.shape[1:]), extra.dtype))[rows] = extra
        return Estimate("", np.arange(n, dtype=np.int32), values, status, extras=extras)

    def systems(self, view: AdversaryView) -> list[tuple[Array, LinearSystem]]:
        """What the rows of ``view`` give to solve: their places (n,) in ``view.rows``, and their system."""
        width = sum(view.widths().values())
        if Knowledge.SCORES not in self.needs:
            return no_equations(len(view.rows), width)
        weight, bias = self.believed(view)
        known = view.own_logits() + bias
        return view.linear_systems(known, weight, self.scores(view))

    def believed(self, view: AdversaryView) -> tuple[Array, Array]:
        """The weights (k, d) of all unknown columns and the bias (k,) that it solves with: as disclosed."""
        return view.unknown_parameters()

    def scores(self, view: AdversaryView) -> Array | None:
        """The scores (N, k) that it solves with; None: as released."""
        return None


def no_equations(n: int, width: int) -> list[tuple[Array, LinearSystem]]:
    """The system of ``n`` rows of which nothing is known."""
    return [(np.arange(n), LinearSystem(np.zeros((0, width)), np.zeros((n, 0)), saturated=False))]


def linear_estimate(values: Array, A: Array, b: Array) -> Estimate:
    """An estimate of the unnamed target for all rows of ``b``.

    Extras: "residual" (N,), ‖A x − b‖ of the estimate itself. Rows whose equations no x at all satisfies
    (:func:`vflens.numerics.linear_system.in_range`) are INCONSISTENT, however good the estimate.
    """
    status = statuses(len(b))
    status[~in_range(A, b)] = RowStatus.INCONSISTENT
    rows = np.arange(len(b), dtype=np.int32)
    return Estimate("", rows, values, status, extras={"residual": residual_norm(A, b, values)})


def knowing(setting: Setting, *, linear: bool) -> dict[str, frozenset[str]]:
    """The installed attacks that are made for a defence of ``linear`` models, or networks, in ``setting``."""
    names = ATTACKS.without("torch") if linear else ATTACKS.names()
    kinds = {name: installed_attack(name) for name in names}
    return {
        name: kind.knows
        for name, kind in kinds.items()
        if kind is not None
        and kind.knows
        and setting in kind.settings
        and issubclass(kind, LinearAttack) == linear
    }
