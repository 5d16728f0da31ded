"""Hypothesis strategies for everything that crosses the wire, and bitwise equality of what comes back."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from vflens.member.stage import Stage
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.families.split_network import SplitNetwork
from vflens.models.settings import AGGREGATORS, Horizontal, Training
from vflens.protocol import acts, mask_acts
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.protocol.standing import Standing
from vflens.protocol.vertical import row_ids
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.protos import vfl_pb2 as pb
from vflens.storage.chain import LINK_BYTES, Head
from vflens.storage.heads import LOGS
from vflens.storage.sent_heads import SentHeads
from vflens.types import (
    DTYPES,
    INT32_MAX,
    ColumnInfo,
    Exchange,
    PartyInfo,
    Phase,
    Point,
    Released,
    Role,
    RowStatus,
    Signature,
    numbered,
)

INT32 = st.integers(0, INT32_MAX)
PLACES = st.integers(0, 39)  # their box, in three directions too, is small enough for a picture
NAMES = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Zl", "Zp")), max_size=12)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
ROWS = hnp.arrays("<i4", hnp.array_shapes(max_dims=1, min_side=0, max_side=6))
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


def values(dtype: str) -> Any:
    """What a tensor of ``dtype`` may hold: −inf and subnormals too, no NaN."""
    if dtype == "<f8":
        return st.floats(allow_nan=False)
    return st.floats(allow_nan=False, width=32) if dtype == "<f4" else None


TENSORS = st.sampled_from(sorted(DTYPES)).flatmap(
    lambda dtype: hnp.arrays(dtype, SHAPES, elements=values(dtype))
)
EXCHANGES = st.builds(Exchange, NAMES, st.sampled_from(Phase), INT32, st.integers(0, 2**63 - 1))
RELEASED = st.builds(
    Released,
    NAMES,
    EXCHANGES,
    st.sampled_from([p for p in Point if p is not Point.METRICS]),  # it stands in recordings only
    ROWS,
    st.none() | st.dictionaries(NAMES, TENSORS, max_size=3),
)
COLUMNS = st.builds(
    ColumnInfo,
    NAMES,
    st.none() | NUMBERS,
    st.none() | NUMBERS,
    alphabet=st.none() | st.lists(NUMBERS, min_size=1, max_size=3).map(tuple),
    pixel=st.none() | st.tuples(PLACES, PLACES),
)


#: A numeric label, with bounds.
LABELS = st.builds(ColumnInfo, NAMES, st.floats(-1e300, 0), st.floats(1e-3, 1e300))


def parties(role: Role, name: str, classes: int = 0) -> Any:
    """A public description with this role and name."""
    drawn: Any = {"columns": st.lists(COLUMNS, max_size=3).map(tuple)}
    classed = st.builds(PartyInfo, st.just(name), st.just(role), n_classes=st.just(classes), **drawn)
    numbered = st.builds(PartyInfo, st.just(name), st.just(role), n_classes=st.just(1), label=LABELS, **drawn)
    return classed | numbered


TRAININGS = st.builds(
    Training,
    optimizer=st.sampled_from(["adam", "sgd"]),
    epochs=st.integers(1, INT32_MAX),
    batch_size=st.integers(1, INT32_MAX),
    learning_rate=st.floats(1e-6, 1e6),
    l2=st.floats(0, 1e6),
    patience=INT32,
    tolerance=st.floats(0, 1e6),
    penalise_bias=st.booleans(),
    staleness=st.integers(0, 1),
    protection=st.sampled_from(["none", "shares"]),
)
WIDTHS = st.lists(st.integers(1, 65536), max_size=3).map(tuple)
_SPLIT = {
    "cut": st.sampled_from(["fedadob-vertical", "fedadob-horizontal", 1]),
    "top": WIDTHS,
    "trainable_top": st.booleans(),
    "combine": st.sampled_from(["sum", "concatenate"]),
    "precision": st.sampled_from(["float32", "float64"]),
}
OF_IMAGES = st.sampled_from(["cnn", "lenet", "alexnet", "resnet18"])
NETWORKS = st.builds(SplitNetwork, architecture=OF_IMAGES, **_SPLIT) | st.builds(
    SplitNetwork,
    architecture=st.just("mlp"),
    width=st.integers(1, 65536),
    hidden=WIDTHS,
    dropout=st.floats(0, 0.99),
    **_SPLIT,
)
BOUNDED = st.builds(ColumnInfo, NAMES, st.just(0.0), st.just(1.0))
_ROUNDS = {
    "rounds": st.integers(1, INT32_MAX),
    "weights": st.sampled_from(["rows", "equal"]),
    "participants": st.sampled_from([None, 1]),
    "absent": st.sampled_from(["wait", "leave_out"]),
}
HORIZONTALS = st.builds(Horizontal, local_epochs=st.integers(1, INT32_MAX), **_ROUNDS) | st.builds(
    Horizontal, local_steps=st.integers(1, INT32_MAX), **_ROUNDS
)


def clients(columns: tuple[ColumnInfo, ...], rows: list[int], key: str = "") -> tuple[PartyInfo, ...]:
    """Descriptions of one client for each of ``rows``, alike but for their rows."""
    return tuple(
        PartyInfo(
            f"c{i}",
            Role.CLIENT,
            columns=columns,
            n_classes=2,
            classes=("no", "yes"),
            train_rows=n,
            predict_rows=n,
            mask_key=key,
        )
        for i, n in enumerate(rows)
    )


def _horizontal(
    settings: st.SearchStrategy[Horizontal], fewest: int, keys: st.SearchStrategy[str]
) -> st.SearchStrategy[HorizontalAgreement]:
    rows = st.lists(st.integers(1, INT32_MAX), min_size=fewest, max_size=3)
    return st.builds(
        HorizontalAgreement,
        run=NAMES,
        parties=st.builds(clients, st.lists(BOUNDED, min_size=1, max_size=3).map(tuple), rows, keys),
        training=TRAININGS,
        lab=st.booleans(),
        model=st.just(SOFTMAX_REGRESSION) | NETWORKS,
        horizontal=settings,
    )


HORIZONTAL = _horizontal(HORIZONTALS, 1, st.just("")) | _horizontal(
    st.builds(Horizontal, secure_aggregation=st.just(True)),
    3,
    st.binary(min_size=32, max_size=32).map(bytes.hex),
)
FEDERATIONS = HORIZONTAL | st.builds(
    VerticalAgreement,
    run=NAMES,
    parties=st.tuples(
        parties(Role.ACTIVE, "active", 3), parties(Role.PASSIVE, "a"), parties(Role.PASSIVE, "b")
    ),
    rows=INT32,
    train=ROWS,
    predict=ROWS,
    training=TRAININGS,
    lab=st.booleans(),
    model=st.just(SOFTMAX_REGRESSION) | NETWORKS,
    aggregator=st.sampled_from(AGGREGATORS),
)
STATUS = st.lists(st.sampled_from(RowStatus), max_size=4).map(numbered)
TABLES = hnp.array_shapes(min_dims=2, max_dims=2, min_side=0, max_side=4)
GUESSES = st.builds(acts.Guess, NAMES, hnp.arrays("<f8", TABLES, elements=values("<f8")), STATUS)
DIGESTS = st.binary(max_size=128)
SALTS = st.integers(0, 3).map(lambda n: bytes(32 * n))
INT64 = st.integers(-(2**63), 2**63 - 1)
LINKS = st.binary(min_size=LINK_BYTES, max_size=LINK_BYTES)
SIGNATURES = st.builds(
    Signature, st.text("-ABC\n", max_size=40), st.binary(max_size=72).map(lambda value: value.hex())
)
HEADS = st.builds(
    SentHeads,
    st.dictionaries(st.sampled_from(LOGS), st.builds(Head, st.integers(0, 2**63 - 1), LINKS)),
    st.just(b"") | LINKS,
    st.none() | SIGNATURES,
)
STANDINGS = st.builds(
    Standing,
    NAMES.filter(str.isprintable),
    INT32,
    st.sampled_from([str(stage) for stage in Stage]),
    INT32,
    INT32,
    st.sampled_from([b"", bytes(32)]),
    st.booleans(),
)
ACTS: dict[type[acts.Act[Any]], Any] = {
    acts.Describe: st.builds(acts.Describe, NAMES),
    row_ids.Salt: st.builds(row_ids.Salt, NAMES),
    row_ids.Identify: st.builds(row_ids.Identify, NAMES, SALTS, INT64),
    row_ids.Blind: st.builds(row_ids.Blind, NAMES, SALTS, NAMES, INT64, ids=INT64, elements=DIGESTS),
    acts.Prepare: st.builds(acts.Prepare, FEDERATIONS, ROWS, SALTS),
    acts.Rejoin: st.builds(acts.Rejoin, NAMES, STANDINGS),
    acts.Step: st.builds(
        acts.Step, EXCHANGES, ROWS, st.none() | RELEASED, st.lists(NAMES, max_size=3).map(tuple)
    ),
    acts.Train: st.builds(acts.Train, NAMES),
    mask_acts.Seed: st.builds(mask_acts.Seed, NAMES),
    mask_acts.Deal: st.builds(mask_acts.Deal, NAMES, INT32),
    acts.Epoch: st.builds(acts.Epoch, NAMES, INT32, st.booleans()),
    acts.Disclose: st.builds(acts.Disclose, NAMES, INT32, NAMES),
    acts.Deliver: st.builds(acts.Deliver, RELEASED),
    acts.Begin: st.builds(acts.Begin, NAMES, INT32),
    acts.Forward: st.builds(acts.Forward, EXCHANGES, ROWS),
    acts.Predict: st.builds(acts.Predict, RELEASED),
    acts.Query: st.builds(acts.Query, NAMES),
    acts.Submission: st.builds(
        acts.Submission, NAMES, NAMES, NAMES, ROWS, st.lists(GUESSES, max_size=2).map(tuple)
    ),
    acts.Finished: st.builds(acts.Finished, NAMES, NAMES, HEADS),
    acts.Stop: st.builds(
        acts.Stop, NAMES, NAMES.filter(str.isprintable), st.dictionaries(NAMES, HEADS, max_size=3)
    ),
}


def answers(n: int) -> Any:
    """Answers about ``n`` rows of two classes, or of a number."""
    rows = hnp.arrays("<i4", n), st.tuples(*[NAMES] * n)
    scores = [hnp.arrays("<f8", (n, k), elements=values("<f8")) for k in (1, 2)]
    numbers = st.builds(acts.Answers, *rows, st.just(()), scores[0], NAMES.filter(len))
    return numbers | st.builds(acts.Answers, *rows, st.tuples(NAMES, NAMES), scores[1])


DONE = st.just(acts.Done())
REPLIES: dict[type[acts.Act[Any]], Any] = {
    acts.Describe: parties(Role.PASSIVE, "a"),
    row_ids.Salt: st.builds(
        row_ids.Salted, DIGESTS, st.sampled_from(["psi", "hmac"]), st.integers(0, 2**63 - 1)
    ),
    row_ids.Identify: st.builds(
        row_ids.Identities,
        DIGESTS,
        st.none() | hnp.arrays("|u1", st.integers(0, 4), elements=st.integers(0, 1)),
    ),
    row_ids.Blind: st.builds(row_ids.Blinded, DIGESTS),
    acts.Prepare: DONE,
    acts.Rejoin: STANDINGS,
    acts.Step: st.builds(acts.StepReply, st.none() | RELEASED, st.booleans()),
    acts.Train: st.builds(acts.Trained, INT32, INT32),
    acts.Epoch: st.builds(acts.Order, ROWS),
    mask_acts.Seed: st.builds(mask_acts.Seeded, st.just(bytes(32))),
    mask_acts.Deal: st.builds(mask_acts.MaskShares, hnp.arrays("<u8", st.integers(0, 4))),
    acts.Disclose: st.lists(RELEASED, max_size=2).map(tuple),
    acts.Deliver: DONE,
    acts.Begin: DONE,
    acts.Forward: RELEASED,
    acts.Predict: RELEASED,
    acts.Query: st.integers(0, 3).flatmap(answers),
    acts.Submission: st.builds(acts.Receipt, INT32, INT32, st.dictionaries(NAMES, NUMBERS, max_size=2)),
    acts.Finished: DONE,
    acts.Stop: DONE,
}


def equal(a: Any, b: Any) -> bool:
    """Equality bit for bit through dataclasses, tuples and mappings; arrays with dtype and shape."""
    if isinstance(a, np.ndarray):
        same = isinstance(b, np.ndarray) and (a.dtype, a.shape) == (b.dtype, b.shape)
        return same and a.tobytes() == b.tobytes()
    if type(a) is not type(b):
        return False
    if is_dataclass(a):
        return all(equal(getattr(a, f.name), getattr(b, f.name)) for f in fields(a))
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
    return bool(a == b)


quick = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])


def tensor(**changes: Any) -> pb.Tensor:
    right: dict[str, Any] = {"name": "t", "dtype": "<f8", "shape": [2, 1], "data": np.ones(2).tobytes()}
    return pb.Tensor(**right | changes)


def message(**changes: Any) -> pb.Released:
    right: dict[str, Any] = {"sender": "a", "exchange": pb.Exchange(run="r", phase=pb.TRAIN), "point": 1}
    return pb.Released(**right | changes)
