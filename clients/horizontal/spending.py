"""The privacy cost of a client's updates: of all its rows together, and of one row's label."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

from vflens.config import ClientConfig
from vflens.errors import ConfigError, StateError
from vflens.member.accountant import Accountant
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.storage.metrics import Metrics, Name
from vflens.storage.release_digests import digests
from vflens.types import Claim, Exchange, Point

Unit: TypeAlias = Literal["client", "label"]
#: Unit → hook of the defences that count, names of its releases and their ε.
_UNITS: Mapping[Unit, tuple[str, Name, Name]] = {
    "client": ("on_update", Name.TRAINING_RELEASES, Name.TRAINING_EPSILON),
    "label": ("on_batch_labels", Name.LABEL_RELEASES, Name.LABEL_EPSILON),
}
_FEWER = "train for fewer rounds"


class UpdateSpending:
    """The accountants of a client's updates, one for each unit that noise protects.

    Noise on an update protects the *client*: all its rows might be others. Noise on the labels of local
    batches protects one row's *label*, which is drawn anew in every local epoch, and once for the gradients
    that the client grants. The server chooses who takes part and sees each update alone, so no ε is smaller
    because others take part, or because a round is left out.

    Args:
        config: of the client.
        claims: what its defences guarantee at a hook.
        federation: gives the numbers of an update, and the rounds.
        released: the rounds whose update it released before a restart.
    """

    def __init__(
        self,
        config: ClientConfig,
        claims: Callable[[str], Sequence[Claim]],
        federation: HorizontalAgreement,
        released: set[int],
    ) -> None:
        self._party, self._limits = config.party, config.limits
        self._claims, self._federation, self._released = claims, federation, released
        self._granted = any(granted.what == "gradients" for granted in config.disclose)

    @cached_property
    def accountants(self) -> Mapping[Unit, Accountant]:
        """Those of the units that noise protects; none where embeddings and labels leave beside updates."""
        if self._federation.horizontal.is_split:
            return {}
        party = next(p for p in self._federation.parties if p.name == self._party)
        width = self._federation.part_size(party).parameters
        found: dict[Unit, Accountant] = {
            unit: Accountant.of(self._claims(hook), self._limits.delta, width)
            for unit, (hook, *_) in _UNITS.items()
        }
        return {unit: accountant for unit, accountant in found.items() if accountant.counts}

    def check_run(self) -> None:
        """Refuse a run whose rounds the budget does not cover, before it begins; of rounds whose participants
        the server draws, it must cover one.

        Raises:
            ConfigError: naming both; or embeddings leave, whose cost is not counted.
        """
        if self._federation.horizontal.is_split and self._limits.epsilon is not None:
            raise ConfigError(
                f"limits.epsilon at {self._party!r}: with horizontal.method = 'splitfed' embeddings leave in "
                "every batch, whose cost is not counted, leave it out"
            )
        drawn = self._federation.horizontal.participants is not None
        try:
            self._check(1 if drawn else self._federation.epochs)
        except StateError as error:
            raise ConfigError(str(error)) from None

    def take(self, exchange: Exchange) -> None:
        """Count the update of a round, once, before it is released.

        Raises:
            StateError: the budget does not cover it.
        """
        self._check(len(self._released | {exchange.round}))
        self._released.add(exchange.round)

    def record(self, metrics: Metrics) -> None:
        """The releases and the ε of each unit so far; NaN: unknown."""
        if not self._released:
            return
        for unit, accountant in self.accountants.items():
            (_, releases, epsilon), count = _UNITS[unit], self._count(unit, len(self._released))
            total = accountant.total(count)
            metrics.add(releases, count, target=self._party)
            metrics.add(epsilon, math.nan if total is None else total, target=self._party)

    def _check(self, rounds: int) -> None:
        if self._limits.epsilon is None:
            return
        words = {"client": f"an update of {self._party!r}", "label": f"a label of {self._party!r}"}
        for unit, accountant in self.accountants.items():
            accountant.check(self._count(unit, rounds), self._limits.epsilon, words[unit], _FEWER)

    def _count(self, unit: Unit, rounds: int) -> int:
        if unit == "client":
            return rounds
        return rounds * self._federation.passes_of(self._party) + self._granted


def released_rounds(folder: Path) -> set[int]:
    """The rounds whose update the party with ``folder`` released so far, in earlier processes too."""
    updates = (Point.UPDATE, Point.MASKED_UPDATE)
    return {kept.round for kept in digests(folder / "released") if kept.point in updates}
