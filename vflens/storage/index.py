"""One line of a journal's index: a payload described, and taken up again from the bytes it points at."""

from __future__ import annotations

import json
import math
from functools import lru_cache
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, NonNegativeInt, ValidationError

from vflens.types import DTYPES, MAX_DIMENSIONS, Array, Exchange, Phase, Point, Released


class _Array(BaseModel):
    """An array in an index line; an array without elements takes no bytes."""

    model_config = ConfigDict(extra="forbid", strict=True)
    name: str
    dtype: Literal[*DTYPES]  # type: ignore[valid-type]
    shape: list[NonNegativeInt] = Field(max_length=MAX_DIMENSIONS)
    offset: NonNegativeInt

    @property
    def end(self) -> int:
        """The payload's byte after it."""
        return self.offset + math.prod(self.shape) * DTYPES[self.dtype]


class Entry(BaseModel):
    """An index line, as :func:`index_line` writes it."""

    model_config = ConfigDict(extra="forbid", strict=True)
    sender: str
    run: str
    phase: Phase
    round: NonNegativeInt
    step: NonNegativeInt
    point: Point
    rows: _Array
    tensors: list[_Array]
    nbytes: NonNegativeInt
    withheld: bool

    @property
    def end(self) -> int:
        """The payload's byte after it."""
        return max(array.end for array in (self.rows, *self.tensors))


def index_line(released: Released, offset: int) -> tuple[bytes, list[Array]]:
    """The index line, built by hand: quicker than ``json.dumps`` (docs/performance.md, small choices)."""
    tensors = released.tensors or {}
    arrays = [released.rows, *tensors.values()]
    described = []
    for name, array in zip(("", *tensors), arrays, strict=True):
        described.append(f"{description(name, array.dtype, array.shape)}{offset}}}")
        offset += array.nbytes
    e = released.exchange
    withheld = "true" if released.tensors is None else "false"
    line = (
        f'{{"sender":{_quoted(released.sender)},"run":{_quoted(e.run)},"phase":"{e.phase}","round":{e.round},'
        f'"step":{e.step},"point":"{released.point}","rows":{described[0]},"tensors":[{",".join(described[1:])}],'
        f'"nbytes":{released.nbytes},"withheld":{withheld}}}\n'
    )
    return line.encode(), arrays


@lru_cache(maxsize=256)  # a run's arrays have few shapes
def description(name: str, dtype: np.dtype[Any], shape: tuple[int, ...]) -> str:
    """An array in an index line, up to its offset."""
    return f'{{"name":{_quoted(name)},"dtype":"{dtype.str}","shape":{list(shape)},"offset":'


@lru_cache(maxsize=256)
def _quoted(text: str) -> str:
    return json.dumps(text)


def complete_entry(line: bytes, size: int) -> Entry | None:
    """The entry of one index line, or None if the line or its payload is torn.

    Raises:
        ValueError: no journal wrote it.
    """
    if not line.endswith(b"\n"):
        return None
    try:
        entry = Entry.model_validate_json(line)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_context=False)[0]
        if problem["type"] == "json_invalid" and "recursion" not in problem["msg"]:
            return None
        raise ValueError(f"{'.'.join(map(str, problem['loc'])) or 'a line'}: {problem['msg']}") from None
    return entry if entry.end <= size else None


def released_at(entry: Entry, data: Any) -> Released:
    """The payload that ``entry`` describes; its arrays are read-only views of the log's bytes ``data``."""
    exchange = Exchange(entry.run, entry.phase, entry.round, entry.step)
    tensors = None if entry.withheld else {t.name: _array(t, data) for t in entry.tensors}
    return Released(entry.sender, exchange, entry.point, _array(entry.rows, data), tensors)


def _array(described: _Array, data: Any) -> Array:
    count = math.prod(described.shape)
    if count:
        array = np.frombuffer(data, described.dtype, count, described.offset).reshape(described.shape)
    else:
        array = np.zeros(described.shape, described.dtype)
    array.flags.writeable = False
    return array
