"""Recorded folders of parties that collude: whose they are, and what results call such an adversary."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from vflens.config import PartyConfig, load_party
from vflens.errors import ConfigError
from vflens.experiments.offline.request import Request
from vflens.names import colluding, repeated
from vflens.protocol.acts import COLLUDES
from vflens.protocol.agreement import Agreement
from vflens.recorded.agreements import AGREEMENTS


@dataclass(frozen=True)
class Colluder:
    """One of the parties that collude."""

    config: PartyConfig
    folder: Path

    @property
    def name(self) -> str:
        """The party's name."""
        return self.config.party


@dataclass(frozen=True)
class Coalition:
    """The parties that are one adversary: that of the first folder, and those that collude with it."""

    parties: tuple[Colluder, ...]

    @classmethod
    def of(cls, asked: Request) -> Coalition:
        """Those of ``asked``.

        Raises:
            ConfigError: a folder of another run, or the same party twice.
        """
        found = [Colluder(asked.config, asked.folder)]
        for folder in asked.together:
            found.append(Colluder(load_party(folder / "config.toml"), folder))
            _check_same_run(asked.federation, found[-1])
        twice = repeated(m.name for m in found)
        if twice is not None:
            raise ConfigError(f"--with names the folder of {twice!r} twice: give each party's once")
        return cls(tuple(found))

    @property
    def names(self) -> list[str]:
        """The parties' names, that of the first folder first."""
        return [party.name for party in self.parties]

    @property
    def sender(self) -> str:
        """They as the sender of a submission."""
        return COLLUDES.join(self.names)

    def called(self, attack: str) -> str:
        """The attack's name in results: with a label that names who colludes, unless it has one."""
        return colluding(attack, self.names[1:])


def _check_same_run(federation: Agreement, one: Colluder) -> None:
    own = AGREEMENTS[one.config.facts.setting].load(one.folder)
    if (own.digest, own.nonce) != (federation.digest, federation.nonce):
        raise ConfigError(
            f"--with {one.folder}: it is of run {own.run!r}, and {federation.run!r} or another start of it "
            "is attacked: give folders of one run"
        )
