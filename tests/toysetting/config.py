"""What the lone party's configuration is, and its role."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from vflens.config.party import DataPartyConfig, LeaderConfig
from vflens.protocol.access import Access
from vflens.protocol.roles import RoleFacts, SettingFacts
from vflens.types import Role, Setting

ALONE, SOLO = Setting("alone"), Role("solo")
SETTING_FACTS = SettingFacts(leader=SOLO, unit="epoch", passes="training.epochs", ready="ready")
ROLE_FACTS = RoleFacts(setting=ALONE, hooks=frozenset(), labelled=True, alike=True, words="{name}, alone")


class SoloConfig(DataPartyConfig, LeaderConfig):
    """A party with rows that leads its own run, and has no peer."""

    predict_share: float = Field(0.2, gt=0, lt=1, description="share of its rows kept for prediction")

    @property
    def access(self) -> Access:
        """Nobody may ask it."""
        return {}

    @model_validator(mode="after")
    def _labels_are_named(self) -> Self:
        if self.data.label_column is None:
            raise ValueError("data.label_column is missing: the party trains on labels, name their column")
        return self
