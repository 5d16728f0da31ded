"""Export scikit-learn's models as people do, a label beside the probabilities: ``export_onnx.py FOLDER``.

``truth.npz`` holds rows ``NAME:x`` and their probabilities ``NAME:p``. It runs in an environment of its own:
scikit-learn==1.9.1 skl2onnx==1.20.0 onnx==1.23.2.
"""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from skl2onnx import to_onnx  # type: ignore[import-not-found,unused-ignore]
from sklearn.linear_model import LogisticRegression
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    rng = np.random.default_rng(20261128)
    x = (rng.normal(0, 3, (60, 4)) + 1).astype(np.float32)
    several, two = (x @ rng.normal(size=(4, 3))).argmax(axis=1), (x[:, 0] > 1).astype(int)
    scaled = make_pipeline(StandardScaler(), LogisticRegression())
    models = {
        "logistic": (LogisticRegression(), two),
        "softmax": (LogisticRegression(), several),
        "scaled": (scaled, several),
        "texts": (LogisticRegression(), np.array(["a", "b", "c"])[several]),
        "network_two": (MLPClassifier((3,), max_iter=50), two),
        "network": (MLPClassifier((3,), max_iter=50), several),
        "one_versus_rest": (OneVsRestClassifier(LogisticRegression()), several),
    }
    truth: dict[str, Any] = {}
    for name, (model, labels) in models.items():
        model.fit(x, labels)
        (folder / f"{name}.onnx").write_bytes(to_onnx(model, x[:1]).SerializeToString())
        truth |= {f"{name}:x": x, f"{name}:p": model.predict_proba(x)}
    np.savez_compressed(folder / "truth.npz", **truth)


if __name__ == "__main__":
    main()
