"""The made-up people of ``examples/bank_*.csv`` whom both files have, for the apps of FATE and SecretFlow."""

import csv
from pathlib import Path

import numpy as np

EXAMPLES = Path(__file__).resolve().parents[1]
#: The columns of the party without labels, and of the one with them.
PASSIVE, ACTIVE = ("age", "income", "credit_score"), ("balance", "contacts", "loan")


def people():
    """Their ids (N,), the columns (N, 3) of either party in [0, 1], and the labels (N,), 1: subscribed."""
    passive, active = (_rows(f"bank_{party}.csv") for party in ("passive", "active"))
    ids = sorted(passive.keys() & active.keys())
    x, own = (
        _scaled([[float(table[i][c]) for c in columns] for i in ids])
        for table, columns in ((passive, PASSIVE), (active, ACTIVE))
    )
    return ids, x, own, np.array([int(active[i]["subscribed"] == "yes") for i in ids])


def _rows(name):
    with (EXAMPLES / name).open(encoding="utf-8") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def _scaled(values):
    x = np.array(values)
    return (x - x.min(axis=0)) / (x.max(axis=0) - x.min(axis=0))
