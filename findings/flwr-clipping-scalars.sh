#!/bin/sh
# flwr 1.42.0, fixedclipping_mod, a client's half of central differential privacy.
# Guess: it clips the update over all arrays of the model together, also those of shape ().
# Behaviour: an array of shape () counts for the norm, but goes out unclipped; one of shape (1,) is clipped. A learned
# scale or temperature is such an array. The noise is set for norm 1, and does not cover what leaves.
# Output seen: clipping norm 1, update 12: shape () goes out as 12, shape (1,) as 1
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps flwr==1.42.0 numpy==2.4.6 pycryptodome==3.24.1 cffi==2.1.1 pycparser==3.12 cryptography==50.0.2 grpcio==1.85.3 grpcio-health-checking==1.81.1 protobuf==6.33.6 iterators==0.0.2 typer==0.20.1 click==8.5.1 rich==14.3.4 pygments==2.21.0 shellingham==1.5.4 typing_extensions==4.16.0 annotated-doc==0.0.7 markdown-it-py==4.3.0 mdurl==0.1.2 httpx==0.28.1 httpcore==1.0.9 h11==0.16.0 anyio==4.16.0 idna==3.20 certifi==2026.10.19.post1 requests==2.34.2 urllib3==2.8.0 charset-normalizer==3.5.3 tomli==2.5.0 tomli-w==1.2.0 pathspec==1.1.1 pyyaml==6.0.4 packaging==25.0
cd "$folder"
FLWR_TELEMETRY_ENABLED=0 OMP_NUM_THREADS=1 HOME="$folder" venv/bin/python - 2>/dev/null <<'END'
import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, Metadata, RecordDict
from flwr.clientapp.mod import fixedclipping_mod


def record(scale):
    return ArrayRecord({"weights": Array(np.zeros(2)), "scale": Array(scale)})


def leaves(scale):
    """The server sends zeros and a clipping norm of 1; the client answers with scale."""
    config = ConfigRecord({"clipping_norm": 1.0})
    content = RecordDict({"arrays": record(np.zeros_like(scale)), "config": config})
    asked = Message(content=content, metadata=Metadata(1, "1", 0, 1, "", "", 0.0, 9e9, "train"))
    answer = RecordDict({"arrays": record(scale)})
    reply = fixedclipping_mod(asked, None, lambda message, context: Message(content=answer, reply_to=message))
    return float(np.linalg.norm(reply.content["arrays"]["scale"].numpy()))


scalar, vector = leaves(np.array(12.0)), leaves(np.array([12.0]))
print(f"clipping norm 1, update 12: shape () goes out as {scalar:g}, shape (1,) as {vector:g}")
assert scalar == 12 and abs(vector - 1) < 1e-9
END
