"""A client of ``app.py``: one step of gradient descent a round, on one digit of ``examples/flower``."""

import sys

import numpy as np
import nvflare.client as flare
from nvflare.app_common.abstract.fl_model import FLModel

CLASSES, LEARNING_RATE = 10, 0.1

flare.init()
rows = np.loadtxt(f"{sys.argv[1]}/client-{flare.get_site_name()[-1]}.csv", delimiter=",", skiprows=1)
while flare.is_running():
    model = flare.receive()
    weight, bias = model.params["weight"], model.params["bias"]
    row = rows[model.current_round]
    x, label = row[1:-1] / 16, int(row[-1])
    scores = weight @ x + bias
    chances = np.exp(scores - scores.max())
    chances /= chances.sum()
    gradient = chances - np.eye(CLASSES)[label]
    trained = {
        "weight": weight - LEARNING_RATE * np.outer(gradient, x),
        "bias": bias - LEARNING_RATE * gradient,
    }
    metrics = {"loss": float(-np.log(chances[label]))}
    flare.send(FLModel(params=trained, metrics=metrics, meta={"NUM_STEPS_CURRENT_ROUND": 1}))
