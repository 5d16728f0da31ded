"""What the lone party writes down of its run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from toysetting.config import ALONE, SOLO, SoloConfig
from vflens.models.family import ModelFamily, checked_model
from vflens.models.settings import Training
from vflens.models.size import Size
from vflens.protocol.agreement import Agreement, parties_from_dicts, parties_to_dicts
from vflens.protocol.split import drawn_split
from vflens.randomness import secret_from_seed, stream
from vflens.tables.table import PREDICT, TRAIN, Table
from vflens.types import Array, PartyInfo, Phase, Role, Setting


@dataclass(frozen=True, eq=False, kw_only=True)
class LoneAgreement(Agreement):
    """One party's run; an epoch is a step. Its rows are those that train, then those that it predicts."""

    run: str
    parties: tuple[PartyInfo, ...]
    training: Training
    lab: bool
    model: ModelFamily
    nonce: str = ""

    setting: ClassVar[Setting] = ALONE
    AGREED: ClassVar[tuple[str, ...]] = ("run", "lab", "setting", "training", "model", "parties")

    @property
    def n_classes(self) -> int:
        return self.parties[0].n_classes

    @property
    def received_width(self) -> int:
        return self.model.width_of(self.parties[0].columns, self.n_classes)

    def part_size(self, party: PartyInfo) -> Size:
        return self.model.part_size(Role.ACTIVE, party.columns, (), self.n_classes)

    def rows_of(self, party: str, phase: Phase) -> Array:
        info = self.parties[0]
        end = info.train_rows + info.predict_rows
        rows = {Phase.TRAIN: (0, info.train_rows), Phase.PREDICT: (info.train_rows, end)}
        return np.arange(*rows[phase], dtype=np.int32)

    @property
    def epoch_steps(self) -> int:
        return 1

    def agreed(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "lab": self.lab,
            "setting": "alone",
            "training": self.training.model_dump(),
            "model": self.model.model_dump(mode="json"),
            "parties": parties_to_dicts(self.parties),
        }

    def positions(self) -> dict[str, Array]:
        return {}

    @classmethod
    def restored(cls, facts: Mapping[str, Any], positions: Mapping[str, Array]) -> LoneAgreement:
        return cls(
            run=facts["run"],
            parties=parties_from_dicts(facts["parties"]),
            training=Training(**facts["training"]),
            lab=facts["lab"],
            model=checked_model(facts["model"]),
            nonce=facts["nonce"],
        )


def split_rows(config: SoloConfig, table: Table) -> tuple[Array, Array]:
    """The rows of ``table`` that train and that are predicted, int32; drawn where it has no split."""
    drawn = stream(secret_from_seed(config.seed), "split")
    split = drawn_split(len(table.ids), config.predict_share, drawn) if table.split is None else table.split
    train, predict = (np.flatnonzero(split == use).astype(np.int32) for use in (TRAIN, PREDICT))
    return train, predict


def agreement_of(config: SoloConfig, table: Table, nonce: str = "") -> LoneAgreement:
    """The run that ``config`` describes, on its own ``table``."""
    train, predict = map(len, split_rows(config, table))
    names = table.class_names
    info = PartyInfo(
        config.party,
        SOLO,
        columns=table.columns,
        n_classes=len(names),
        classes=names,
        train_rows=train,
        predict_rows=predict,
    )
    return LoneAgreement(
        run=config.run,
        parties=(info,),
        training=config.training,
        lab=config.lab,
        model=config.model,
        nonce=nonce,
    )
