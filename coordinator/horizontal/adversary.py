"""The adversary in a server: it attacks every client with what the rounds and the grants brought."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Protocol, TypeAlias

from vflens.config import ServerConfig
from vflens.member.adversary import Adversary, Attacker
from vflens.plugins.attack import Attack
from vflens.plugins.malicious import PlantingAttack
from vflens.plugins.views.horizontal import Parameters, ServerView
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.recorded.horizontal.parameters import parameters_of
from vflens.recorded.horizontal.view import attacked_round, scored_set, server_view
from vflens.types import Array, Estimate, Progress

Batch: TypeAlias = tuple[str, str, int | None]  # the scored set, what is estimated, the round


class ServerHost(Attacker, Protocol):
    """A :class:`vflens.coordinator.horizontal.server.Server` as its adversary takes it."""

    @property
    def config(self) -> ServerConfig:
        """Its configuration."""

    @property
    def prepared(self) -> HorizontalAgreement:
        """The run's clients and settings."""


class ServerAdversary(Adversary):
    """The configured ``attacks`` of the server ``party``, on every client."""

    def __init__(self, party: ServerHost, attacks: Mapping[str, Attack]) -> None:
        super().__init__(party, attacks)
        self._party = party

    def planted(self, federation: HorizontalAgreement, parameters: Parameters) -> Parameters:
        """The parameters from which training starts: those of an attack that makes them, else ``parameters``.

        Raises:
            KnowledgeError: the attack is made for another model.
        """
        for name, attack in self.attacks.items():
            if isinstance(attack, PlantingAttack):
                self._party.log.warning(
                    "malicious", attack=name, what="it starts from a model of its own making"
                )
                return attack.planted(federation, parameters)
        return parameters

    def attack(self, targets: Collection[str], own: Mapping[str, Array], progress: Progress) -> None:
        """Estimate the rows of the clients ``targets``, keep the estimates and submit.

        Args:
            targets: their names.
            own: see :func:`vflens.recorded.horizontal.parameters.owned`.
            progress: called with the number of attacks done.
        """
        federation = self._party.prepared
        parameters = parameters_of(federation, own, self.received)
        done, total = 0, len(targets) * len(self.attacks)
        for target in targets:
            found: dict[Batch, dict[str, Estimate]] = {}
            for name, attack in self.attacks.items():
                see = partial(self._see, target=target, parameters=parameters)
                if (estimate := self.estimated(name, target, see)) is not None:
                    number = attacked_round(attack, federation, target, self.received)
                    batch = (scored_set(attack), attack.estimates, number)
                    found.setdefault(batch, {})[name] = estimate
                progress("attacking", done := done + 1, total)
            for (scored, estimates, step), together in found.items():
                self.save(target, scored, together, estimates=estimates, step=step)
                self.submit(target, scored, together, estimates=estimates, step=step)

    def _see(self, attack: Attack, *, target: str, parameters: Callable[[int], Parameters]) -> ServerView:
        config = self._party.config
        return server_view(
            attack,
            self._party.prepared,
            party=self._party.name,
            target=target,
            parameters=parameters,
            transcript=self.received,
            every=config.transcript.every,
            device=config.device,
        )
