"""The keywords of ``vl.audit`` and ``vl.release`` with their types, for editors and type checkers."""

from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, TypedDict

_ByColumn: TypeAlias = float | Sequence[float | str] | str  # one number, or one for each column


class DataKeys(TypedDict, total=False):
    """The keys of ``[data]`` that describe a frame: see :class:`vflens.tables.description.PartyFile`."""

    columns: Sequence[str]
    label_column: str
    label_kind: Literal["classes", "number"]
    split_column: str
    bounds: Mapping[str, Sequence[float]]
    alphabets: Mapping[str, Sequence[float]]
    pixels: Mapping[str, Sequence[int]]
    encode: Mapping[str, str]
    categories: Mapping[str, Sequence[str]]
    missing: Literal["refuse", "drop_row", "mean"]
    empty: Mapping[str, Sequence[str]]
    caveat: str


class ReleaseKeys(TypedDict, total=False):
    """The options of ``vflens release`` for a frame."""

    mechanism: Literal["gaussian", "laplace", "bounded", "correlated"]
    label: str | None
    ids: Sequence[str] | str
    keep_ids: bool
    encode: Mapping[str, str] | Sequence[str] | str
    missing: Literal["refuse", "drop_row"]
    lambda_: float | None
    target_mse: float | None
    epsilon: float | None
    delta: float
    diameter: _ByColumn | None
    pi: str | None
    matched: str | None
    lower: _ByColumn | None
    upper: _ByColumn | None
    m: float | None
    theta: float | None
    rho: float | None
    seed: str | None
    verify: bool
