#!/bin/sh
# nvflare 2.9.0, a job of the Job API with the privacy filter ExcludeVars at its clients, in the simulator.
# Guess: a filter that is given without tasks, for which the Job API writes tasks = ["*"], acts on every task.
# Behaviour: it acts on none. Names of tasks are compared as they are, and no task is called "*". No warning is printed,
# and everything leaves as if there were no filter. With tasks=["train"] the same filter acts.
# Output seen: without tasks the server receives weight, bias; with tasks=["train"] weight
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps aiohappyeyeballs==2.7.1 aiohttp==3.14.5 aiosignal==1.4.0 annotated-types==0.8.0 attrs==26.1.0 blinker==1.9.0 certifi==2026.10.19.post1 cffi==2.1.1 charset-normalizer==3.5.3 click==8.5.1 cryptography==50.0.2 docker==7.2.0 Flask==3.1.3 Flask-JWT-Extended==4.6.0 Flask-SQLAlchemy==3.1.1 frozenlist==1.8.0 grpcio==1.85.3 gunicorn==27.0.1 idna==3.20 itsdangerous==2.2.0 Jinja2==3.1.6 MarkupSafe==3.0.4 msgpack==1.2.4 multidict==7.2.1 numpy==2.4.6 nvflare==2.9.0 propcache==0.5.4 protobuf==7.36.2 psutil==7.2.2 pycparser==3.12 pydantic==2.14.4 pydantic_core==2.50.5 pyhocon==0.3.63 PyJWT==2.15.1 pyparsing==3.3.3 PyYAML==6.0.4 requests==2.34.2 safetensors==0.8.0 SQLAlchemy==2.1.9 typing-inspection==0.4.5 typing_extensions==4.16.0 urllib3==2.8.0 Werkzeug==3.1.9 yarl==1.25.1 
cd "$folder"
cat > client.py <<'END'
import nvflare.client as flare
from nvflare.app_common.abstract.fl_model import FLModel

flare.init()
while flare.is_running():
    flare.send(FLModel(params=flare.receive().params))
END
cat > job.py <<'END'
import sys
from pathlib import Path

import numpy as np
from nvflare.app_common.abstract.fl_model import FLModel
from nvflare.app_common.filters.exclude_vars import ExcludeVars
from nvflare.app_common.workflows.fedavg import FedAvg
from nvflare.job_config.api import FedJob
from nvflare.job_config.defs import FilterType
from nvflare.job_config.script_runner import FrameworkType, ScriptRunner


class Averaging(FedAvg):
    def __init__(self, out):
        super().__init__(num_clients=1, num_rounds=1, persistor_id="")
        self.out = out

    def load_model(self):
        return FLModel(params={"weight": np.ones(2), "bias": np.ones(1)})

    def save_model(self, model):
        Path(self.out).write_text(", ".join(model.params))


def received(out, **tasks):
    job = FedJob(name="job", min_clients=1)
    job.to_server(Averaging(out))
    job.to(ScriptRunner("client.py", framework=FrameworkType.NUMPY), "site-1")
    job.to(ExcludeVars(["bias"]), "site-1", filter_type=FilterType.TASK_RESULT, **tasks)
    job.simulator_run(f"{out}.workspace")


if __name__ == "__main__":
    received(sys.argv[1], **({"tasks": ["train"]} if sys.argv[1].endswith("named") else {}))
END
for tasks in default named; do
    OMP_NUM_THREADS=1 HOME="$folder" PYTHONPATH="$folder" venv/bin/python job.py "$folder/$tasks" > log 2>&1
done
echo "without tasks the server receives $(cat default); with tasks=[\"train\"] $(cat named)"
test "$(cat default)" = "weight, bias" && test "$(cat named)" = "weight"
