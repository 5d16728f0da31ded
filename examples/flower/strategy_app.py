"""The app of ``app.py`` by Flower's Strategy API, with sampled clients whose numbers of rows change.

    PYTHONPATH=examples/recorder python examples/flower/strategy_app.py recorded

runs three rounds. In each two of three clients take one step of gradient descent on their first rows, more of
them from round to round, and the third one is evaluated with them. Client 3 fails in round 2 if it is drawn.
"""

import os
import sys
from pathlib import Path

os.environ.setdefault("FLWR_TELEMETRY_ENABLED", "0")

import numpy as np
from flwr.client import ClientApp, NumPyClient
from flwr.common import Context, ndarrays_to_parameters
from flwr.server import LegacyContext, ServerApp, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.server.workflow import DefaultWorkflow
from flwr.simulation import run_simulation
from vflens_recorder import FlowerGrid

CLIENTS, ROUNDS, CLASSES, LEARNING_RATE = 3, 3, 10, 0.1
HERE = Path(__file__).resolve().parent


class Digits(NumPyClient):
    """A client with the rows of one file."""

    def __init__(self, number):
        rows = np.loadtxt(HERE / f"client-{number}.csv", delimiter=",", skiprows=1)
        self._x, self._labels, self._number = rows[:, 1:-1] / 16, rows[:, -1].astype(int), number

    def fit(self, parameters, config):
        """One step on as many rows as the round and the client say."""
        n = self._number + config["round"]
        if (self._number, config["round"]) == (3, 2):
            raise RuntimeError("no training today")
        weight, bias = parameters
        errors, loss = self._errors(weight, bias, n)
        trained = [
            weight - LEARNING_RATE * errors.T @ self._x[:n] / n,
            bias - LEARNING_RATE * errors.mean(axis=0),
        ]
        return trained, n, {"loss": loss, "site": f"ward {self._number}"}

    def evaluate(self, parameters, config):
        """The loss of all rows."""
        _, loss = self._errors(*parameters, len(self._x))
        return loss, len(self._x), {"bad": loss > 2}

    def _errors(self, weight, bias, n):
        scores = self._x[:n] @ weight.T + bias
        chances = np.exp(scores - scores.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        own = chances[np.arange(n), self._labels[:n]]
        return chances - np.eye(CLASSES)[self._labels[:n]], float(-np.log(own).mean())


class Averaging(FedAvg):
    """Federated averaging that tells clients the round."""

    def configure_fit(self, server_round, parameters, client_manager):
        """Which clients train, as FedAvg draws them."""
        asked = super().configure_fit(server_round, parameters, client_manager)
        for _, instructions in asked:
            instructions.config["round"] = server_round
        return asked


client = ClientApp(lambda context: Digits(context.node_config["partition-id"] + 1).to_client())
server = ServerApp()


@server.main()
def main(grid, context: Context):
    """The recorder takes the place of the grid."""
    start = ndarrays_to_parameters([np.zeros((CLASSES, 64)), np.zeros(CLASSES)])
    strategy = Averaging(
        fraction_fit=0.5, min_fit_clients=2, min_available_clients=CLIENTS, initial_parameters=start
    )
    legacy = LegacyContext(context=context, config=ServerConfig(num_rounds=ROUNDS), strategy=strategy)
    DefaultWorkflow()(FlowerGrid(grid, os.environ["RECORDED"]), legacy)


if __name__ == "__main__":
    os.environ["RECORDED"] = sys.argv[1]
    run_simulation(server, client, num_supernodes=CLIENTS)
