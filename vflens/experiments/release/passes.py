"""The two passes over a table: the first computes moments, the second writes. Memory does not grow with the
rows.
"""

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from vflens.errors import ConfigError, DataError
from vflens.experiments.release.columns import Block, ReleasePlan
from vflens.experiments.release.sink import TableSink
from vflens.table_noise.mechanisms import Mechanism
from vflens.table_noise.moments import TableMoments
from vflens.types import Array

#: The noise's deviation must be at least so many spacings of float64 at the column's largest value. Then no
#: value is more than 2⁵⁰ steps of the noise's grid from 0, and float64 locates it to within half a step.
TIMES = 2**16
#: Above it neighbouring whole numbers share one float64.
_WHOLE = 2.0**53
_BINS, _DRAWN_ROWS, _DRAWN_COLUMNS = 40, 200_000, 24


@dataclass(eq=False)
class Scan:
    """Results of the first pass, by released column (p,); first values of the label, a digest."""

    moments: TableMoments
    low: Array
    high: Array
    whole: Array
    rising: Array
    digest: bytes
    labels: list[str] = field(default_factory=list)
    quoted: bool = False

    @property
    def rows(self) -> int:
        """Number q of released rows."""
        return self.moments.count


def scan(plan: ReleasePlan, blocks: Iterable[Block]) -> Scan:
    """Read every row once.

    Raises:
        DataError: no rows, or a constant label.
    """
    found: Scan | None = None
    digest, last = hashlib.blake2b(digest_size=32), np.full(len(plan.names), -np.inf)
    for block in _filled(blocks):
        x = block.features
        found = _first(x) if found is None else _added(found, x)
        digest.update(np.ascontiguousarray(x).data)
        steps = np.diff(x, axis=0, prepend=last[None])
        found.rising &= (steps > 0).all(axis=0)
        last = x[-1]
        _note_kept(plan, found, block)
    if found is None:
        raise DataError(
            f"{plan.file.path}: it holds no rows without missing values: there is nothing to release"
        )
    if plan.label is not None and _constant(found.labels):
        raise DataError(f"{plan.file.path}: label column {plan.label!r} is constant: name another --label")
    found.digest = digest.digest()
    return found


def _constant(labels: Sequence[str]) -> bool:
    """Whether these are one value, as text or as a number ("1" and "1.0")."""
    try:
        return len({float(label) for label in labels[:2]}) == 1
    except ValueError:
        return len(labels) == 1


def _filled(blocks: Iterable[Block]) -> Iterator[Block]:
    return (block for block in blocks if len(block.features))


def _first(x: Array) -> Scan:
    width = x.shape[1]
    return Scan(
        TableMoments.of(x), x.min(axis=0), x.max(axis=0), _whole(x), rising=np.full(width, True), digest=b""
    )


def _added(scan: Scan, x: Array) -> Scan:
    scan.moments = scan.moments.add(x)
    np.minimum(scan.low, x.min(axis=0), out=scan.low)
    np.maximum(scan.high, x.max(axis=0), out=scan.high)
    scan.whole &= _whole(x)
    return scan


def _whole(x: Array) -> Array:
    whole: Array = ((np.rint(x) == x) & (abs(x) < _WHOLE)).all(axis=0)
    return whole


def _note_kept(plan: ReleasePlan, scan: Scan, block: Block) -> None:
    """The label's values, at most three, and whether text needs quotes in CSV."""
    if plan.label is not None and len(scan.labels) < 3:
        values = pc.unique(block.kept[plan.label].cast(pa.string())).to_pylist()
        scan.labels = list(dict.fromkeys([*scan.labels, *values]))[:3]
    for column in block.kept.values():
        if not scan.quoted and pa.types.is_string(column.type):
            scan.quoted = bool(pc.any(pc.match_substring_regex(column, '[",\r\n]')).as_py())


def refuse_invisible(plan: ReleasePlan, scan: Scan, deviation: Array) -> None:
    """Refuse noise that float64 would round away beside the numbers that it hides.

    Raises:
        ConfigError: in some column the noise's ``deviation`` (p,) is within 65,536 steps of float64.
    """
    largest = np.maximum(abs(scan.low), abs(scan.high))
    hidden = deviation < TIMES * np.spacing(largest)
    if hidden.any():
        j = int(np.argmax(hidden))
        raise ConfigError(
            f"column {plan.names[j]!r} holds numbers where float64 has steps of "
            f"{np.spacing(largest[j]):.3g}: noise of deviation {deviation[j]:.3g} would be rounded away, ask "
            "for more noise or rescale the column"
        )


def refuse_refuted(plan: ReleasePlan, scan: Scan, diameter: Array) -> None:
    """Refuse a public ``diameter`` (p,) that the table refutes: no ε would hold between its own rows.

    Raises:
        DataError: two rows differ by more in some column.
    """
    wide = scan.high - scan.low > diameter
    if wide.any():
        j = int(np.argmax(wide))
        raise DataError(
            f"{plan.file.path}: two rows differ in column {plan.names[j]!r} by more than --diameter "
            f"{diameter[j]:g}, so that no ε would hold between them: give a bound that holds for everyone"
        )


@dataclass(frozen=True, eq=False)
class Noise:
    """A mechanism and the secret key of this release."""

    mechanism: Mechanism
    key: bytes


@dataclass(eq=False)
class Effect:
    """Results of the second pass: histograms before and after, and the share that simple decoding restores.

    ``undone``: by feature, the share of cells (of rows, for one-hot) that rounding (arg-max) gives back.
    ``formulas``: names and texts in the file that a spreadsheet would run.
    """

    edges: Array
    before: Array
    after: Array
    drawn: int = 0
    undone: dict[str, float] = field(default_factory=dict)
    formulas: int = 0


def write(
    plan: ReleasePlan,
    blocks: Iterable[Block],
    scan: Scan,
    noise: Noise,
    path: Path,
    *,
    excel_safe: bool = False,
) -> Effect:
    """Write x + n to ``path``, in the format of its suffix; ``excel_safe``: see
    :class:`vflens.experiments.release.sink.TableSink`.

    Raises:
        DataError: the numbers differ from those of the first pass.
    """
    effect = _canvas(plan, scan, noise.mechanism)
    decoders = [(f, place) for f, place in plan.groups() if _decodable(plan, scan, f, place)]
    right = dict.fromkeys((f for f, _ in decoders), 0)
    mean, start, digest = noise.mechanism.mean(), 0, hashlib.blake2b(digest_size=32)
    with TableSink(path, plan.schema(), quoted=scan.quoted, excel_safe=excel_safe) as sink:
        for block in _filled(blocks):
            released = noise.mechanism.release(block.features, start, noise.key)
            start += len(released)
            digest.update(np.ascontiguousarray(block.features).data)
            sink.write(Block(released, block.kept).columns(plan))
            for feature, place in decoders:
                right[feature] += _recovered(
                    block.features[:, place], (released - mean)[:, place], plan, feature
                )
            _draw(effect, block.features, released)
    if digest.digest() != scan.digest:
        raise DataError(
            f"{plan.file.path} changed between its two readings: release it when no program writes to it"
        )
    effect.formulas = sink.formulas
    effect.undone = {feature: count / start for feature, count in right.items()}
    return effect


def _decodable(plan: ReleasePlan, scan: Scan, feature: str, place: slice) -> bool:
    return feature in plan.encodings or bool(scan.whole[place].all())


def _recovered(x: Array, released: Array, plan: ReleasePlan, feature: str) -> int:
    encoding = plan.encodings.get(feature)
    if encoding is None:
        guess = np.rint(released)
    elif encoding.kind == "ordinal":
        guess = np.clip(np.rint(released), 0, len(encoding.categories) - 1)
    else:
        return int((released.argmax(axis=1) == x.argmax(axis=1)).sum())
    return int((guess == x).sum())


def _canvas(plan: ReleasePlan, scan: Scan, mechanism: Mechanism) -> Effect:
    shown = min(len(plan.names), _DRAWN_COLUMNS)
    reach = 3 * np.sqrt(np.diag(mechanism.covariance())) + abs(mechanism.mean())
    width = np.maximum(scan.high - scan.low, np.spacing(abs(scan.high)))
    low, high = scan.low - np.minimum(reach, 2 * width), scan.high + np.minimum(reach, 2 * width)
    edges = np.linspace(low[:shown], high[:shown], _BINS + 1).T
    return Effect(edges, np.zeros((shown, _BINS), np.int64), np.zeros((shown, _BINS), np.int64))


def _draw(effect: Effect, x: Array, released: Array) -> None:
    rows = min(len(x), _DRAWN_ROWS - effect.drawn)
    effect.drawn += rows
    for j, edges in enumerate(effect.edges if rows else ()):
        effect.before[j] += np.histogram(x[:rows, j], edges)[0]
        effect.after[j] += np.histogram(released[:rows, j], edges)[0]


def signs(values: Sequence[str], labels: Array) -> tuple[Array, str]:
    """Labels (q,) as ±1, and the value of +1: the larger number, or the later text.

    Raises:
        ConfigError: there are not exactly two values.
    """
    if len(values) != 2:
        raise ConfigError(
            "the label has more than two values: --mechanism correlated keeps a classifier of two classes"
        )
    try:
        positive = max(values, key=float)
    except ValueError:
        positive = max(values)
    return np.where(labels == positive, 1.0, -1.0), positive
