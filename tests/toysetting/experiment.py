"""The experiment file of the setting, and what is checked of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import Field

from toysetting.agreement import agreement_of
from toysetting.config import ALONE, SOLO, SoloConfig
from vflens.clients.membership import check_limits
from vflens.config import Name, PartyConfig, Settings
from vflens.experiments.run.any_experiment import AnyPartiesExperiment
from vflens.plugins.defense import NamedDefense
from vflens.tables.table import Table
from vflens.types import Document, Role


class Alone(Settings):
    """The table that says that an experiment is of this setting."""

    party: Name = Field("hermit", description="the name of the only party")


class LoneExperiment(AnyPartiesExperiment):
    """The whole file, which has a table ``[alone]``."""

    setting = ALONE
    table = "alone"

    alone: Alone

    @property
    def data_parties(self) -> tuple[str, ...]:
        return (self.alone.party,)

    def roles(self) -> dict[str, Role]:
        return {self.alone.party: SOLO}

    def are_peers(self, one: Role, other: Role) -> bool:
        return False

    def check_defenses(self, built: Mapping[str, Sequence[NamedDefense]]) -> None:
        """No hook of the role, no defence: the party's own configuration refuses all."""

    def dealt(self, table: Table, secret: bytes) -> dict[str, Table]:
        return {self.alone.party: table}

    def settings_of(self, party: str, root: str) -> Document:
        return {
            "training": self.training.model_dump(),
            "model": self.model.model_dump(),
            "device": self.device,
            "predict_share": self.predict_share,
        }


def check_alone(
    experiment: AnyPartiesExperiment,
    scenarios: Sequence[Sequence[PartyConfig]],
    tables: Mapping[str, Table],
) -> Document:
    """Refuse what the party would refuse; its rows in words."""
    for config in (config for parties in scenarios for config in parties):
        assert isinstance(config, SoloConfig)
        agreed = agreement_of(config, tables[config.party])
        (info,) = agreed.parties
        check_limits(agreed, info, config.limits)
    return {"rows": f"{info.train_rows} to train, {info.predict_rows} to predict"}
