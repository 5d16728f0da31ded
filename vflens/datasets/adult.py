"""Adult (census income), 48,842 rows, 13 features, 2 classes. Needs VFLENS_DATA.

Source: UCI 2, ``adult.data`` and ``adult.test``, CC BY 4.0; the given split is kept. Of the 14 columns
``fnlwgt`` is left out: it weighs the survey's sample and does not describe the person. The papers use 13
columns without naming the omitted one.
"""

from __future__ import annotations

import numpy as np

from vflens.datasets import _local
from vflens.datasets._build import checked_table, encoded, given_split
from vflens.plugins.dataset import Dataset
from vflens.tables.table import Table

TRAIN_FILE = "adult.data.gz", "c7a2b4716a97f930123e0baf879188d701e798172631a654fc703d4b082907f3"
PREDICT_FILE = "adult.test.gz", "8a2c1bffa6e7ce5abfa43881ae5e87c4311ebc2b3cd526c9c40a43f19f06f799"
COUNTS = {"<=50K": 37155, ">50K": 11687}
COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)


class Adult(Dataset):
    """See the module."""

    @_local.kept
    def load(self) -> Table:
        """All rows, the training rows first."""
        train = _local.text_columns(_local.read(*TRAIN_FILE), COLUMNS)
        _remark, _, body = _local.read(*PREDICT_FILE).partition(b"\n")
        predict = _local.text_columns(body, COLUMNS)
        raw = {name: np.concatenate([train[name], predict[name]]) for name in COLUMNS}
        classes = np.char.rstrip(raw.pop("income"), ".")  # labels of the second file end with a dot
        del raw["fnlwgt"]
        split = given_split(len(train["age"]), len(predict["age"]))
        return checked_table("adult", *encoded(raw), classes, COUNTS, split=split)
