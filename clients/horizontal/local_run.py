"""A client's run: its rows, its model, and the batches of a round."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count, islice

from vflens.array import ScaledColumns
from vflens.clients.horizontal.spending import UpdateSpending
from vflens.models.softmax_regression import batches
from vflens.models.whole import WholeModel
from vflens.protocol.horizontal.agreement import HorizontalAgreement
from vflens.randomness import stream
from vflens.types import Array


@dataclass(frozen=True, eq=False)
class LocalRun:
    """All that exists only once the run is prepared; arrays are in the order of the client's rows.

    ``truth`` (N, d) are the columns scaled to [0, 1], of which ``clipped`` values lay outside their bounds;
    ``inputs`` the same after its defences, the same object without any.
    ``labels`` int64 (N,) are the true ones, ``soft_labels`` (N, k) those that its defences of labels drew.
    ``spending`` counts what its updates cost.
    """

    federation: HorizontalAgreement
    truth: ScaledColumns
    inputs: ScaledColumns
    clipped: int
    model: WholeModel
    labels: Array
    soft_labels: Array
    spending: UpdateSpending


def local_batches(
    federation: HorizontalAgreement, rows: Array, secret: bytes, number: int
) -> Iterator[Array]:
    """The batches of training ``rows`` int32 (n,) in round ``number`` at the client with ``secret``.

    With ``local_steps`` so many, over as many epochs as they take; else those of ``local_epochs``. All
    scenarios of an experiment draw the same.
    """
    settings, size = federation.horizontal, federation.training.batch_size

    def epochs(numbers: Iterator[int]) -> Iterator[Array]:
        for epoch in numbers:
            yield from batches(rows, size, stream(secret, "local batches", number, epoch))

    if settings.local_steps is not None:
        return islice(epochs(count()), settings.local_steps)
    return epochs(iter(range(settings.local_epochs)))
