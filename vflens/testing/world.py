"""A federation of softmax regression as its active party sees it, small enough to be run many times."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import log_softmax

from vflens.models.settings import Training
from vflens.plugins.attack import Attack
from vflens.plugins.views.vertical import AdversaryView
from vflens.storage.journal import Messages
from vflens.types import Array, ColumnInfo, Exchange, Knowledge, PartyInfo, Phase, Point, Released, Role

ROWS, CLASSES = 10, 4
SATURATED = (2, 5)  # rows with scores of 0, which leave equations out


@dataclass(frozen=True)
class SmallWorld:
    """Two passive parties of three columns, or one of as many as an attack is made for; exact scores but for
    :data:`SATURATED` rows, everything disclosed to the active party. The target is "second".
    """

    transcript: Sequence[Released]
    own: Mapping[str, Array]
    parties: Sequence[PartyInfo]

    @property
    def width(self) -> int:
        """The number of the target's columns."""
        return len(self.parties[-1].columns)

    def view(
        self, rows: Sequence[int] = range(ROWS), needs: frozenset[Knowledge] = frozenset(Knowledge)
    ) -> AdversaryView:
        """A new view of ``rows`` for an attack that declares ``needs``."""
        return AdversaryView(
            party="active",
            target="second",
            rows=np.array(rows, np.int32),
            n_classes=CLASSES,
            transcript=Messages(self.transcript),
            own=self.own,
            parties=self.parties,
            needs=needs,
            phases=frozenset(Phase),
            training=np.arange(ROWS, dtype=np.int32),
            schedule=Training(epochs=3),
        )

    def contents(self) -> bytes:
        """All that an attack could overwrite."""
        arrays = [t for r in self.transcript for t in (r.rows, *(r.tensors or {}).values())]
        return b"".join(a.tobytes() for a in [*arrays, *self.own.values()])


def world_of(attack: Attack) -> SmallWorld:
    """The world for ``attack``, which is on columns from softmax regression."""
    # Sums of several parties' logits in training are not told apart.
    only = 3 if Phase.TRAIN in attack.phases else attack.unknown_columns
    blocks = {"second": slice(0, only)} if only else {"first": slice(0, 3), "second": slice(3, 6)}
    rng, d = np.random.default_rng(5), only or 6
    truth, features = rng.random((ROWS, d)), rng.random((ROWS, 4))
    weight, own, bias = rng.normal(size=(CLASSES, d)), rng.normal(size=(CLASSES, 4)), rng.normal(size=CLASSES)
    if only:
        bias = weight.sum(axis=1)  # the signs that a black-box attack takes for known
    log_c = log_softmax(truth @ weight.T + features @ own.T + bias, axis=1)
    log_c[SATURATED[0]] = [-np.inf, 0.0, -np.inf, -np.inf]
    log_c[SATURATED[1], 1] = -np.inf
    transcript = [_sent(Point.SCORES, scores=log_c)]
    for party, block in blocks.items():
        parameters = {"weight": weight[:, block], **({"bias": bias} if party == min(blocks) else {})}
        transcript += _disclosed(party, truth[:, block], parameters, rng)
    for each in rng.normal(size=(3, CLASSES, d)):  # logits of three steps of training
        transcript.append(_sent(Point.EMBEDDING, Phase.TRAIN, embedding=truth @ each.T))
    columns = tuple(ColumnInfo(f"c{i}", 0.0, 1.0) for i in range(only or 3))
    passive = [PartyInfo(name, Role.PASSIVE, columns=columns) for name in blocks]
    known = {"features": features, "labels": rng.integers(0, CLASSES, ROWS), "parameters": own}
    return SmallWorld(transcript, known, [PartyInfo("active", Role.ACTIVE, n_classes=CLASSES), *passive])


def _sent(
    point: Point, phase: Phase = Phase.PREDICT, sender: str = "coordinator", n: int = ROWS, **tensors: Array
) -> Released:
    return Released(
        sender, Exchange("run", phase, 0, 0), point, np.arange(n, dtype=np.int32), tensors=tensors
    )


def _disclosed(
    party: str, x: Array, parameters: Mapping[str, Array], rng: np.random.Generator
) -> list[Released]:
    """All that a passive party with the columns ``x`` can grant."""
    K = np.atleast_2d(np.cov(x.T)) + 0.01 * np.eye(x.shape[1])
    return [
        _sent(Point.PARAMETERS, Phase.DISCLOSE, party, 0, **parameters),
        _sent(Point.MOMENTS, Phase.DISCLOSE, party, 0, mean=x.mean(0), covariance=K),
        _sent(Point.AUXILIARY, Phase.DISCLOSE, party, features=rng.random(x.shape)),
        _sent(Point.DATASET, Phase.DISCLOSE, party, dataset=x + rng.normal(size=x.shape)),
    ]
