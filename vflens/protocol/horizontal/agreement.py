"""The facts that all parties of a horizontal run share: clients with rows of their own and equal columns."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from vflens.errors import ConfigError
from vflens.models.family import ModelFamily, checked_model
from vflens.models.settings import Horizontal, Training
from vflens.models.size import Size
from vflens.protocol.agreement import Agreement, parties_from_dicts, parties_to_dicts
from vflens.types import Array, ColumnInfo, PartyInfo, Phase, Point, Role, Setting
from vflens.words import counted

#: What a client may grant; the order numbers its disclosures, which keys their noise: it stays.
GRANTS = ("parameters", "moments", "auxiliary", "labels", "embeddings", "gradients", "candidates")


def grant_number(what: str, rows: int) -> int:
    """The step of a client's disclosure of ``what``, of so many granted ``rows``."""
    return GRANTS.index(what) + len(GRANTS) * rows


@dataclass(frozen=True, eq=False, kw_only=True)
class HorizontalAgreement(Agreement):
    """One run of clients, in name order; an epoch is a round, which is one step.

    A client's rows are positions of its own: those that train first, then those that it predicts. In a
    recording of another framework ``recorded_rows`` are those of each round by client, if they change.
    """

    run: str
    parties: tuple[PartyInfo, ...]
    training: Training
    lab: bool
    model: ModelFamily
    horizontal: Horizontal
    nonce: str = ""
    recorded_rows: tuple[Mapping[str, int], ...] = ()

    setting: ClassVar[Setting] = Setting.HORIZONTAL
    AGREED: ClassVar[tuple[str, ...]] = (
        *("run", "lab", "setting", "training", "model", "horizontal", "parties"),
    )

    @property
    def n_classes(self) -> int:
        """See :attr:`Agreement.n_classes`; the same at all clients."""
        return self.parties[0].n_classes

    @property
    def columns(self) -> tuple[ColumnInfo, ...]:
        """Those of every client."""
        return self.parties[0].columns

    @cached_property
    def received_width(self) -> int:
        """See :attr:`Agreement.received_width`: that of the embedding of all columns."""
        width = self.model.width_of(self.columns, self.n_classes)
        self.model.check_label(None)
        return self.model.combined_width([width], self.n_classes)

    def part_size(self, party: PartyInfo) -> Size:
        """See :meth:`Agreement.part_size`: of the whole model."""
        return self.model.part_size(Role.ACTIVE, party.columns, (), self.n_classes)

    @property
    def local_passes(self) -> int:
        """See :attr:`Agreement.local_passes`; the client with the fewest rows makes the most."""
        settings = self.horizontal
        if settings.local_steps is None:
            return settings.rounds * settings.local_epochs
        batches = min(self._batches(p) for p in self.parties)
        return math.ceil(settings.rounds * settings.local_steps / batches)

    def passes_of(self, client: str) -> int:
        """The most local batches of one round that hold a given training row of ``client``."""
        settings = self.horizontal
        if settings.local_steps is None:
            return settings.local_epochs
        return math.ceil(settings.local_steps / self._batches(self.info(client)))

    def steps_of(self, client: str) -> int:
        """The local steps of ``client`` in a round."""
        settings = self.horizontal
        if settings.local_steps is not None:
            return settings.local_steps
        return settings.local_epochs * self._batches(self.info(client))

    def round_rows(self, client: str) -> int:
        """How many different rows ``client`` trains on in a round: every local epoch goes through all."""
        rows = self.info(client).train_rows
        if self.horizontal.local_steps is None:
            return rows
        return min(rows, self.horizontal.local_steps * self.training.batch_size)

    def _batches(self, client: PartyInfo) -> int:
        """Those of a local epoch."""
        return math.ceil(client.train_rows / self.training.batch_size)

    def info(self, client: str) -> PartyInfo:
        """What ``client`` says of itself."""
        return next(p for p in self.parties if p.name == client)

    def in_round(self, number: int) -> Self:
        """The same with the clients' rows in round ``number``."""
        if not self.recorded_rows:
            return self
        rows = self.recorded_rows[number]
        parties = tuple(replace(p, train_rows=rows.get(p.name, p.train_rows)) for p in self.parties)
        return replace(self, parties=parties, recorded_rows=())

    def weights(self, participants: Collection[str]) -> Mapping[str, float]:
        """Client → the weight of its update in a round of ``participants``; they sum to 1."""
        equal = self.horizontal.weights == "equal"
        shares = {p.name: 1 if equal else p.train_rows for p in self.parties if p.name in participants}
        return {name: share / sum(shares.values()) for name, share in shares.items()}

    @property
    def sent(self) -> Point:
        """What clients send in a round."""
        return Point.MASKED_UPDATE if self.horizontal.secure_aggregation else Point.UPDATE

    @property
    def mask_keys(self) -> Mapping[str, bytes]:
        """Client → its public key of masks."""
        return {p.name: bytes.fromhex(p.mask_key) for p in self.parties}

    def check_keys(self) -> None:
        """Refuse clients that do not agree to secure aggregation, or alone.

        Raises:
            ConfigError: naming one.
        """
        secure = self.horizontal.secure_aggregation
        odd = next((p.name for p in self.parties if bool(p.mask_key) != secure), None)
        if odd is not None:
            raise ConfigError(
                f"secure_aggregation = {str(not secure).lower()} at {odd!r} and {str(secure).lower()} at the "
                "server: set it alike at every client and in [horizontal] of the server"
            )

    def rows_of(self, party: str, phase: Phase) -> Array:
        client = self.info(party)
        end = client.train_rows + client.predict_rows
        rows = {Phase.TRAIN: (0, client.train_rows), Phase.PREDICT: (client.train_rows, end)}
        return np.arange(*rows[phase], dtype=np.int32)

    @property
    def epochs(self) -> int:
        """Rounds."""
        return self.horizontal.rounds

    @cached_property
    def epoch_steps(self) -> int:
        """A round is one step; with a split model one for each batch, and one for the update."""
        return 1 + max(self.steps_of(p.name) for p in self.parties) if self.horizontal.is_split else 1

    @cached_property
    def embedding_width(self) -> int:
        """Numbers per row of what a client's bottom model gives."""
        return self.model.width_of(self.columns, self.n_classes)

    def agreed(self) -> dict[str, Any]:
        return {
            "run": self.run,
            "lab": self.lab,
            "setting": "horizontal",
            "training": self.training.model_dump(),
            "model": self.model.model_dump(mode="json"),
            "horizontal": self.horizontal.model_dump(),
            "parties": parties_to_dicts(self.parties),
            **({"recorded_rows": self.recorded_rows} if self.recorded_rows else {}),
        }

    def positions(self) -> dict[str, Array]:
        """None: a client's rows are its own."""
        return {}

    @classmethod
    def restored(cls, facts: Mapping[str, Any], positions: Mapping[str, Array]) -> Self:
        return cls(
            run=facts["run"],
            parties=parties_from_dicts(facts["parties"]),
            training=Training(**facts["training"]),
            lab=facts["lab"],
            model=checked_model(facts["model"]),
            horizontal=Horizontal(**facts["horizontal"]),
            nonce=facts.get("nonce", ""),
            recorded_rows=tuple(facts.get("recorded_rows", ())),
        )


def check_alike(clients: Sequence[PartyInfo]) -> None:
    """Refuse clients whose columns or classes differ, or are scaled by each one's own rows.

    Raises:
        ConfigError: names the clients or the column, and the difference.
    """
    for one, other in pairwise(clients):
        if one.columns != other.columns:  # else nothing is looked at: many clients have many in common
            raise _other_columns(one, other)
        if one.categories != other.categories:
            known = [p.categories or [""] * len(one.columns) for p in (one, other)]
            name = next(c.name for c, a, b in zip(one.columns, *known, strict=True) if a != b)
            raise ConfigError(
                f"column {name!r} has other categories at {one.name!r} than at {other.name!r}: declare the "
                f"same categories.{name} in data of both"
            )
        if one.classes != other.classes:
            raise ConfigError(
                f"classes {list(one.classes)} of {one.name!r} and {list(other.classes)} of {other.name!r}: "
                "declare the same data.classes at every client"
            )
    for first in clients[:1]:
        unbounded = next((c.name for c in first.columns if c.low is None or c.high is None), None)
        if unbounded is not None:
            raise ConfigError(
                f"column {unbounded!r} of {first.name!r} has no declared bounds: clients scale alike by "
                "declared ones only, set data.bounds"
            )
    for client in clients:
        if not client.train_rows or not client.predict_rows:
            raise ConfigError(
                f"client {client.name!r} has {client.train_rows} training and "
                f"{counted(client.predict_rows, 'prediction row')}: both need at least one"
            )


def _other_columns(one: PartyInfo, other: PartyInfo) -> ConfigError:
    """The refusal of clients whose columns differ."""
    names = [[c.name for c in p.columns] for p in (one, other)]
    if names[0] != names[1]:
        odd = sorted(set(names[0]) ^ set(names[1]))
        what = f"{odd[0]!r} is a column of one alone" if odd else "their order differs"
        return ConfigError(f"columns of {one.name!r} and {other.name!r}: {what}, give both files the same")
    differing = next(a.name for a, b in zip(one.columns, other.columns, strict=True) if a != b)
    return ConfigError(
        f"column {differing!r} is described otherwise at {one.name!r} and {other.name!r}: declare "
        "the same bounds, alphabet and pixel in data of both"
    )
