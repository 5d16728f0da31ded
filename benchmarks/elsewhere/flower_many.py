"""Many clients in Flower's simulation: ``python flower_many.py FEATURES LABELS CLIENTS``.

The run of ``benchmarks/test_many.py``: softmax regression in NumPy, one epoch of Adam a round, two rounds,
equal weights. FEATURES (n, d) uint8 and LABELS (n,) are ``.npy`` files, which each client maps and cuts. It
has no logs, no report and no model of a client's own rows. It needs flwr[simulation].
"""

import os
import sys
from collections.abc import Mapping
from typing import Any

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

ROUNDS, CLASSES, BATCH, RATE = 2, 10, 64, 0.001
FEATURES, LABELS, CLIENTS = os.environ.get("FLOWER_MANY", " ".join(sys.argv[1:4])).split()


def train(message: Any, context: Any) -> Any:
    """An epoch on this client's training rows, four in five of its part."""
    number, count = context.node_config["partition-id"], int(CLIENTS)
    features, labels = (np.load(file, mmap_mode="r") for file in (FEATURES, LABELS))
    part = slice(number * len(labels) // count, (number + 1) * len(labels) // count)
    x, y = features[part] / 255, labels[part]
    drawn = np.random.default_rng([number, message.content["config"]["server-round"]])
    rows = drawn.permutation(len(y))[: len(y) * 4 // 5]
    model = {name: array.numpy() for name, array in message.content["arrays"].items()}
    means = {name: np.zeros_like(array) for name, array in model.items()}
    squares = {name: np.zeros_like(array) for name, array in model.items()}
    for step, start in enumerate(range(0, len(rows), BATCH), 1):
        batch = rows[start : start + BATCH]
        scores = x[batch] @ model["weight"] + model["bias"]
        error = np.exp(scores - scores.max(axis=1, keepdims=True))
        error = (error / error.sum(axis=1, keepdims=True) - np.eye(CLASSES)[y[batch]]) / len(batch)
        for name, gradient in {"weight": x[batch].T @ error, "bias": error.sum(axis=0)}.items():
            means[name] = 0.9 * means[name] + 0.1 * gradient
            squares[name] = 0.999 * squares[name] + 0.001 * gradient**2
            rate = RATE * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
            model[name] = model[name] - rate * means[name] / (np.sqrt(squares[name]) + 1e-8)
    content = RecordDict({"arrays": record(model), "metrics": MetricRecord({"num-examples": 1})})
    return Message(content, reply_to=message)


def record(model: Mapping[str, Any]) -> Any:
    """``model`` as a message takes it."""
    return ArrayRecord({name: Array(value) for name, value in model.items()})


def main(grid: Any, context: Any) -> None:
    """Federated averaging of all clients."""
    width = np.load(FEATURES, mmap_mode="r").shape[1]
    everyone = {"min_train_nodes": int(CLIENTS), "min_available_nodes": int(CLIENTS)}
    start = {"weight": np.zeros((width, CLASSES)), "bias": np.zeros(CLASSES)}
    found = FedAvg(fraction_evaluate=0.0, **everyone).start(grid, record(start), num_rounds=ROUNDS)
    weight, bias = (found.arrays[name].numpy() for name in ("weight", "bias"))
    features, labels = (np.load(file, mmap_mode="r")[:5000] for file in (FEATURES, LABELS))
    print("accuracy", float(((features / 255 @ weight + bias).argmax(axis=1) == labels).mean()))


client, server = ClientApp(), ServerApp()
client.train()(train)
server.main()(main)

if __name__ == "__main__":
    os.environ["FLOWER_MANY"] = f"{FEATURES} {LABELS} {CLIENTS}"  # for the workers
    run_simulation(server, client, num_supernodes=int(CLIENTS))
