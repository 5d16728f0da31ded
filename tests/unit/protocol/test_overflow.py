"""A refusal of numbers that overflowed says what their sender was sent: another party may be the cause."""

from __future__ import annotations

import numpy as np
import pytest
from horizontal import CLASSES, COLUMNS
from laboratory import payload

from vflens.errors import ProtocolError
from vflens.models.families.softmax_regression import SOFTMAX_REGRESSION
from vflens.models.settings import Horizontal, Training
from vflens.protocol.checks import finite
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.recorded.horizontal.parameters import check_update
from vflens.types import PartyInfo, Point, Role

REMEDY = "check its table, its defences and the learning rate$"


def test_an_update_is_named_with_the_parameters_of_its_round() -> None:
    clients = (
        PartyInfo(
            "passive",
            Role.CLIENT,
            columns=COLUMNS,
            n_classes=3,
            classes=CLASSES,
            train_rows=30,
            predict_rows=6,
        ),
    )
    federation = HorizontalAgreement(
        run="run",
        parties=clients,
        training=Training(),
        lab=False,
        model=SOFTMAX_REGRESSION,
        horizontal=Horizontal(rounds=1),
    )
    update = payload({"weight": np.full((3, 4), np.nan)}, point=Point.UPDATE, step=4)
    poisoned = {"weight": np.full((3, 4), -1e100)}
    words = (
        r"^weight of 'passive' holds NaN, infinite or huge numbers in step 4, after numbers up to 1e\+100 "
    )
    with pytest.raises(ProtocolError, match=rf"{words}that it was sent: {REMEDY}"):
        check_update(update, "passive", federation, poisoned)


@pytest.mark.parametrize(
    ("sent", "words"),
    [({"gradient": np.array([2.5, -7.0])}, ", after numbers up to 7 that it was sent"), ({}, ""), (None, "")],
)
def test_an_embedding_is_named_with_the_gradient_before_it(
    sent: dict[str, np.ndarray] | None, words: str
) -> None:
    embedding = payload({"embedding": np.full((2, 3), np.inf)})
    with pytest.raises(
        ProtocolError, match=rf"^embedding of 'passive' holds NaN.* in step 0{words}: {REMEDY}"
    ):
        finite(embedding, "embedding", (2, 3), sent=sent)
