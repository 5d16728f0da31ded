#!/bin/sh
# flwr 1.42.0, DifferentialPrivacyServerSideFixedClipping around FedAvg, two clients.
# Guess: clients with 1 and 99 examples weigh alike, since the noise is noise_multiplier * clipping_norm / 2, that of one
# clipped update in a mean of two.
# Behaviour: the mean stays weighted by numbers of examples. The client with 99 of 100 moves it by .99 of the clipping
# norm, under noise that is made for half of it. Equal numbers of examples give the noise its stated multiple.
# Output seen: clipped updates (1, 0) of 1 example, (0, 1) of 99: the mean moves by (0.01, 0.99); noise at multiplier 1: 0.5
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps alembic==1.20.1 annotated-doc==0.0.7 annotated-types==0.8.0 anyio==4.16.0 attrs==26.1.0 certifi==2026.10.19.post1 cffi==2.1.1 charset-normalizer==3.5.3 click==8.5.1 cryptography==50.0.2 fastapi==0.138.2 filelock==4.3.1 flwr==1.42.0 greenlet==3.5.6 grpcio==1.85.3 grpcio-health-checking==1.81.1 h11==0.16.0 httpcore==1.0.9 httptools==0.9.0 httpx==0.28.1 idna==3.20 iterators==0.0.2 jsonschema==4.26.0 jsonschema-specifications==2025.9.1 Mako==1.4.3 markdown-it-py==4.3.0 MarkupSafe==3.0.4 mdurl==0.1.2 msgpack==1.2.4 numpy==2.4.6 packaging==25.0 pathspec==1.1.1 prompt_toolkit==3.0.53 protobuf==6.33.6 pycparser==3.12 pycryptodome==3.24.1 pydantic==2.14.4 pydantic_core==2.50.5 Pygments==2.21.0 python-dotenv==1.2.4 PyYAML==6.0.4 referencing==0.37.0 requests==2.34.2 rich==14.3.4 rpds-py==2026.9.1 shellingham==1.5.4 SQLAlchemy==2.1.9 starlette==1.3.1 tomli==2.5.0 tomli_w==1.2.0 typer==0.20.1 typing-inspection==0.4.5 typing_extensions==4.16.0 urllib3==2.8.0 uvicorn==0.49.0 uvloop==0.23.0 watchfiles==1.3.0 wcwidth==0.9.4 websockets==17.4
cd "$folder"
FLWR_TELEMETRY_ENABLED=0 OMP_NUM_THREADS=1 HOME="$folder" venv/bin/python - 2>/dev/null <<'END'
import numpy as np
from flwr.common import Code, FitRes, Status, ndarrays_to_parameters, parameters_to_ndarrays
from flwr.server.client_manager import SimpleClientManager
from flwr.server.strategy import DifferentialPrivacyServerSideFixedClipping, FedAvg


def mean(noise_multiplier, updates):
    """The parameters after a round of two clients with (update, examples), from zeros, clipped to norm 1."""
    plain = FedAvg(min_fit_clients=0, min_available_clients=0)
    strategy = DifferentialPrivacyServerSideFixedClipping(plain, noise_multiplier, 1.0, 2)
    start = ndarrays_to_parameters([np.zeros_like(updates[0][0])])
    strategy.configure_fit(1, start, SimpleClientManager())
    ok = Status(Code.OK, "")
    results = [(None, FitRes(ok, ndarrays_to_parameters([update]), n, {})) for update, n in updates]
    return parameters_to_ndarrays(strategy.aggregate_fit(1, results, [])[0])[0]


one, other = mean(1e-9, [(np.array([1.0, 0.0]), 1), (np.array([0.0, 1.0]), 99)])  # too little noise to hide the weights
tiny = np.full(40000, 1e-9)
noise = mean(1.0, [(tiny.copy(), 1), (tiny.copy(), 99)]).std()
print(f"clipped updates (1, 0) of 1 example, (0, 1) of 99: the mean moves by ({one:.2f}, {other:.2f}); noise at multiplier 1: {noise:.1f}")
assert np.allclose([one, other], [0.01, 0.99], atol=1e-6) and abs(noise - 0.5) < 0.02
END
