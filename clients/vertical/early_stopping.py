"""Early stopping by the mean training loss of an epoch, which never leaves the active party."""

from collections.abc import Mapping

import numpy as np

from vflens.errors import ProtocolError
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.storage.metrics import Metrics, Name
from vflens.types import Array, Exchange
from vflens.words import counted


class EarlyStopping:
    """Counts the epochs of ``federation`` without improvement; keeps every epoch's loss in ``metrics``."""

    def __init__(self, federation: VerticalAgreement, metrics: Metrics) -> None:
        self._federation, self._metrics = federation, metrics
        self._best_loss, self._epochs_without = np.inf, 0
        self._losses: list[float] = []  # of the steps of this epoch

    def note(self, exchange: Exchange, loss: float) -> None:
        """Take the mean ``loss`` of the rows of one training step."""
        self._losses.append(loss)
        if not self._federation.ends_epoch(exchange.step):
            return
        mean = float(np.mean(self._losses))
        self._losses.clear()
        self._metrics.add(Name.TRAIN_LOSS, mean, step=exchange.round)
        improved = mean < self._best_loss - self._federation.training.tolerance
        self._best_loss = mean if improved else self._best_loss
        self._epochs_without = 0 if improved else self._epochs_without + 1

    def stops_after(self, step: int) -> bool:
        """Whether training ends early with ``step``, the last one taken."""
        patience = self._federation.training.patience
        return 0 < patience <= self._epochs_without and self._federation.ends_epoch(step)

    def state(self) -> dict[str, Array]:
        """All that it remembers, as arrays."""
        stopping = np.array([self._best_loss, self._epochs_without])
        return {"stopping": stopping, "losses": np.array(self._losses)}

    def load(self, state: Mapping[str, Array]) -> None:
        """Take up :meth:`state`; what else ``state`` holds is passed over.

        Raises:
            ProtocolError: a number of epochs that no party counted.
        """
        best, without = state["stopping"].tolist()
        if not 0 <= without < np.inf:
            raise ProtocolError(
                f"the checkpoint counts {counted(without, 'epoch')} without improvement: from 0 are due"
            )
        self._best_loss, self._epochs_without = best, int(without)
        self._losses = state["losses"].tolist()
