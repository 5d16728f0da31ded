"""The facts that all parties of a vertical run share after alignment: members, rows, training settings."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np

from vflens.errors import ProtocolError
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.family import ModelFamily, checked_model
from vflens.models.settings import Training
from vflens.models.size import Size
from vflens.protocol.agreement import Agreement, naming, parties_from_dicts, parties_to_dicts
from vflens.protocol.vertical.access import Way, way_of
from vflens.types import Array, PartyInfo, Phase, Point, Released, Role, Setting, sealed


@dataclass(frozen=True, eq=False, kw_only=True)
class VerticalAgreement(Agreement):
    """One aligned, vertical run. ``train`` and ``predict``: int32 positions in the aligned order of ``rows``
    rows.
    """

    setting: ClassVar[Setting] = Setting.VERTICAL
    AGREED: ClassVar[tuple[str, ...]] = (
        *("run", "lab", "aligned_rows", "train_rows", "predict_rows", "training", "model", "aggregator"),
        "parties",
    )

    run: str
    parties: tuple[PartyInfo, ...]
    rows: int
    train: Array
    predict: Array
    training: Training
    lab: bool
    model: ModelFamily = SOFTMAX_REGRESSION
    aggregator: str = "coordinator"  # who receives the passive parties' embeddings: one of AGGREGATORS
    nonce: str = ""

    @cached_property
    def active(self) -> PartyInfo:
        """The party with the labels."""
        return next(p for p in self.parties if p.role == Role.ACTIVE)

    @cached_property
    def passive(self) -> tuple[PartyInfo, ...]:
        """The passive parties in name order; the first holds the bias."""
        return tuple(sorted((p for p in self.parties if p.role == Role.PASSIVE), key=lambda p: p.name))

    @property
    def n_classes(self) -> int:
        """k, from the active party; 1 with a numeric label."""
        return self.active.n_classes

    def rows_of(self, party: str, phase: Phase) -> Array:
        """See :meth:`Agreement.rows_of`; the same for all parties."""
        return {Phase.TRAIN: self.train, Phase.PREDICT: self.predict}[phase]

    @cached_property
    def widths(self) -> Mapping[str, int]:
        """Passive party → numbers per row of its embedding: the classes, or the embedding's width.

        Raises:
            ConfigError: the model does not fit a party's columns; it names the party.
        """
        return {p.name: self._width_of(p) for p in self.passive}

    def _width_of(self, party: PartyInfo) -> int:
        with naming(party):
            return self.model.width_of(party.columns, self.n_classes)

    @cached_property
    def combined_width(self) -> int:
        """Numbers per row that the active party receives.

        Raises:
            ConfigError: the embeddings cannot be combined, or the model learns no such label.
        """
        self.model.check_label(self.active.label)
        return self.model.combined_width(list(self.widths.values()), self.n_classes)

    @property
    def received_width(self) -> int:
        return self.combined_width

    def part_size(self, party: PartyInfo) -> Size:
        peers = [p.columns for p in self.passive]
        return self.model.part_size(party.role, party.columns, peers, self.n_classes)

    @cached_property
    def scored_by_coordinator(self) -> bool:
        """Whether scores leave at the coordinator; otherwise the active party computes them."""
        return self.model.scores_leave_at is Role.COORDINATOR

    @cached_property
    def sent_by_active(self) -> int:
        """Numbers per row that the active party sends in prediction; 0 if it computes the scores."""
        return self.n_classes if self.scored_by_coordinator else 0

    @cached_property
    def predicted(self) -> tuple[Point, int]:
        """Numbers per row of the coordinator's answer in prediction: scores or combined embeddings."""
        if self.scored_by_coordinator:
            return Point.SCORES, self.n_classes
        return Point.EMBEDDING, self.combined_width

    def gradient_for(self, party: str, gradient: Released) -> Released:
        """Passive ``party``'s part of ``gradient``: for concatenated embeddings its own columns only."""
        if not self.model.concatenates:
            return gradient
        start = sum(width for name, width in self.widths.items() if name < party)
        own = gradient.tensor("gradient")[:, start : start + self.widths[party]]
        return replace(gradient, tensors={"gradient": sealed(own)})

    def combined(self, embeddings: Sequence[Array]) -> Array:
        """The parties' ``embeddings`` (n, width) as one: concatenated, or summed in the given order, so that
        bits do not depend on the order of answers.
        """
        if self.model.concatenates:
            return np.concatenate(embeddings, axis=1)
        total = embeddings[0]
        for embedding in embeddings[1:]:
            total = total + embedding
        return total

    @cached_property
    def direct(self) -> bool:
        """Whether embeddings go straight to the active party."""
        return self.aggregator == "active"

    @cached_property
    def way(self) -> Way:
        """How it trains."""
        return way_of(self.aggregator, self.training)

    @cached_property
    def led_by_active(self) -> bool:
        """Whether the active party leads the training: then no message of it reaches the coordinator."""
        return self.way.led_by_active

    @property
    def step_messages(self) -> int:
        return self.way.step_messages

    @cached_property
    def epoch_steps(self) -> int:
        """Training steps of an epoch."""
        return math.ceil(len(self.train) / self.training.batch_size)

    @cached_property
    def _members(self) -> Mapping[Phase, Array]:
        """Phase → bool (rows,) mask of its rows; DISCLOSE has none."""
        masks = {Phase.TRAIN: np.zeros(self.rows, bool), Phase.PREDICT: np.zeros(self.rows, bool)}
        masks[Phase.TRAIN][self.train] = True
        masks[Phase.PREDICT][self.predict] = True
        return masks

    def checked_rows(self, rows: Array, phase: Phase) -> Array:
        """``rows`` int32 (n,), if not empty and all of ``phase``.

        Raises:
            ProtocolError: no row, an unknown row, or one of the other phase.
        """
        member = self._members[phase]
        if not len(rows):
            raise ProtocolError(f"an empty list of {phase.value} rows: ask for at least one")
        try:  # read as unsigned, a negative position is a huge one: out of range too
            members = int(np.count_nonzero(member.take(rows.view(np.uint32))))
        except IndexError:
            members = -1
        if members != len(rows):
            wrong = next(r for r in rows.tolist() if not (0 <= r < len(member) and member[r]))
            raise ProtocolError(
                f"row {wrong} is no {phase.value} row of run {self.run!r}: ask for rows of that set"
            )
        return rows

    def ends_epoch(self, step: int) -> bool:
        """Whether training step ``step`` (from 0) is the last of its epoch."""
        return (step + 1) % self.epoch_steps == 0

    def agreed(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "lab": self.lab,
            "aligned_rows": self.rows,
            "train_rows": len(self.train),
            "predict_rows": len(self.predict),
            "training": self.training.model_dump(),
            "model": self.model.model_dump(mode="json"),
            "aggregator": self.aggregator,
            "parties": parties_to_dicts(self.parties),
        }

    def positions(self) -> dict[str, Array]:
        return {"train": self.train, "predict": self.predict}

    @classmethod
    def restored(cls, facts: Mapping[str, Any], positions: Mapping[str, Array]) -> Self:
        return cls(
            run=facts["run"],
            parties=parties_from_dicts(facts["parties"]),
            rows=facts["aligned_rows"],
            train=positions["train"],
            predict=positions["predict"],
            training=Training(**facts["training"]),
            lab=facts["lab"],
            model=checked_model(facts["model"]),
            aggregator=facts["aggregator"],
            nonce=facts.get("nonce", ""),
        )
