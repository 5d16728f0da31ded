"""Which federations the scoreboard runs: data × way to divide and train × defence × seed, with all attacks.

Attacks and defences come from their registries: a new one appears by itself. What it declares decides where
it acts: an attack by its ``settings`` and what it ``estimates``, a defence by its hooks.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import NamedTuple

from vflens.config.compatibility import acts_among
from vflens.datasets._resolve import dataset
from vflens.plugins.attack import Attack, installed_attack, knowing
from vflens.plugins.defense import installed_defense
from vflens.protocol.roles import ROLES
from vflens.randomness import secret_from_seed, stream
from vflens.registry import ATTACKS, DEFENSES
from vflens.tables.scaling import Scaler
from vflens.types import Document, LabelKind, Role, Setting

UNDEFENDED = "no defence"
#: At most so much work for an attack that has such a setting, or the page would take days.
MOST_WORK = {"starts": 1, "steps": 100, "learning_steps": 30, "models": 8, "sweeps": 10}
KNOWN_ROWS = 30  # rows, and labels, that the adversary was granted
ROWS = 400  # of each data set


@dataclass(frozen=True)
class Cast:
    """How the data are divided and a model is trained.

    ``members`` are the parties by name; a defence acts at all of those that hold rows if it can act there,
    else at ``otherwise``. ``defenses`` are those that it is run with; None: all. ``data`` are the data sets,
    whose labels are of one kind.
    """

    title: str
    setting: Setting
    settings: Document
    members: Mapping[str, Role]
    otherwise: str
    seats: Mapping[str, str] = field(default_factory=dict)  # what an attack estimates → the party it sits in
    defenses: Sequence[str] | None = None
    data: Sequence[str] = ("bank", "digits")
    label_kind: LabelKind = "classes"

    def attack(self, name: str, data: str) -> Document | None:
        """The table of the attack ``name`` on ``data``; None if it is not installed, made for the other
        setting or labels of the other kind, or tells means of pixels, which nobody scores.
        """
        kind = installed_attack(name)
        if kind is None or self.setting not in kind.settings:
            return None
        if kind.estimates != "features" and kind.label_kind != self.label_kind:
            return None
        if kind.means_only and DATA[data]["kind"] == "image_halves":
            return None
        seat = self.seats.get(kind.estimates)
        settings = {**_bounded(kind), **(believed(data) if kind.model_fields.keys() >= _BELIEF else {})}
        return {"name": name, **settings, **({"at": seat} if seat else {})}

    def made_for(self, defense: str) -> list[str]:
        """The installed attacks that know ``defense`` in such a federation."""
        known = knowing(self.setting, linear="model" not in self.settings)
        return [attack for attack, of in known.items() if defense in of]

    def defended_by(self, name: str) -> list[Document]:
        """The tables of the defence ``name``, one for each party at which it acts."""
        kind = installed_defense(name)
        if kind is None:
            return []
        found = [p for p, role in self.members.items() if acts_among(ROLES[role].hooks, kind)]
        tried = kind.strengths[len(kind.strengths) // 2] if kind.strengths else {}
        return [{"name": name, "at": party, **tried} for party in found or [self.otherwise]]


def _bounded(kind: type[Attack]) -> Document:
    """Settings over the defaults of ``kind`` that bound its work."""
    fields = kind.model_fields
    return {name: most for name, most in MOST_WORK.items() if name in fields and fields[name].default > most}


_BELIEF = {"mean", "deviation"}  # settings of attacks that state a belief, see believed


@cache
def believed(data: str) -> Document:
    """What an adversary believes of the mean of a row's columns in [0, 1]: its "mean" and "deviation" over
    :data:`KNOWN_ROWS` rows of another draw than a run's.

    Raises:
        DataError: the data cannot be read.
    """
    table = dataset(data, {}).prepared()
    order = stream(secret_from_seed(0, "scoreboard"), "believed").permutation(len(table.ids))
    drawn = table.rows(order[:ROWS])
    x, _ = Scaler.fit(drawn.columns, drawn.features).transform(drawn.features)
    means = x[:KNOWN_ROWS].mean(axis=1)
    return {"mean": round(float(means.mean()), 3), "deviation": round(float(means.std(ddof=1)), 3)}


_VERTICAL: Document = {
    "members": {"passive": Role.PASSIVE, "active": Role.ACTIVE},
    "otherwise": "coordinator",
    "seats": {"labels": "passive"},
}
_GRANTED: list[Document] = [
    {"what": "parameters", "to": "active"},
    {"what": "parameters", "to": "coordinator"},
    {"what": "moments", "to": "active"},
    {"what": "auxiliary", "to": "active", "rows": KNOWN_ROWS},
    {"what": "labels", "to": "passive", "rows": KNOWN_ROWS},
]
#: What predictions may be released as where training is protected: beside open scores.
RELEASES = ("label_only", "scheme_1", "scheme_2", "scheme_3")
_SHARED: Document = {"optimizer": "sgd", "epochs": 20, "batch_size": 64, "learning_rate": 0.5, "l2": 1e-3}
PROTECTED, CLEAR, NUMBER, MASKED = "protected", "protected-clear", "vertical-number", "horizontal-masked"
#: Federations whose attacks are not ranked among those of the others.
APART = (PROTECTED, CLEAR, NUMBER, MASKED)
_SERVED = [
    {"what": "moments", "to": "server"},
    *({"what": what, "to": "server", "rows": KNOWN_ROWS} for what in ("auxiliary", "labels")),
    *({"what": what, "to": "server", "rows": 8} for what in ("embeddings", "gradients")),
    {"what": "candidates", "to": "server", "rows": 50},
]
_CLIENTS = ("client-1", "client-2")
#: One step of plain gradient descent a round: an update is then a gradient, which attacks on rounds read.
_ROUNDS: Document = {"rounds": 60, "local_steps": 1}
_AVERAGED: Document = {
    "model": {"family": "split_network", "architecture": "mlp", "width": 32, "top": []},
    "training": {"optimizer": "sgd", "batch_size": 8, "learning_rate": 0.5},
    "split": {"kind": "rows"},
}
_MASKING = (*_CLIENTS, "client-3")  # of two, one would know the other's update from the sum
FEDERATIONS: Mapping[str, Cast] = {
    "vertical-lr": Cast(
        "Vertical, softmax regression",
        Setting.VERTICAL,
        {"training": {"epochs": 20, "batch_size": 64}, "disclose": _GRANTED},
        **_VERTICAL,
    ),
    PROTECTED: Cast(
        "Vertical, protected training",
        Setting.VERTICAL,
        {"training": {**_SHARED, "protection": "shares"}, "disclose": _GRANTED},
        **_VERTICAL,
        defenses=RELEASES,
    ),
    CLEAR: Cast(
        "Vertical, the clear twin of protected training",
        Setting.VERTICAL,
        {"training": _SHARED, "disclose": _GRANTED},
        **_VERTICAL,
        defenses=RELEASES,
    ),
    "vertical-split": Cast(
        "Vertical, split network",
        Setting.VERTICAL,
        {
            "model": {
                "family": "split_network",
                "architecture": "mlp",
                "width": 32,
                "combine": "concatenate",
            },
            "training": {"epochs": 10, "batch_size": 64, "learning_rate": 0.005},
            "disclose": _GRANTED,
        },
        **_VERTICAL,
    ),
    NUMBER: Cast(
        "Vertical, linear regression of a number",
        Setting.VERTICAL,
        {
            "model": {"family": "linear_regression"},
            "training": {"epochs": 100, "batch_size": 32, "learning_rate": 0.01},
            "disclose": [grant for grant in _GRANTED if grant["what"] != "labels"],
        },
        **_VERTICAL,
        defenses=(),
        data=("diabetes",),
        label_kind="number",
    ),
    "horizontal": Cast(
        "Horizontal, federated averaging",
        Setting.HORIZONTAL,
        {
            **_AVERAGED,
            "horizontal": _ROUNDS,
            "parties": {"clients": [*_CLIENTS]},
            "disclose": _SERVED,
        },
        members=dict.fromkeys(_CLIENTS, Role.CLIENT),
        otherwise=_CLIENTS[0],
    ),
    MASKED: Cast(
        "Horizontal, masked sums of three clients, nothing granted",
        Setting.HORIZONTAL,
        {
            **_AVERAGED,
            "horizontal": {**_ROUNDS, "secure_aggregation": True},
            "parties": {"clients": [*_MASKING]},
        },
        members=dict.fromkeys(_MASKING, Role.CLIENT),
        otherwise=_CLIENTS[0],
        defenses=(),
    ),
}
#: Data set → how its columns are cut in vertical federations.
DATA: Mapping[str, Document] = {
    "bank": {"kind": "fraction", "fraction": 0.5},
    "digits": {"kind": "image_halves"},
    "diabetes": {"kind": "fraction", "fraction": 0.5},
}
COST_ROWS = 1000  # the same for what defences cost, which needs no attack: a fifth of them are predicted
_ALL_ROWS = {"diabetes": 442 - KNOWN_ROWS}  # of smaller data sets, without the public ones
ATTACKED = 50  # rows that attacks of vertical federations estimate


class Place(NamedTuple):
    """One federation: names of :data:`DATA`, :data:`FEDERATIONS` and a defence; a seed, and how many
    rows of the data.
    """

    data: str
    federation: str
    defense: str
    seed: int
    sample: int = ROWS

    def settings(self) -> Document:
        """Its experiment, without attacks."""
        chosen = FEDERATIONS[self.federation]
        defenses = [] if self.defense == UNDEFENDED else chosen.defended_by(self.defense)
        vertical = chosen.setting is Setting.VERTICAL
        public = {"public": KNOWN_ROWS} if vertical else {}
        return {
            "name": "cell",
            "seed": self.seed,
            "data": {"name": self.data, "sample": self.sample, **public},
            "split": DATA[self.data],
            "scoring": {"pictures": 0},
            **chosen.settings,
            **({"attacked_rows": ATTACKED} if vertical else {}),
            "scenarios": [{"name": "cell", "defenses": defenses}],
        }


@dataclass(frozen=True)
class ScoreboardGrid:
    """What a scoreboard has on its axes."""

    data: Sequence[str] = tuple(DATA)
    federations: Sequence[str] = tuple(FEDERATIONS)
    attacks: Sequence[str] = field(default_factory=ATTACKS.names)
    defenses: Sequence[str] = field(default_factory=DEFENSES.names)
    seeds: int = 5
    cost_seeds: int = 10

    def sections(self) -> Iterator[tuple[str, str]]:
        """Federation and data set, in the order in which they are run."""
        both = product(self.data, self.federations)
        return ((federation, data) for data, federation in both if data in FEDERATIONS[federation].data)

    def places(self, federation: str, data: str) -> Iterator[Place]:
        """The federations with attacks of one section; the undefended come first."""
        return self._places(federation, data, self.seeds, ROWS)

    def cost_places(self, federation: str, data: str) -> Iterator[Place]:
        """The federations without attacks, which say what a defence costs."""
        return self._places(federation, data, self.cost_seeds, _ALL_ROWS.get(data, COST_ROWS))

    def _places(self, federation: str, data: str, seeds: int, rows: int) -> Iterator[Place]:
        own = FEDERATIONS[federation].defenses
        chosen = [name for name in self.defenses if own is None or name in own]
        for defense in (UNDEFENDED, *chosen):
            for seed in range(1, seeds + 1):
                yield Place(data, federation, defense, seed, rows)
