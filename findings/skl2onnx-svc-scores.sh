#!/bin/sh
# skl2onnx 1.20.0 of SVC and of SGDClassifier with hinge loss (scikit-learn 1.7.2), two classes.
# Guess: the two scores of a row are -d and d for the decision function d, so that the larger is that of the label.
# Behaviour: so it is for SGDClassifier. For SVC they are d and -d: the column of class 0 has the score of class 1. The
# label is right, and with the option raw_scores both are. Whoever reads by column takes each row for the other class.
# Output seen: rows whose larger score is that of their label: SGDClassifier 400 of 400, SVC 0 of 400
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
from sklearn.linear_model import SGDClassifier
from sklearn.svm import SVC

rng = np.random.default_rng(0)
x = rng.normal(0, 1, (400, 3)).astype(np.float32)
y = (x[:, 0] + rng.normal(0, 0.5, 400) > 0).astype(int)


def right(model):
    file = to_onnx(model.fit(x, y), x[:1], options={"zipmap": False})
    label, scores = onnxruntime.InferenceSession(file.SerializeToString()).run(None, {"X": x})
    assert (label == model.predict(x)).all()
    return int((scores.argmax(axis=1) == label).sum())


linear, kernel = right(SGDClassifier(random_state=0)), right(SVC())
print(f"rows whose larger score is that of their label: SGDClassifier {linear} of 400, SVC {kernel} of 400")
assert linear == 400 and kernel == 0
END
