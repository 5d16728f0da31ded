"""A tiny Flower app: softmax regression on handwritten digits, in NumPy, with its messages recorded.

    PYTHONPATH=examples/recorder python examples/flower/app.py recorded

runs two rounds of three clients in Flower's simulation engine. In a round a client takes one step of gradient
descent, on one digit: a server can then compute that digit from the update.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")

import numpy as np
from flwr.app import Array, ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation
from vflens_recorder import FlowerGrid

CLIENTS, ROUNDS, CLASSES, LEARNING_RATE = 3, 2, 10, 0.1
HERE = Path(__file__).resolve().parent

client = ClientApp()


@client.train()
def train(message, context):
    """One step of gradient descent on one row of this client's file."""
    arrays, number = message.content["arrays"], message.content["config"]["server-round"]
    weight, bias = arrays["weight"].numpy(), arrays["bias"].numpy()
    rows = np.loadtxt(
        HERE / f"client-{context.node_config['partition-id'] + 1}.csv", delimiter=",", skiprows=1
    )
    x, label = rows[number - 1, 1:-1] / 16, int(rows[number - 1, -1])
    scores = weight @ x + bias
    gradient = np.exp(scores - scores.max())
    gradient = gradient / gradient.sum() - np.eye(CLASSES)[label]
    trained = {
        "weight": weight - LEARNING_RATE * np.outer(gradient, x),
        "bias": bias - LEARNING_RATE * gradient,
    }
    content = RecordDict({"arrays": _record(trained), "metrics": MetricRecord({"num-examples": len(rows)})})
    return Message(content, reply_to=message)


def _record(arrays):
    return ArrayRecord({name: Array(value) for name, value in arrays.items()})


server = ServerApp()


@server.main()
def main(grid, context):
    """Federated averaging; the recorder takes the place of the grid."""
    grid = FlowerGrid(grid, os.environ["RECORDED"])
    start = {"weight": np.zeros((CLASSES, 64)), "bias": np.zeros(CLASSES)}
    everyone = {"min_train_nodes": CLIENTS, "min_available_nodes": CLIENTS}  # else a round draws some
    FedAvg(fraction_evaluate=0.0, **everyone).start(grid, _record(start), num_rounds=ROUNDS)


if __name__ == "__main__":
    os.environ["RECORDED"] = sys.argv[1]
    run_simulation(server, client, num_supernodes=CLIENTS)
