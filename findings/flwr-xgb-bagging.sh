#!/bin/sh
# flwr 1.42.0, FedXgbBagging, two clients with models of XGBoost 3.2.0.
# Guess: the aggregate's margin is the mean of the clients' margins, and its base_score the mean of theirs.
# Behaviour: trees are appended and add up, so that n clients take n steps in place of one. base_score is that of the
# first client: its exact share of positives stands in the model of all, under trees that others made for their own.
# Output seen: shares 0.80 and 0.18: base_score 0.8000; off the mean by up to 2.27, off the sum of trees on it by 0
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps --no-compile alembic==1.20.1 annotated-doc==0.0.7 annotated-types==0.8.0 anyio==4.16.0 attrs==26.1.0 certifi==2026.10.19.post1 cffi==2.1.1 charset-normalizer==3.5.3 click==8.5.1 cryptography==50.0.2 fastapi==0.138.2 filelock==4.3.1 flwr==1.42.0 greenlet==3.5.6 grpcio==1.85.3 grpcio-health-checking==1.81.1 h11==0.16.0 httpcore==1.0.9 httptools==0.9.0 httpx==0.28.1 idna==3.20 iterators==0.0.2 jsonschema==4.26.0 jsonschema-specifications==2025.9.1 Mako==1.4.3 markdown-it-py==4.3.0 MarkupSafe==3.0.4 mdurl==0.1.2 msgpack==1.2.4 numpy==2.4.6 packaging==25.0 pathspec==1.1.1 prompt_toolkit==3.0.53 protobuf==6.33.6 pycparser==3.12 pycryptodome==3.24.1 pydantic==2.14.4 pydantic_core==2.50.5 Pygments==2.21.0 python-dotenv==1.2.4 PyYAML==6.0.4 referencing==0.37.0 requests==2.34.2 rich==14.3.4 rpds-py==2026.9.1 shellingham==1.5.4 SQLAlchemy==2.1.9 starlette==1.3.1 tomli==2.5.0 tomli_w==1.2.0 typer==0.20.1 typing-inspection==0.4.5 typing_extensions==4.16.0 urllib3==2.8.0 uvicorn==0.49.0 uvloop==0.23.0 watchfiles==1.3.0 wcwidth==0.9.4 websockets==17.4 xgboost==3.2.0 scipy==1.17.1
cd "$folder"
FLWR_TELEMETRY_ENABLED=0 OMP_NUM_THREADS=1 HOME="$folder" venv/bin/python - 2>/dev/null <<'END'
import json

import numpy as np
import xgboost
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.serverapp.strategy import FedXgbBagging
from flwr.supercore.task_identity import TaskIdentity

TaskIdentity.run_id, TaskIdentity.task_id, TaskIdentity.node_id = 1, 1, 9  # as the engine sets them
rng = np.random.default_rng(0)
logit = {"objective": "binary:logistic", "max_depth": 3, "nthread": 1}
strangers = xgboost.DMatrix(rng.normal(50, 10, (50, 3)))


def base(model):
    return float(json.loads(bytes(model))["learner"]["learner_model_param"]["base_score"].strip("[]"))


def margin(model):
    return xgboost.Booster(model_file=bytearray(model)).predict(strangers, output_margin=True)


def client(middle):
    x = rng.normal(50, 10, (400, 3))
    y = x[:, 0] + rng.normal(0, 5, 400) > middle
    return y.mean(), bytes(xgboost.train(logit, xgboost.DMatrix(x, y), 1).save_raw("json"))


def reply(model, node):
    arrays = ArrayRecord([np.frombuffer(model, np.uint8)])
    content = RecordDict({"arrays": arrays, "metrics": MetricRecord({"num-examples": 400})})
    return Message(content, reply_to=Message(content, dst_node_id=node, message_type="train"))


shares, models = zip(client(40), client(60))
strategy = FedXgbBagging(min_train_nodes=2, min_available_nodes=2)
strategy.current_bst = b""  # as before the first round
arrays, _ = strategy.aggregate_train(1, [reply(model, node) for node, model in enumerate(models, 1)])
whole = arrays.to_numpy_ndarrays()[0].tobytes()
first, second = map(margin, models)
start = np.log(base(models[1]) / (1 - base(models[1])))
off_mean = np.abs(margin(whole) - (first + second) / 2).max()
off_sum = np.abs(margin(whole) - (first + second - start)).max()
print(f"shares {shares[0]:.2f} and {shares[1]:.2f}: base_score {base(whole):.4f}; off the mean by up to "
      f"{off_mean:.2f}, off the sum of trees on it by {off_sum:.0f}")
assert base(whole) == base(models[0]) and np.isclose(base(whole), shares[0]) and off_mean > 0.5 and off_sum < 1e-5
END
