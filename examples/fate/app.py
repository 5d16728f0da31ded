"""FATE's coordinated logistic regression on made-up people; the guest records what it receives.

    PYTHONPATH=examples/recorder python examples/fate/app.py recorded \
        --parties guest:9999 host:10000 arbiter:10001 --log_level INFO

runs FATE 2.2 (``pip install pyfate``) in three processes of this machine. The host knows age, income and
credit score, the guest the rest and the label. What they exchange in training is encrypted. In prediction the
host sends X·w in the clear.
"""

import json
import os
import sys
from pathlib import Path

import numpy as np
from bank import ACTIVE, PASSIVE, people
from vflens_recorder import Recorder

PARTIES = [
    {"name": "guest", "role": "active", "columns": ACTIVE, "classes": ["0", "1"]},
    {"name": "host", "role": "passive", "columns": PASSIVE},
]
SETTINGS = {
    "epochs": 30,
    "batch_size": None,
    "optimizer_param": {
        "method": "sgd",
        "penalty": None,
        "alpha": 0.0,
        "optimizer_params": {"lr": 1.0},
    },
    "learning_rate_param": {"method": "constant", "scheduler_params": {"factor": 1.0}},
}


class RecordedContext:
    """FATE's context ``ctx`` of the guest: ``recorder`` writes what the host sends of ``rows``."""

    def __init__(self, ctx, recorder, rows):
        self._ctx, self._recorder, self._rows = ctx, recorder, rows

    def __getattr__(self, name):
        return getattr(self._ctx, name)

    @property
    def hosts(self):
        """The hosts: they have :meth:`get` here."""
        return self

    def get(self, name):
        """What each host sent under ``name``; there is one host."""
        found = self._ctx.hosts.get(name)
        self._recorder.received("host", "embedding", whole(found[0]), self._rows, phase="predict")
        return found


def whole(tensor):
    """FATE's distributed ``tensor`` as one of torch."""
    return tensor.shardings.merge()


def run(ctx):
    """One party: train, save the model as FATE's component does, predict the training rows."""
    from fate.ml.glm.hetero import coordinated_lr as lr

    if ctx.is_on_arbiter:
        lr.CoordinatedLRModuleArbiter(early_stop="diff", tol=1e-6, **SETTINGS).fit(ctx.sub_ctx("train"))
        return
    out = Path(os.environ["RECORDED"])
    party = "guest" if ctx.is_on_guest else "host"
    module = lr.CoordinatedLRModuleGuest if ctx.is_on_guest else lr.CoordinatedLRModuleHost
    model = module(init_param={"method": "zeros", "fit_intercept": True}, **SETTINGS)
    table = read_table(ctx, out / f"{party}.csv")
    columns = whole(table.values.as_tensor()).numpy()  # in FATE's order of rows
    model.fit(ctx.sub_ctx("train"), table)
    (out / f"{party}_model.json").write_text(json.dumps(model.get_model()))
    predicting = ctx.sub_ctx("predict")
    if ctx.is_on_guest:
        recorder = Recorder(out / "guest", "fate/bank", "guest", PARTIES)
        predicting = RecordedContext(predicting, recorder, np.arange(len(columns)))
        np.savez(out / "guest_columns.npz", own=columns)
    else:
        np.savez(out / "truth.npz", x=columns)  # the host's own: no other party has it
    model.predict(predicting, table)


def read_table(ctx, file):
    """The table of a party as FATE's frame."""
    from fate.arch import dataframe

    kinds = {"label_name": "y", "label_type": "int32"} if ctx.is_on_guest else {}
    reader = dataframe.CSVReader(match_id_name="id", delimiter=",", dtype="float32", **kinds)
    return reader.to_frame(ctx, str(file))


def write_tables(out):
    """The tables of host and guest, which has the label."""
    ids, x, own, labels = people()
    labelled = [[y, *row] for y, row in zip(labels.tolist(), own.tolist(), strict=True)]
    for name, columns, rows in (("host", PASSIVE, x.tolist()), ("guest", ["y", *ACTIVE], labelled)):
        lines = [["id", *columns], *([i, *row] for i, row in zip(ids, rows, strict=True))]
        (out / f"{name}.csv").write_text("".join(",".join(map(str, line)) + "\n" for line in lines))


if __name__ == "__main__":
    from fate.arch.launchers.multiprocess_launcher import launch

    os.environ["RECORDED"] = sys.argv.pop(1)
    Path(os.environ["RECORDED"]).mkdir(parents=True)
    write_tables(Path(os.environ["RECORDED"]))
    launch(run)
