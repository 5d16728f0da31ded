"""Data parties that align rows and do nothing else, as a coordinator's links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from vflens.clients.vertical.identification import identification
from vflens.config import PassiveConfig
from vflens.coordinator.vertical.aligning import Lists, collect
from vflens.protocol.acts import Act, Prepare
from vflens.protocol.link import Link, Links, PlainStream
from vflens.protocol.vertical.alignment import Alignment, align
from vflens.protocol.vertical.row_ids import Blind, Blinded, Identify, Salt
from vflens.randomness import secret_from_seed
from vflens.storage.log import party_log
from vflens.tables.table import Table
from vflens.types import AlignMode, Array

RUN = "a run"
KEY = "a key of sixteen or more"


class Answer:
    """A reply that is there."""

    def __init__(self, reply: Any) -> None:
        self._reply = reply

    def result(self, timeout: float | None = None) -> Any:
        return self._reply


class Aligner(Link):
    """The party ``name`` with ``ids``, and perhaps a ``split``; it keeps all acts that came."""

    def __init__(
        self,
        name: str,
        ids: Sequence[str],
        folder: Path,
        *,
        mode: AlignMode = "psi",
        split: Sequence[int] | None = None,
        lab: bool = True,
        **limits: int,
    ) -> None:
        self.name, self.seen = name, list[Act[Any]]()
        peer = {"name": "coordinator", "role": "coordinator", "address": "unix:leader", "token": "t" * 16}
        settings = {
            "party": name,
            "role": "passive",
            "run": RUN,
            "address": f"unix:{name}",
            "out": folder / name,
            "seed": f"seed of {name}",
            "lab": lab,
            "peers": [peer],
            "data": {"file": "none.csv"},
            "align": {"mode": mode},
            "alignment_key": KEY,
            "limits": limits,
        }
        self.config = PassiveConfig.model_validate(settings)
        self.secret = secret_from_seed(self.config.seed)
        self.start()
        named = np.array([i.encode() for i in ids], "S")
        parts = None if split is None else np.array(split, np.uint8)
        self.table = Table(named, (), np.zeros((len(ids), 0)), split=parts)

    def start(self) -> None:
        """Start anew, with the folder as it is."""
        log = party_log(self.config.out / "events.jsonl", self.name)
        self.identification = identification(self.config, self.secret, log)

    def submit(self, act: Act[Any]) -> Any:
        self.seen.append(act)
        match act:
            case Salt():
                return Answer(self.identification.salt(self.table))
            case Identify():
                return Answer(self.identification.identities(self.table, act))
            case Blind():
                return Answer(Blinded(self.identification.blind(self.table, act)))
        raise AssertionError(act)

    def stream(self, act: type[Act[Any]]) -> Any:
        return PlainStream(self)


def collected(parties: Mapping[str, Link], most: int = 1000) -> Lists:
    """What the coordinator collects of ``parties``."""
    return collect(Links(parties), RUN, most, lambda stage, done, total: None)


def aligned(parties: Mapping[str, Aligner], most: int = 1000) -> tuple[Alignment, dict[str, Array]]:
    """The alignment of ``parties``, and the rows of each one's file in aligned order."""
    lists = collected(parties, most)
    found = align(lists.compared, 0.5, np.random.default_rng(0), lists.mode)
    federation: Any = SimpleNamespace(parties=list(parties.values()))
    rows = {
        name: party.identification.file_rows(
            party.table, Prepare(federation, found.orders[name], lists.salts)
        )
        for name, party in parties.items()
    }
    return found, rows
