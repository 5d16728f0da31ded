"""A client's claim of rows sizes nothing at its server before the server's own limit allows it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from horizontal import CLASSES, COLUMNS, clients_of, deal, federation, server_of, table
from laboratory import close, let_go_later

from vflens.coordinator.horizontal.granted import check_granted, check_grants
from vflens.errors import ConfigError, ProtocolError
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.settings import Horizontal, Training
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.types import INT32_MAX, Array, Exchange, PartyInfo, Phase, Point, Released, Role

MOMENTS = {"mean": np.zeros(4), "covariance": np.zeros((4, 4))}


def _federation(rows: int) -> HorizontalAgreement:
    clients = (
        PartyInfo(
            "c1", Role.CLIENT, columns=COLUMNS, n_classes=3, classes=CLASSES, train_rows=rows, predict_rows=1
        ),
    )
    return HorizontalAgreement(
        run="run",
        parties=clients,
        training=Training(),
        lab=False,
        model=SOFTMAX_REGRESSION,
        horizontal=Horizontal(rounds=1),
    )


KINDS = {"mean": 1, "features": 2, "labels": 3, "embedding": 4, "weight": 5}


def _granted(point: Point, tensors: dict[str, Array], *rows: int) -> Released:
    number = next(kind for name, kind in KINDS.items() if name in tensors) + 7 * len(rows)
    exchange = Exchange("run", Phase.DISCLOSE, 1, number)
    return Released("c1", exchange, point, np.array(rows, np.int32), tensors=tensors)


def test_a_disclosure_is_checked_without_an_array_of_the_claimed_rows() -> None:
    claimed = _federation(INT32_MAX)
    tracemalloc.start()
    try:
        check_granted(_granted(Point.MOMENTS, MOMENTS), "c1", claimed)
        check_granted(
            _granted(Point.AUXILIARY, {"features": np.zeros((2, 4))}, 3, INT32_MAX - 1), "c1", claimed
        )
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1 << 20


def test_a_server_refuses_a_claim_beyond_its_limit(tmp_path: Path) -> None:
    files = deal(
        tmp_path, {"a": table(30, 1), "b": table(17, 2)}, limits={"max_rows": 40}, horizontal={"rounds": 1}
    )
    local = let_go_later(federation(files))
    server, liar = server_of(local), clients_of(local)["b"]
    describe = liar.describe
    liar._answers  # noqa: B018 - the table of handlers is made
    liar._answers = {
        **liar._answers,
        **{kind: _claiming(describe) for kind, answer in liar._answers.items() if answer == describe},
    }
    words = f"^client 'b' says that it has {INT32_MAX} rows, limits.max_rows of its server is 40: raise it"
    with pytest.raises(ConfigError, match=words):
        server.prepare()
    assert server.federation is None
    close(local)


def _claiming(describe: Callable[[Any], PartyInfo]) -> Callable[[Any], PartyInfo]:
    return lambda act: replace(describe(act), train_rows=INT32_MAX - 6)


LIES: dict[str, Released] = {
    "a row beyond": _granted(Point.AUXILIARY, {"features": np.zeros((1, 4))}, 30),
    "a row twice": _granted(Point.AUXILIARY, {"features": np.zeros((2, 4))}, 3, 3),
    "a row below 0": _granted(Point.AUXILIARY, {"features": np.zeros((1, 4))}, -1),
    "features of another width": _granted(Point.AUXILIARY, {"features": np.zeros((1, 3))}, 1),
    "labels of no class": _granted(Point.AUXILIARY, {"labels": np.array([3])}, 1),
    "labels with a fraction": _granted(Point.AUXILIARY, {"labels": np.array([0.5])}, 1),
    "moments of other columns": _granted(Point.MOMENTS, {**MOMENTS, "mean": np.zeros(5)}),
    "moments as truth values": _granted(Point.MOMENTS, {**MOMENTS, "mean": np.zeros(4, bool)}),
    "embeddings of another width": _granted(Point.EMBEDDING, {"embedding": np.zeros((1, 9))}, 1),
    "gradients of no row": _granted(Point.GRADIENT, {"weight": np.zeros((2, 3, 4))}, 1),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_no_client_discloses_is_refused(lie: str) -> None:
    with pytest.raises(ProtocolError, match=r"^\w+ disclosed by 'c1'"):
        check_granted(LIES[lie], "c1", _federation(30))


def test_a_client_discloses_each_thing_once() -> None:
    moments, federation = _granted(Point.MOMENTS, MOMENTS), _federation(30)
    check_grants([moments], "c1", federation)
    with pytest.raises(ProtocolError, match=r"^'c1' discloses moments twice: each is due once$"):
        check_grants([moments, moments], "c1", federation)
    again = replace(moments, exchange=moments.exchange._replace(step=8))
    with pytest.raises(ProtocolError, match=r"^moments disclosed by 'c1' as disclosure number 8: 1 is its"):
        check_grants([again], "c1", federation)
