"""Replies that say something false, well-formed: no codec refuses them, each is its caller's to see."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

import numpy as np
from accidents import Around

from vflens.protocol import acts
from vflens.protocol.acts import Act
from vflens.protocol.link import Link
from vflens.protocol.mask_acts import MaskShares, Seeded
from vflens.protocol.standing import Standing
from vflens.protocol.vertical import row_ids
from vflens.types import INT32_MAX, AlignMode, Array, PartyInfo, Phase, Point, Released, Role, sealed

Lies = dict[str, Any]


class Liar(Around):
    """Tells ``lie`` of each reply to an act of ``kind``, once it is set; it counts the lies told."""

    def __init__(self, inner: Link, kind: type[Act[Any]]) -> None:
        super().__init__(inner)
        self.lie: Callable[[Any], Any] | None = None
        self.kind, self.lied = kind, 0

    def submit(self, act: Act[Any]) -> Any:
        reply = super().submit(act)
        if self.lie is None or not isinstance(act, self.kind):
            return reply
        lied: Future[Any] = Future()
        try:
            lied.set_result(self.lie(reply.result()))
            self.lied += 1
        except Exception as error:  # the honest party's refusal
            lied.set_exception(error)
        return lied


def of(reply: Any) -> Lies:
    """The lies of an honest ``reply`` by name."""
    for kind, lies in _LIES.items():
        if isinstance(reply, kind):
            return lies(reply)
    return {}


def _released(honest: Released) -> Lies:
    e = honest.exchange
    rows = {
        "a row less": honest.rows[:-1] if len(honest.rows) else None,
        "other rows": honest.rows[::-1] if len(honest.rows) > 1 else None,
        "a row twice": np.repeat(honest.rows[:1], len(honest.rows)) if len(honest.rows) > 1 else None,
        "a row more": np.append(honest.rows, np.int32(0)),
        "a row of nobody": np.full(max(1, len(honest.rows)), INT32_MAX, np.int32),
    }
    return {
        "another sender": replace(honest, sender="mallory"),
        "a run of others": replace(honest, exchange=e._replace(run="other/run")),
        "a phase of others": replace(
            honest, exchange=e._replace(phase=Phase.PREDICT if e.phase is not Phase.PREDICT else Phase.TRAIN)
        ),
        "another round": replace(honest, exchange=e._replace(round=e.round + 1)),
        "another step": replace(honest, exchange=e._replace(step=e.step + 1)),
        "a step that never was": replace(honest, exchange=e._replace(step=10**6)),
        "another kind": replace(
            honest, point=Point.SCORES if honest.point is not Point.SCORES else Point.EMBEDDING
        ),
        **{name: replace(honest, rows=sealed(found)) for name, found in rows.items() if found is not None},
        **_tensors(honest),
    }


def _tensors(honest: Released) -> Lies:
    held = dict(honest.tensors or {})
    if not held:
        return {}
    first = next(iter(held))
    changed: dict[str, Mapping[str, Array] | None] = {
        "withheld": None,
        "no tensor": {},
        "a tensor more": {**held, "more": np.zeros(3)},
        "a tensor of another name": {**{n: v for n, v in held.items() if n != first}, "other": held[first]},
        **{f"{first}: {name}": {**held, first: sealed(v)} for name, v in _arrays(held[first]).items()},
    }
    return {name: replace(honest, tensors=tensors) for name, tensors in changed.items()}


def _arrays(honest: Array) -> dict[str, Array]:
    other = {"<f8": "<f4", "<f4": "<f8", "<i8": "<i4", "<i4": "<i8"}[honest.dtype.str]
    lies = {
        "another precision": honest.astype(other),
        "truth values": honest.astype(bool),
        "an axis more": honest[None],
        "a number less": honest[..., :-1],
        "a row of numbers less": honest[:-1],
        "no numbers": honest[:0],
    }
    if honest.dtype.kind == "f":
        most = float(np.finfo(honest.dtype).max)
        lies |= {f"{value}": np.full_like(honest, value) for value in (np.nan, np.inf, most)}
    return {name: np.ascontiguousarray(value) for name, value in lies.items()}


def _step(honest: acts.StepReply) -> Lies:
    if honest.released is None:
        return {}
    lies = {name: replace(honest, released=released) for name, released in _released(honest.released).items()}
    return {**lies, "nothing": replace(honest, released=None)}


def _disclosures(honest: tuple[Any, ...]) -> Lies:
    found: Lies = {}
    for place, released in enumerate(honest):
        for name, lie in _released(released).items():
            found[f"{released.point}, {name}"] = (*honest[:place], lie, *honest[place + 1 :])
    return found


def _order(honest: acts.Order) -> Lies:
    rows = honest.rows
    return {
        "a row less": acts.Order(rows[:-1]),
        "a row twice": acts.Order(np.append(rows[:-1], rows[:1])),
        "a row of nobody": acts.Order(np.append(rows[:-1], np.int32(INT32_MAX))),
        "a row below 0": acts.Order(np.append(rows[:-1], np.int32(-1))),
    }


def _trained(honest: acts.Trained) -> Lies:
    return {
        "a step too many": replace(honest, steps=honest.steps + 1),
        "a step too few": replace(honest, steps=honest.steps - 1),
        "steps below 0": replace(honest, first=-1),
        "the last before the first": replace(honest, first=honest.steps + 1),
    }


def _standing(honest: Standing) -> Lies:
    return {
        "another version": replace(honest, version="0.0.0"),
        "another federation": replace(honest, federation=bytes(32)),
        "no federation": replace(honest, federation=b""),
        "fewer steps": replace(honest, learned=-1),
        "fewer rows": replace(honest, released=-1),
    }


def _identities(honest: row_ids.Identities) -> Lies:
    digest, rows = honest.digests[:32], len(honest.digests) // 32
    return {
        "a digest cut": replace(honest, digests=honest.digests[:-1]),
        "a digest twice": replace(honest, digests=digest + digest + honest.digests[64:]),
        "a digest more": replace(honest, digests=honest.digests + bytes(31) + b"1"),
        "no digests": replace(honest, digests=b""),
        "a split of fewer rows": replace(honest, split=np.zeros(rows - 1, np.uint8)),
        "a third part": replace(honest, split=np.full(rows, 2, np.uint8)),
    }


def _receipt(honest: acts.Receipt) -> Lies:
    name = next(iter(honest.errors))
    return {
        "other rows": replace(honest, rows=honest.rows + 1),
        "more attacks": replace(honest, attacks=honest.attacks + 1),
        "an unknown attack": replace(honest, errors={**honest.errors, "nonesuch": 0.5}),
        "no error": replace(honest, errors={}),
        **{f"{e}": replace(honest, errors={**honest.errors, name: e}) for e in (np.nan, np.inf, 1e200, -1.0)},
    }


def _party(honest: PartyInfo) -> Lies:
    return {
        "another name": replace(honest, name="mallory"),
        "another role": replace(honest, role=Role.OPERATOR),
    }


def _salted(honest: row_ids.Salted) -> Lies:
    other: AlignMode = "psi" if honest.mode == "hmac" else "hmac"
    return {
        "a salt cut": replace(honest, salt=honest.salt[:-1]),
        "no salt": replace(honest, salt=b""),
        "another mode": replace(honest, mode=other),
        "an id more": replace(honest, ids=honest.ids + 1),
        "an id less": replace(honest, ids=honest.ids - 1),
        "ids without end": replace(honest, ids=2**62),
    }


def _blinded(honest: row_ids.Blinded) -> Lies:
    element = honest.elements[:32]
    return {
        "a byte less": row_ids.Blinded(honest.elements[:-1]),
        "an element more": row_ids.Blinded(honest.elements + element),
        "an element twice": row_ids.Blinded(element + element + honest.elements[64:]),
        "nothing": row_ids.Blinded(b""),
    }


def _seeded(honest: Seeded) -> Lies:
    seed = honest.seed
    return {"a byte less": Seeded(seed[:-1]), "a byte more": Seeded(seed + b"1"), "no seed": Seeded(b"")}


def _mask_shares(honest: MaskShares) -> Lies:
    numbers = honest.numbers
    return {
        "a number less": MaskShares(numbers[:-1]),
        "a number more": MaskShares(np.append(numbers, numbers[:1])),
        "no numbers": MaskShares(numbers[:0]),
    }


_LIES: dict[type[Any], Callable[[Any], Lies]] = {
    Released: _released,
    acts.StepReply: _step,
    tuple: _disclosures,
    acts.Order: _order,
    acts.Trained: _trained,
    Standing: _standing,
    row_ids.Identities: _identities,
    acts.Receipt: _receipt,
    row_ids.Salted: _salted,
    row_ids.Blinded: _blinded,
    PartyInfo: _party,
    Seeded: _seeded,
    MaskShares: _mask_shares,
}
