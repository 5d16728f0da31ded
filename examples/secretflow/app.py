"""SecretFlow's split learning on made-up people; the party without labels records what it receives.

    PYTHONPATH=examples/recorder python examples/secretflow/app.py recorded

runs SecretFlow 1.12 (``pip install secretflow==1.12.0b0``) in one process. Alice knows age, income and credit
score, Bob the rest and the label. In training Alice sends embeddings and receives their gradients, in the
clear. Bob writes ``truth.npz``, the labels.
"""

import sys
from pathlib import Path

import numpy as np
import secretflow as sf
import torch
from bank import ACTIVE, PASSIVE, people
from secretflow.data.ndarray import FedNdarray, PartitionWay
from secretflow_fl.ml.nn import SLModel
from secretflow_fl.ml.nn.callbacks.callback import Callback
from secretflow_fl.ml.nn.core.torch import BaseModule, TorchModel
from vflens_recorder import Recorder

PARTIES = [
    {"name": "alice", "role": "passive", "columns": PASSIVE},
    {"name": "bob", "role": "active", "columns": ACTIVE, "classes": ["no", "yes"]},
]
WIDTH, BATCH, EPOCHS = 4, 32, 6


class Record(Callback):
    """Write the gradients that ``party`` receives of its ``rows`` into ``folder``, on its own machine.

    It counts on ``shuffle=False``: the rows of a batch follow those of the batch before.
    """

    def __init__(self, party, folder, rows):
        super().__init__()
        self._party, self._folder, self._rows = party, folder, rows

    def on_epoch_begin(self, epoch=None, logs=None):
        """Begin with the first rows."""
        self._epoch, self._begin = epoch, 0

    def on_agglayer_backward_end(self, gradients=None):
        """The gradients of a batch have arrived at their parties."""
        rows = np.arange(self._begin, min(self._begin + BATCH, self._rows))
        self._begin += BATCH
        self._workers[self._party].apply(note, gradients[self._party], self._folder, rows, self._epoch)


def note(worker, gradient, folder, rows, epoch):
    """In the party's own process, where ``worker`` is its part of the model."""
    recorder = worker._callback_store.get("vflens")
    if recorder is None:
        recorder = worker._callback_store["vflens"] = Recorder(folder, "secretflow/bank", "alice", PARTIES)
    values = gradient[0] if isinstance(gradient, list | tuple) else gradient
    recorder.received("bob", "gradient", values, rows, epoch=epoch)


class Bottom(BaseModule):
    """The part of one party."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(3, WIDTH), torch.nn.ReLU())

    def forward(self, x):
        """Embeddings (n, WIDTH) of rows (n, 3)."""
        return self.layers(x)

    def output_num(self):
        """How many arrays of embeddings there are."""
        return 1


class Top(BaseModule):
    """The part of the label holder."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2 * WIDTH, 1)

    def forward(self, embeddings):
        """The probability (n, 1) of the label "yes"."""
        return torch.sigmoid(self.layer(torch.cat(embeddings, dim=1)))


def trained(module):
    """How SecretFlow trains a part: by binary cross-entropy and gradient descent."""
    return TorchModel(module, torch.nn.BCELoss, lambda parameters: torch.optim.SGD(parameters, lr=0.5))


def main(out):
    """Train, record, and save the parts as SecretFlow does."""
    out.mkdir(parents=True)
    _, x, own, labels = people()
    np.savez(out / "truth.npz", y=labels)
    sf.init(["alice", "bob"], debug_mode=True)
    alice, bob = sf.PYU("alice"), sf.PYU("bob")
    x, own, y = (array.astype(np.float32) for array in (x, own, labels[:, None]))
    tables = {alice: alice(lambda: x)(), bob: bob(lambda: own)()}
    parts = {alice: trained(Bottom), bob: trained(Bottom)}
    model = SLModel(parts, device_y=bob, model_fuse=trained(Top), random_seed=1, backend="torch")
    model.fit(
        FedNdarray(tables, PartitionWay.VERTICAL),
        FedNdarray({bob: bob(lambda: y)()}, PartitionWay.VERTICAL),
        batch_size=BATCH,
        epochs=EPOCHS,
        shuffle=False,
        callbacks=[Record(alice, out / "alice", len(labels))],
    )
    model.save_model({alice: str(out / "alice.pt"), bob: str(out / "bob.pt")}, str(out / "top.pt"))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
