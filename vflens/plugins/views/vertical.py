"""The adversary's view: its party's transcript, disclosures and own data, and no more.

Facts that every party knows are free to read: the parties, their numbers of columns, the training rows. Every
other read is checked against the attack's declared knowledge and phases.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from vflens.errors import KnowledgeError, PluginError
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.family import ModelFamily
from vflens.models.settings import Training
from vflens.numerics.linear_system import LinearSystem
from vflens.numerics.shrinkage import block_diagonal
from vflens.plugins.findings import Joint
from vflens.plugins.steps import silent
from vflens.plugins.views.own_reads import OwnReads
from vflens.plugins.views.reads import POINT_KNOWLEDGE, Log, read_only
from vflens.plugins.views.target import TargetView
from vflens.types import (
    Array,
    ColumnInfo,
    Exchange,
    Knowledge,
    Moments,
    PartyInfo,
    Phase,
    Point,
    Progress,
    Role,
)

if TYPE_CHECKING:
    from torch.nn import Module


class AdversaryView(TargetView, OwnReads):
    """The view of an adversary in ``party`` on ``target``'s columns for ``rows``.

    Args:
        transcript: what ``party`` received.
        own: what ``party`` owns: "features" (N_all, d) in [0, 1] or as bytes for 255ths, "labels" (N_all,),
            and a passive party's "embeddings" (N_all, w), indexed by position in the aligned order;
            "public/PARTY" (M, d) and "public labels" (M,) of the public rows; "sending/…", what an attack
            that sends keeps;
            "parameters" (k, d) of softmax regression; "network/…", the active party's own part of a split
            network.
        parties: the public description of all parties.
        rows: int32 positions to estimate.
        needs: the knowledge that the attack declared.
        phases: the phases whose messages it declared.
        training: int32 positions of the training rows, which every party knows.
        model: what the federation trains.
        schedule: how it trains.
        every: the transcript keeps the training messages of every so many epochs.
        device: where attacks that use torch compute, "cpu" or "cuda": their party's.
        joint: what attacks found for all targets of the same rows, or for all rows of one target; the views
            of those are given one list.
        own_model: makes a copy of the party's trained bottom model; None where it has none.
        progress: called by attacks that take long, with a stage, its steps done and in all.
        colluders: other parties, whose messages are in ``transcript`` too; their data in ``own`` stand beside
            those of ``party``: the active party's first, the others by name.
    """

    is_remembered = True

    def __init__(
        self,
        *,
        party: str,
        target: str,
        rows: Array,
        n_classes: int,
        transcript: Log,
        own: Mapping[str, Array],
        parties: Sequence[PartyInfo],
        needs: frozenset[Knowledge],
        phases: frozenset[Phase],
        training: Array | None = None,
        schedule: Training | None = None,
        model: ModelFamily = SOFTMAX_REGRESSION,
        every: int = 1,
        device: str = "cpu",
        joint: Joint | None = None,
        own_model: Callable[[], Module] | None = None,
        progress: Progress = silent,
        colluders: Sequence[str] = (),
    ) -> None:
        self.colluders, self.schedule = tuple(sorted(colluders)), schedule
        self.training_rows = read_only(np.zeros(0, np.int32) if training is None else training)
        super().__init__(
            target=target,
            n_classes=n_classes,
            parties=parties,
            model=model,
            device=device,
            joint=joint,
            progress=progress,
            party=party,
            rows=read_only(rows),
            log=transcript,
            needs=needs,
            phases=phases,
            every=every,
            own=own,
            own_model=own_model,
        )

    def own_columns(self) -> Sequence[ColumnInfo]:
        """The columns of the adversary's party itself; of colluders the active one's, then by name."""
        own = [p for p in self._parties.values() if p.name in {self.party, *self.colluders}]
        own = sorted(own, key=lambda p: (p.role is Role.PASSIVE, p.name))
        return tuple(column for party in own for column in party.columns)

    def unknown_columns(self) -> tuple[ColumnInfo, ...]:
        """The same of all unknown columns, in party-name order."""
        self._check(Knowledge.METADATA)
        return tuple(c for party in self.widths() for c in self._parties[party].columns)

    def widths(self) -> dict[str, int]:
        """The number of columns of every passive party other than the adversary's, in name order."""
        own = {self.party, *self.colluders}
        others = (p for p in self._parties.values() if p.role == Role.PASSIVE and p.name not in own)
        return {p.name: len(p.columns) for p in sorted(others, key=lambda p: p.name)}

    def columns(self) -> slice:
        """Where the target's columns stand among all unknown columns.

        Raises:
            KnowledgeError: the target is the active party, whose columns are not among them.
        """
        widths = self.widths()
        if self.target not in widths:
            raise KnowledgeError(
                f"party {self.target!r} has no unknown columns: those are of {', '.join(widths) or 'nobody'}"
            )
        start = sum(w for name, w in widths.items() if name < self.target)
        return slice(start, start + widths[self.target])

    def embeddings(self, rows: Array | None = None, phase: Phase = Phase.PREDICT) -> Array:
        """The target's embeddings (N, w) of ``rows`` (default: those of the view) as they arrived last in
        ``phase``.

        They came from the target itself, where the active party aggregates, or from the coordinator: as its
        part of a concatenation, or as a sum to which no other party added.

        Raises:
            KnowledgeError: none arrived of some row, or only sums with other parties'; the attack did not
                declare them or ``phase``.
            PluginError: ``rows`` are no positions.
        """
        found = ((r, values) for _, r, values in self.batches(Point.EMBEDDING, phase))
        return self._latest(found, rows, f"embeddings of {self.target!r}")

    def gradients(self, rows: Array | None = None) -> Array:
        """The gradient (N, w) of each row's own loss in what this party sent, as it arrived last.

        Raises:
            KnowledgeError: none arrived of some row, or the attack did not declare them.
            PluginError: ``rows`` are no positions.
        """
        found = ((r, values) for _, r, values in self.batches(Point.GRADIENT, Phase.TRAIN))
        return self._latest(found, rows, "gradients")

    def batches(self, point: Point, phase: Phase) -> Iterator[tuple[Exchange, Array, Array]]:
        """The messages of ``point`` in ``phase``, in order of arrival: exchange, rows (n,) and values (n, w).

        The rows of one exchange share its noise and its passport's keys. EMBEDDING are those of the target,
        as in :meth:`embeddings`. GRADIENT are those of each row's own loss: a batch's gradient is that of its
        mean loss and is multiplied by the batch's length.

        Raises:
            KnowledgeError: the attack did not declare it; only sums with other parties' embeddings arrived.
            PluginError: ``point`` is neither.
        """
        if point not in (Point.EMBEDDING, Point.GRADIENT):
            raise PluginError(f"batches({point.value!r}): only embeddings and gradients come in batches")
        self._check(POINT_KNOWLEDGE[point])
        if phase not in self._phases:
            raise KnowledgeError(f"the attack read phase {phase.value!r} without declaring it in `phases`")
        messages = self._select(point, phases={phase})
        if point is Point.GRADIENT:
            return ((r.exchange, r.rows, r.tensor("gradient") * len(r.rows)) for r in messages)
        aggregator = next((r.sender for r in self.received(point)), self.target)
        direct = aggregator in self.widths()
        part = slice(None) if direct else self._part_of_combination()
        return (
            (r.exchange, r.rows, r.tensor("embedding")[:, part])
            for r in messages
            if (r.sender == self.target) == direct
        )

    def public(self) -> Array:
        """The target's columns (M, d) of other people's rows, float64 in [0, 1]; see :meth:`own_public`.

        Raises:
            KnowledgeError: the attack did not declare PUBLIC, or its party has no public rows.
        """
        return self._public(f"public/{self.target}")

    def own_public(self) -> tuple[Array, Array]:
        """The adversary's own columns (M, d) of the rows of :meth:`public`, and their labels int64 (M,).

        Raises:
            KnowledgeError: as :meth:`public`.
        """
        labels = self._public("public labels")
        own = self._own.get(f"public/{self.party}", np.zeros((len(labels), 0)))
        return own, labels

    def _public(self, name: str) -> Array:
        self._check(Knowledge.PUBLIC)
        if name not in self._own:
            raise KnowledgeError(
                f"party {self.party!r} has no public rows: set data.public in the experiment, or public in "
                "its own configuration"
            )
        return self._own[name]

    def released_table(self) -> tuple[Array, Array]:
        """The target's table as it released it: the noisy features of all rows (M, d), and of ``rows`` (N,
        d).
        """
        released = self._only(Point.DATASET, self.target)
        table = released.tensor("dataset")
        return table, self._latest([(released.rows, table)], None, f"the table of {self.target!r}")

    def scores(self) -> Array:
        """The received log-probabilities (N, k) of ``rows``.

        Raises:
            KnowledgeError: the scores of a row never arrived, or are a number.
        """
        if self.label_kind == "number":
            raise KnowledgeError("the scores are predictions of a number: this attack is made for classes")
        return self._scores()

    def _scores(self) -> Array:
        found = ((r.rows, r.tensor("scores")) for r in self.received(Point.SCORES))
        return self._latest(found, None, "the scores").reshape(len(self.rows), self.n_classes)

    def unknown_parameters(self) -> tuple[Array, Array]:
        """Disclosed weights (k, d) of all unknown columns in party-name order, and the bias (k,).

        Raises:
            KnowledgeError: a party withheld its weights or never disclosed them, or the model has no such.
        """
        if not self._model.linear:
            raise KnowledgeError(
                f"the federation trains {self._model.title}: this attack is made for softmax regression"
            )
        weights, bias = [], self._own.get("bias", np.zeros(self.n_classes))
        for sender in self.widths():
            released = self._only(Point.PARAMETERS, sender)
            weights.append(released.tensor("weight"))
            if "bias" in (released.tensors or {}):
                bias = released.tensor("bias")
        return np.concatenate(weights, axis=1), bias

    def linear_systems(
        self, known: Array, weight: Array, scores: Array | None = None
    ) -> list[tuple[Array, LinearSystem]]:
        """The equations that ``scores`` (N, k) give, by default the released ones; see
        :meth:`ModelFamily.linear_systems`.

        To an adversary with the coordinator partial logits give more: an equation for each class and party.

        Raises:
            KnowledgeError: the scores of a row never arrived, or give no linear equations.
        """
        if self._sees_partial_logits:
            return [(np.arange(len(self.rows)), self._of_partial_logits(weight))]
        return self._model.linear_systems(self._scores() if scores is None else scores, known, weight)

    def equations(self, weight: Array) -> Array:
        """A (m, d) of a row of which no score is 0, whatever it is; see :meth:`linear_systems`."""
        if self._sees_partial_logits:
            return self._blocks(weight)
        any_scores = np.zeros((1, self.n_classes))
        return self._model.linear_systems(any_scores, any_scores, weight)[0][1].A

    @property
    def _sees_partial_logits(self) -> bool:
        """Whether a colluder is the coordinator, no data party."""
        return self._model.linear and not self._parties.keys() >= set(self.colluders)

    def _of_partial_logits(self, weight: Array) -> LinearSystem:
        """W_p x_p = z_p − b_p of every party p with unknown columns."""
        _, bias = self.unknown_parameters()
        holder = min(p.name for p in self._parties.values() if p.role == Role.PASSIVE)
        logits = [self._partial_logits(name) - (bias if name == holder else 0) for name in self.widths()]
        return LinearSystem(self._blocks(weight), np.concatenate(logits, axis=1), saturated=False)

    def _partial_logits(self, sender: str) -> Array:
        sent = self._select(Point.EMBEDDING, phases=self._phases & {Phase.PREDICT}, sender=sender)
        found = ((r.rows, r.tensor("embedding")) for r in sent)
        return self._latest(found, None, f"partial logits of {sender!r}")

    def _blocks(self, weight: Array) -> Array:
        """``weight`` (k, d) with the columns of every party in rows of its own (k·parties, d)."""
        ends = np.cumsum([*self.widths().values()])
        places = np.searchsorted(ends, np.arange(weight.shape[1]), side="right")
        return np.concatenate([np.where(places == i, weight, 0.0) for i in range(len(ends))])

    def moments(self) -> Moments:
        """Mean and covariance of all unknown columns: disclosed, or estimated from auxiliary rows.

        Parties that were granted apart are taken as uncorrelated. See
        :func:`vflens.numerics.shrinkage.estimated_moments` for those of rows.

        Raises:
            KnowledgeError: a party disclosed neither.
        """
        self._check(Knowledge.MOMENTS)
        parts = [self._moments_of(sender) for sender in self.widths()]
        mean = np.concatenate([p.mean for p in parts])
        covariances = [p.covariance for p in parts if p.covariance is not None]
        return Moments(mean, block_diagonal(covariances) if len(covariances) == len(parts) else None)

    def known_rows(self) -> list[tuple[Array, Array]]:
        """The rows that each passive party granted: positions int32 (m,) and features (m, d); [] if one did
        not, or the attack declared no use of them.
        """
        senders = self.widths() if Knowledge.AUXILIARY in self._needs else ()
        found = (self._disclosed(Point.AUXILIARY, sender, "features") for sender in senders)
        known = [(r.rows, r.tensor("features")) for r in found if r is not None]
        return known if len(known) == len(senders) else []

    def _part_of_combination(self) -> slice:
        """Where the target's numbers stand in what the coordinator makes of all embeddings."""
        others = self.widths()
        if not self._model.concatenates:
            if len(others) > 1:
                raise KnowledgeError(
                    f"party {self.party!r} saw sums of the embeddings of {', '.join(others)} only: this "
                    f"attack needs those of {self.target!r}"
                )
            return slice(None)
        widths = {name: self._model.width_of(self._parties[name].columns, self.n_classes) for name in others}
        start = sum(width for name, width in widths.items() if name < self.target)
        return slice(start, start + widths[self.target])
