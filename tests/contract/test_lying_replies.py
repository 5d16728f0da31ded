"""Whoever asks checks what comes back: no lie of a peer is believed, recorded, or ends in a traceback.

The lies follow from the kind of reply (``tests/lies.py``). Each is told in a run of every setting, at the
first reply that can carry it; the caller must refuse it with a numbered error. Then the run goes on honestly,
and in the end all transcripts are those of a run without lies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, get_args

import horizontal
import laboratory
import lies
import numpy as np
import pytest
from accidents import Around, trainer
from laboratory import close, transcripts
from oneprocess import LocalFederation
from thinned import thinned

from vflens.coordinator.horizontal.server import Server
from vflens.errors import AlignmentError, ConfigError, KnowledgeError, ProtocolError, StateError
from vflens.protocol.access import Access
from vflens.protocol.acts import (
    Act,
    Describe,
    Disclose,
    Done,
    Epoch,
    Forward,
    Predict,
    Query,
    Rejoin,
    Step,
    Submission,
    Train,
)
from vflens.protocol.horizontal.access import HORIZONTAL_ACCESS
from vflens.protocol.link import Link
from vflens.protocol.mask_acts import Deal, Seed
from vflens.protocol.vertical.access import ACCESS, DIRECT_ACCESS, SHARES_ACCESS
from vflens.protocol.vertical.row_ids import Blind, Identify, Salt
from vflens.types import Estimate, Phase, Point, statuses

REFUSALS = (ProtocolError, StateError, KnowledgeError, ConfigError, AlignmentError)
Stage = Callable[[LocalFederation], object]
TABLES = {"a": horizontal.table(30, 1), "b": horizontal.table(17, 2), "c": horizontal.table(23, 3)}
SGD = {"batch_size": 12, "learning_rate": 0.1}
MLP = {"architecture": "mlp", "width": 5, "hidden": [], "top": [4]}
SHARES = {"epochs": 2, "batch_size": 12, "learning_rate": 0.04, "optimizer": "sgd", "protection": "shares"}
GRANTED = [
    *({"what": what, "to": to} for to in ("coordinator", "active") for what in ("parameters", "moments")),
    *({"what": "auxiliary", "to": to, "rows": 5} for to in ("coordinator", "active")),
    {"what": "labels", "to": "passive", "rows": 5},
]
#: Labels that are numbers are not granted: the active party discloses nothing.
NUMBER = {
    "data": {"name": "diabetes", "sample": 60},
    "model": {"family": "linear_regression"},
    "disclose": GRANTED[:-1],
}
CLIENT_GRANTS: list[dict[str, Any]] = [
    {"what": "moments", "to": "server"},
    *({"what": what, "to": "server", "rows": 4} for what in ("auxiliary", "labels", "candidates")),
]

#: Lies that are not refused, by setting and the words with which they begin, and why.
_WITHHELD = "a defence withholds parameters too"
_NETWORK = "an attack compares a network's parameters with those of the one that it builds"
_NO_STEPS = "the coordinator learns from no step: who has fewer is refused by the others in the next one"
_LED_BY_ACTIVE = {
    "Disclose of passive, parameters, withheld": _WITHHELD,
    "Rejoin of passive, fewer steps": _NO_STEPS,
    "Rejoin of active, fewer steps": _NO_STEPS,
}
HARMLESS = {
    "vertical": {"Disclose of passive, parameters, withheld": _WITHHELD},
    "number": {"Disclose of passive, parameters, withheld": _WITHHELD},
    "shares": _LED_BY_ACTIVE,
    "a number on shares": _LED_BY_ACTIVE,
    "direct": {
        **_LED_BY_ACTIVE,
        "Disclose of passive, parameters, a tensor": _NETWORK,
        **{
            f"Disclose of passive, parameters, 0.weight: {what}": _NETWORK
            for what in ("an axis more", "a number less", "a row of numbers less", "no numbers")
        },
    },
}
#: Acts whose replies no other party gives.
OWN = {Query: "the operator asks a party of its own"}


class Cell(NamedTuple):
    """Whose replies to which act of whom are lies, and in which stage of a run; of a step with ``point``."""

    act: type[Act[Any]]
    caller: str
    callee: str
    stage: str
    point: Point | None = None

    def lies(self, reply: Any) -> dict[str, Any]:
        """The lies of ``reply`` here by name."""
        other = self.point is not None and (reply.released is None or reply.released.point is not self.point)
        return {} if other else lies.of(reply)


@dataclass(frozen=True)
class Setting:
    """A federation that can be made below a folder, who may ask whom in it, and whose replies are lies."""

    made: Callable[[Path], LocalFederation]
    access: Access
    cells: tuple[Cell, ...]


def _vertical(home: Path, **changes: Any) -> LocalFederation:
    settings = {"attacks": [{"name": "half"}], "disclose": GRANTED, "training": {"epochs": 2, **SGD}}
    return laboratory.federation(home, **settings | {"align": {"mode": "psi"}} | changes)


def _horizontal(home: Path, **changes: Any) -> LocalFederation:
    settings = {"training": SGD, "disclose": CLIENT_GRANTS, "attacks": [], **changes}
    return laboratory.let_go_later(horizontal.federation(horizontal.deal(home, TABLES, **settings)))


def _predict(local: LocalFederation) -> None:
    local.coordinator.open_predictions()
    local.active.predictions.ask(local.active.run.federation.predict[:4])


def _submit(local: LocalFederation) -> None:
    leader = trainer(local)
    if isinstance(leader, Server):
        leader.open_predictions()
        leader.attack()
        return
    name, target = next(iter(local.passive.items()))
    rows = target.gate.released_rows(Point.EMBEDDING, 1)
    found = Estimate(name, rows, np.full((len(rows), len(target.table.columns)), 0.5), statuses(len(rows)))
    local.active.adversary.submit(name, Phase.PREDICT, {"half": found})


VERTICAL: dict[str, Stage] = {
    "prepare": lambda local: trainer(local).prepare(),
    "train": lambda local: trainer(local).train(),
    "disclose": lambda local: trainer(local).disclose(),
    "predict": _predict,
    "submit": _submit,
    "rejoin": lambda local: trainer(local).rejoin(),
}
STAGES = {True: VERTICAL, False: {name: stage for name, stage in VERTICAL.items() if name != "predict"}}


def _led(passive: str) -> tuple[Cell, ...]:
    """What a passive party and the active one are asked for, whoever leads the training."""
    return (
        *(Cell(act, "coordinator", passive, "prepare") for act in (Describe, Salt, Identify, Blind)),
        Cell(Disclose, "coordinator", passive, "disclose"),
        Cell(Disclose, "coordinator", "active", "disclose"),
        Cell(Submission, "active", passive, "submit"),
        *(Cell(Rejoin, "coordinator", name, "rejoin") for name in (passive, "active")),
    )


#: In training the active party asks a passive one, and the coordinator answers and asks it.
BY_ACTIVE = (Cell(Epoch, "active", "coordinator", "train"), Cell(Train, "coordinator", "active", "train"))
#: Scores come from the coordinator.
SCORED = (
    Cell(Forward, "coordinator", "passive", "predict"),
    Cell(Predict, "active", "coordinator", "predict"),
)
SERVED = (
    Cell(Describe, "server", "b", "prepare"),
    Cell(Step, "server", "b", "train"),
    Cell(Disclose, "server", "b", "disclose"),
    Cell(Rejoin, "server", "b", "rejoin"),
)
WITHOUT_LABELS = tuple(c for c in _led("passive") if (c.act, c.callee) != (Disclose, "active"))
ON_SHARES = (
    Cell(Seed, "coordinator", "passive", "train"),
    Cell(Step, "active", "passive", "train", point=Point.SHARES),
    Cell(Deal, "active", "coordinator", "train"),
    Cell(Step, "active", "passive", "train", point=Point.OPENING),
    *BY_ACTIVE,
    *SCORED,
)
SETTINGS = {
    "vertical": Setting(
        _vertical,
        ACCESS,
        (
            *_led("passive"),
            *(Cell(Step, "coordinator", name, "train") for name in ("passive", "active")),
            *SCORED,
        ),
    ),
    "number": Setting(
        lambda home: _vertical(home, **NUMBER),
        ACCESS,
        (
            *WITHOUT_LABELS,
            *(Cell(Step, "coordinator", name, "train") for name in ("passive", "active")),
            *SCORED,
        ),
    ),
    "shares": Setting(
        lambda home: _vertical(home, training=SHARES), SHARES_ACCESS, (*_led("passive"), *ON_SHARES)
    ),
    "a number on shares": Setting(
        lambda home: _vertical(home, **NUMBER | {"training": SHARES}),
        SHARES_ACCESS,
        (*WITHOUT_LABELS, *ON_SHARES),
    ),
    "direct": Setting(
        lambda home: _vertical(home, aggregator="active", model={**MLP, "precision": "float64"}),
        DIRECT_ACCESS,
        (
            *_led("passive"),
            Cell(Step, "active", "passive", "train"),
            *BY_ACTIVE,
            Cell(Forward, "active", "passive", "predict"),
        ),
    ),
    "fedavg": Setting(
        lambda home: _horizontal(
            home,
            horizontal={"rounds": 2, "local_steps": 1},
            training={"batch_size": 30, "learning_rate": 0.1, "optimizer": "sgd"},
            attacks=[{"name": "label_restoration"}],
        ),
        HORIZONTAL_ACCESS,
        (*SERVED, Cell(Submission, "server", "b", "submit")),
    ),
    "secure aggregation": Setting(
        lambda home: _horizontal(
            home, horizontal={"rounds": 2, "secure_aggregation": True}, secure_aggregation=True
        ),
        HORIZONTAL_ACCESS,
        SERVED,
    ),
    "splitfed": Setting(
        lambda home: _horizontal(
            home,
            horizontal={"rounds": 1, "method": "splitfed"},
            model=MLP,
            attacks=[{"name": "sent_labels"}],
        ),
        HORIZONTAL_ACCESS,
        (
            *SERVED,
            Cell(Step, "server", "b", "train", point=Point.UPDATE),
            Cell(Submission, "server", "b", "submit"),
        ),
    ),
}


class _Seen(Exception):  # noqa: N818 - not an error
    """A reply that can carry lies came."""


def _names(liar: lies.Liar, cell: Cell, run: Callable[[], object]) -> list[str]:
    """The lies of the first reply in ``run`` that can carry any; the run ends there."""
    found = list[str]()

    def look(reply: Any) -> Any:
        found.extend(cell.lies(reply))
        if found:
            raise _Seen
        return reply

    liar.lie = look
    with pytest.raises(_Seen):
        run()
    return found


def _believed(
    local: LocalFederation, cell: Cell, run: Callable[[], object], harmless: tuple[str, ...]
) -> Iterator[str]:
    """The lies in ``cell`` that its caller believes, or refuses without a number; not ``harmless`` ones."""
    links = local.parties[cell.caller].links
    links[cell.callee] = liar = lies.Liar(links[cell.callee], cell.act)
    for name in _names(liar, cell, run):
        words = f"{cell.act.__name__} of {cell.callee}, {name}"
        if words.startswith(harmless):
            continue
        liar.lie = lambda reply, name=name: cell.lies(reply).get(name, reply)
        try:
            run()
        except REFUSALS:
            continue
        except Exception as error:
            yield f"{words}: {type(error).__name__}: {error}"
        else:
            yield f"{words}: believed"
    links[cell.callee] = liar.inner


@pytest.mark.parametrize("setting", thinned([(setting,) for setting in SETTINGS]))
def test_no_lie_of_a_reply_is_believed(tmp_path: Path, setting: str) -> None:
    chosen, calm = SETTINGS[setting], SETTINGS[setting].made(tmp_path / "calm")
    local, believed = chosen.made(tmp_path / "lies"), list[str]()
    harmless = tuple(HARMLESS.get(setting, ()))
    for name, stage in STAGES[chosen.access is not HORIZONTAL_ACCESS].items():
        for cell in (c for c in chosen.cells if c.stage == name):
            believed += _believed(local, cell, partial(stage, local), harmless)
        stage(local)
        stage(calm)
    assert not believed, "\n".join(believed)
    close(local)
    close(calm)
    assert transcripts(tmp_path / "lies") == transcripts(tmp_path / "calm")


#: Lies of what a step carries: of another exchange, or of other rows.
MISPLACED = (
    *("a run of others", "a phase of others", "another round", "another step"),
    *("a row less", "other rows", "a row twice", "a row more", "a row of nobody"),
)


class _Misplaces(Around):
    """Sends all lies of :data:`MISPLACED` before the first step that carries a message of each kind."""

    def __init__(self, inner: Link, believed: list[str]) -> None:
        super().__init__(inner)
        self.believed, self._seen = believed, set[Point]()

    def submit(self, act: Act[Any]) -> Any:
        if isinstance(act, Step) and act.received is not None and act.received.point not in self._seen:
            self._seen.add(act.received.point)
            lied = lies.of(act.received)
            for name in (n for n in MISPLACED if n in lied):
                self._refused(replace(act, received=lied[name]), f"{act.received.point}, {name}")
        return super().submit(act)

    def _refused(self, lie: Step, name: str) -> None:
        try:
            self.inner.call(lie)
        except REFUSALS:
            return
        self.believed.append(f"{name} to {self.name}")


@pytest.mark.parametrize("setting", thinned([(setting,) for setting in SETTINGS]))
def test_no_step_takes_what_is_of_another_exchange_or_of_other_rows(tmp_path: Path, setting: str) -> None:
    """The transcript would keep it so, and a log of other exchanges or rows has no end."""
    local, believed = SETTINGS[setting].made(tmp_path), list[str]()
    leader = trainer(local)
    leader.prepare()
    for party in local.parties.values():
        for name in party.links:
            party.links[name] = _Misplaces(party.links[name], believed)
    leader.train()
    assert not believed, "\n".join(believed)
    close(local)


@pytest.mark.parametrize("setting", SETTINGS)
def test_every_act_has_lies(setting: str) -> None:
    """But for those whose replies say nothing, or that no other party answers."""
    asked = {act for act, pairs in SETTINGS[setting].access.items() if pairs} - set(OWN)
    saying = {act for act in asked if get_args(act.__orig_bases__[0])[0] is not Done}  # type: ignore[attr-defined]
    facts = {cell.act for cell in SETTINGS[setting].cells}
    assert saying - facts <= ({Submission} if setting == "secure aggregation" else set())
