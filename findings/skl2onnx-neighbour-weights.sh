#!/bin/sh
# skl2onnx 1.20.0 of KNeighborsClassifier(weights="distance") (scikit-learn 1.7.2).
# Guess: the file's probabilities are those of predict_proba, up to float32.
# Behaviour: they are those of weights="uniform", with no warning. In scikit-learn a row that trained is at distance 0
# and gets 1 for its own label: the file does not show that. A test of membership on one says nothing of the other.
# Output seen: probability 1 for the own label: 400 of 400 in scikit-learn, 43 in the file; off uniform by 2e-08
set -eu
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q --disable-pip-version-check --no-deps skl2onnx==1.20.0 onnx==1.23.2 onnxruntime==1.32.0 scikit-learn==1.7.2 joblib==1.6.0 cloudpickle==3.1.3 threadpoolctl==3.8.0 numpy==2.4.6 scipy==1.17.1 protobuf==7.36.2 flatbuffers==25.12.19 ml_dtypes==0.6.0 packaging==26.4 typing_extensions==4.16.0
cd "$folder"
TMPDIR="$folder" OMP_NUM_THREADS=1 venv/bin/python - <<'END'
import numpy as np
import onnxruntime
from skl2onnx import to_onnx
from sklearn.neighbors import KNeighborsClassifier

rng = np.random.default_rng(0)
x = rng.integers(0, 1000, (400, 3)).astype(np.float32)
y = (rng.random(400) < 0.5).astype(int)
model = KNeighborsClassifier(5, weights="distance").fit(x, y)
file = to_onnx(model, x[:1], options={"zipmap": False})
_, exported = onnxruntime.InferenceSession(file.SerializeToString()).run(None, {"X": x})
own, kept = (int((found[np.arange(400), y] == 1).sum()) for found in (model.predict_proba(x), exported))
off = np.abs(exported - KNeighborsClassifier(5, weights="uniform").fit(x, y).predict_proba(x)).max()
print(f"probability 1 for the own label: {own} of 400 in scikit-learn, {kept} in the file; off uniform by {off:.0e}")
assert own == 400 and kept < 100 and off < 1e-6
END
