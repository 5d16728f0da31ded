#!/bin/sh
# flwr 1.42.0, SecAgg+ (secaggplus_mod and SecAggPlusWorkflow), three clients.
# Guess: a client returns a masked vector; its number of examples and its metrics are inside it, or are not sent.
# Behaviour: parameters alone are masked. Beside them the server receives each client's number of examples and metrics as
# they are, such as a count of positive cases. Leave out what the sum is meant to hide.
# Output seen: arrays of client 1, 2, 3: 0, 0, 0; num_examples: 10, 20, 30; positives: 1, 2, 3
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps alembic==1.20.1 annotated-doc==0.0.7 annotated-types==0.8.0 anyio==4.16.0 attrs==26.1.0 certifi==2026.10.19.post1 cffi==2.1.1 charset-normalizer==3.5.3 click==8.5.1 cryptography==50.0.2 fastapi==0.138.2 filelock==4.3.1 flwr==1.42.0 greenlet==3.5.6 grpcio==1.85.3 grpcio-health-checking==1.81.1 h11==0.16.0 httpcore==1.0.9 httptools==0.9.0 httpx==0.28.1 idna==3.20 iterators==0.0.2 jsonschema==4.26.0 jsonschema-specifications==2025.9.1 Mako==1.4.3 markdown-it-py==4.3.0 MarkupSafe==3.0.4 mdurl==0.1.2 msgpack==1.2.4 numpy==2.4.6 packaging==25.0 pathspec==1.1.1 prompt_toolkit==3.0.53 protobuf==6.33.6 pycparser==3.12 pycryptodome==3.24.1 pydantic==2.14.4 pydantic_core==2.50.5 Pygments==2.21.0 python-dotenv==1.2.4 PyYAML==6.0.4 referencing==0.37.0 requests==2.34.2 rich==14.3.4 rpds-py==2026.9.1 shellingham==1.5.4 SQLAlchemy==2.1.9 starlette==1.3.1 tomli==2.5.0 tomli_w==1.2.0 typer==0.20.1 typing-inspection==0.4.5 typing_extensions==4.16.0 urllib3==2.8.0 uvicorn==0.49.0 uvloop==0.23.0 watchfiles==1.3.0 wcwidth==0.9.4 websockets==17.4
cd "$folder"
FLWR_TELEMETRY_ENABLED=0 OMP_NUM_THREADS=1 HOME="$folder" venv/bin/python - 2>/dev/null <<'END'
from copy import deepcopy
from types import SimpleNamespace

import numpy as np
from flwr.app import Context, RecordDict
from flwr.client import ClientApp, NumPyClient
from flwr.client.mod import secaggplus_mod
from flwr.common import ndarrays_to_parameters
from flwr.server import LegacyContext, ServerConfig
from flwr.server.strategy import FedAvg
from flwr.server.workflow import DefaultWorkflow, SecAggPlusWorkflow
from flwr.supercore.task_identity import TaskIdentity

TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = 1, 1, 9  # as the engine sets them


class Client(NumPyClient):
    def __init__(self, number):
        self.number = number

    def fit(self, parameters, config):
        return [parameters[0] + self.number], 10 * self.number, {"positives": self.number}


def context(number):
    return Context(1, number, {}, RecordDict(), {})


class Grid:
    """Calls the clients in this process, and keeps what the server receives."""

    def __init__(self):
        self.run, self.received = SimpleNamespace(run_id=1), []
        self.contexts = {number: context(number) for number in (1, 2, 3)}
        self.app = ClientApp(lambda of: Client(of.node_id).to_client(), mods=[secaggplus_mod])

    def get_node_ids(self):
        return list(self.contexts)

    def send_and_receive(self, messages, *, timeout=None):
        replies = [self.app(deepcopy(m), self.contexts[m.metadata.dst_node_id]) for m in messages]
        self.received += replies
        return replies


grid = Grid()
start = ndarrays_to_parameters([np.zeros(2)])
strategy = FedAvg(fraction_evaluate=0.0, min_fit_clients=3, min_available_clients=3, initial_parameters=start)
legacy = LegacyContext(context(0), ServerConfig(num_rounds=1), strategy)
DefaultWorkflow(fit_workflow=SecAggPlusWorkflow(num_shares=3, reconstruction_threshold=2))(grid, legacy)
seen = [m.content for m in grid.received if "fitres.num_examples" in m.content.metric_records]
seen.sort(key=lambda of: of.metric_records["fitres.num_examples"]["num_examples"])
arrays = [len(of.array_records["fitres.parameters"]) for of in seen]
examples = [of.metric_records["fitres.num_examples"]["num_examples"] for of in seen]
positives = [of.config_records["fitres.metrics"]["positives"] for of in seen]
for of in (arrays, examples, positives):
    of[:] = map(int, of)
print(
    f"arrays of client 1, 2, 3: {', '.join(map(str, arrays))}; num_examples: {', '.join(map(str, examples))}; "
    f"positives: {', '.join(map(str, positives))}"
)
assert (arrays, examples, positives) == ([0, 0, 0], [10, 20, 30], [1, 2, 3])
END
