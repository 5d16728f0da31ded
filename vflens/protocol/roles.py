"""What each setting and each role is, as facts: other layers ask them, not which setting it is."""

from collections.abc import Mapping
from dataclasses import dataclass

from vflens.types import Role, Setting


@dataclass(frozen=True, kw_only=True)
class SettingFacts:
    """``leader`` leads its runs and counts them in ``unit``; a data party is ``ready`` before it trains.
    ``passes`` names what makes the passes over a party's rows. ``alone`` says what trains without the others,
    beside whose accuracy that of the run stands, "" if nothing does.
    """

    leader: Role
    unit: str
    ready: str
    passes: str
    alone: str = ""


SETTINGS: Mapping[Setting, SettingFacts] = {
    Setting.VERTICAL: SettingFacts(
        leader=Role.COORDINATOR,
        unit="step",
        ready="aligned",
        passes="training.epochs",
        alone="the active party without the federation",
    ),
    Setting.HORIZONTAL: SettingFacts(
        leader=Role.SERVER,
        unit="round",
        ready="prepared",
        passes="local epochs of all rounds",
        alone="a client on its own rows, and figures are means over clients",
    ),
}


@dataclass(frozen=True, kw_only=True)
class RoleFacts:
    """A member of a run in ``setting``.

    ``hooks`` are those at which its defences may act; ``wrap_model`` and ``penalty`` only for split networks.
    ``estimates``: what its attacks may estimate, as attacks name it. ``labelled``: it holds labels.
    ``only_top``: of a split model it holds the top and the loss, and others hold bottoms.
    ``predicts``: it asks for predictions over the wire.
    ``limits_scores``: it may refuse scores that give too much of its columns away.
    ``alike``: the data parties of its run have this one role. ``pictured``: the scored set of which it draws
    pictures, "" if it draws none. ``words`` name a party in a sentence; ``other`` is its name, "" where that
    is its role.
    """

    setting: Setting
    hooks: frozenset[str]
    estimates: frozenset[str] = frozenset()
    labelled: bool = False
    only_top: bool = False
    predicts: bool = False
    limits_scores: bool = False
    alike: bool = False
    pictured: str = ""
    words: str = "the {role} party{other}"

    @property
    def of_setting(self) -> SettingFacts:
        """The facts of its setting."""
        return SETTINGS[self.setting]


_DATA_PARTY = frozenset({"on_inputs", "on_batch", "wrap_model", "penalty", "on_embedding"})
_ANY = frozenset({"features", "labels", "membership", "source"})

ROLES: Mapping[Role, RoleFacts] = {
    Role.PASSIVE: RoleFacts(
        setting=Setting.VERTICAL,
        hooks=_DATA_PARTY | {"on_received", "on_parameters", "on_dataset"},
        estimates=frozenset({"labels"}),
        limits_scores=True,
        pictured="predict",
    ),
    Role.ACTIVE: RoleFacts(
        setting=Setting.VERTICAL,
        hooks=_DATA_PARTY | {"on_labels", "on_batch_labels", "on_outputs", "on_gradient"},
        estimates=frozenset({"features"}),
        labelled=True,
        only_top=True,
        predicts=True,
    ),
    Role.COORDINATOR: RoleFacts(
        setting=Setting.VERTICAL,
        hooks=frozenset({"on_embedding", "on_scores"}),
    ),
    Role.CLIENT: RoleFacts(
        setting=Setting.HORIZONTAL,
        hooks=frozenset(
            {
                "on_inputs",
                "on_labels",
                "on_batch",
                "on_batch_labels",
                "on_received",
                "wrap_model",
                "on_update",
            }
        ),
        estimates=_ANY,
        labelled=True,
        alike=True,
        pictured="train",
        words="{name}",
    ),
    Role.SERVER: RoleFacts(
        setting=Setting.HORIZONTAL,
        hooks=frozenset(),
        estimates=_ANY,
        words="the server",
    ),
}

#: Who can attack: the members, and whoever gets predictions.
SEATS: Mapping[Role, RoleFacts] = {
    **ROLES,
    Role.OPERATOR: RoleFacts(
        setting=Setting.VERTICAL,
        hooks=frozenset(),
        estimates=frozenset({"membership"}),
        words="whoever gets predictions",
    ),
}
