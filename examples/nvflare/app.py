"""A tiny NVFlare job: softmax regression on handwritten digits, in NumPy, with its messages recorded.

    PYTHONPATH=examples/recorder python examples/nvflare/app.py recorded

runs two rounds of two clients in NVFlare's simulator. In a round a client takes one step of gradient descent,
on one digit: a server can then compute that digit from the update.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from nvflare.app_common.abstract.fl_model import FLModel
from nvflare.app_common.workflows.fedavg import FedAvg
from nvflare.job_config.api import FedJob
from nvflare.job_config.defs import FilterType
from nvflare.job_config.script_runner import FrameworkType, ScriptRunner
from vflens_recorder import NVFlareFilter

CLIENTS, ROUNDS, CLASSES = 2, 2, 10
HERE = Path(__file__).resolve().parent


class Averaging(FedAvg):
    """NVFlare's federated averaging, which begins with zeros and keeps no file."""

    def load_model(self):
        """The parameters before the first round."""
        return FLModel(params={"weight": np.zeros((CLASSES, 64)), "bias": np.zeros(CLASSES)})

    def save_model(self, model):
        """The recording is enough."""


def main(recorded):
    """Run the job; ``recorded`` must not exist."""
    job = FedJob(name="digits", min_clients=CLIENTS)
    job.to_server(Averaging(num_clients=CLIENTS, num_rounds=ROUNDS, persistor_id=""))
    for direction, kind in (("sent", FilterType.TASK_DATA), ("received", FilterType.TASK_RESULT)):
        job.to_server(NVFlareFilter(recorded, direction), filter_type=kind, tasks=["train"])
    for number in range(1, CLIENTS + 1):
        script = ScriptRunner(
            str(HERE / "client.py"), script_args=str(HERE.parent / "flower"), framework=FrameworkType.NUMPY
        )
        job.to(script, f"site-{number}")
    with tempfile.TemporaryDirectory() as workspace:
        job.simulator_run(workspace)


if __name__ == "__main__":
    main(str(Path(sys.argv[1]).resolve()))
