"""Record what one party of another framework receives, as a folder that VFLens reads.

Copy this file beside your program: it needs NumPy only. Where the party ``alice`` receives:

    recorder = Recorder("runs/mine/alice", "mine", "alice", [
        {"name": "alice", "role": "passive", "columns": ["age", "income"]},
        {"name": "bob", "role": "active", "columns": ["balance"], "classes": ["no", "yes"]},
    ])
    recorder.received("bob", "gradient", gradient, rows, phase="train", epoch=epoch)

``vflens ledger``, ``vflens verify-log`` and ``vflens attack`` read ``runs/mine/alice``. Keep it private.
"""

import hashlib
import json
from collections import Counter
from pathlib import Path

import numpy as np

POINTS = ("embedding", "gradient", "scores", "parameters")
PHASES = ("train", "predict", "disclose")


class Recorder:
    """The new folder of ``party`` in ``run``. Of its ``parties`` the "active" one has the labels."""

    def __init__(self, folder, run, party, parties):
        self._facts = {"run": run, "party": party}
        self._facts["role"] = next(p["role"] for p in parties if p["name"] == party)
        self._facts["parties"] = [
            {
                **{"name": p["name"], "role": p["role"], "classes": list(p.get("classes", ()))},
                **{"n_classes": len(p.get("classes", ())), "columns": [{"name": c} for c in p["columns"]]},
            }
            for p in parties
        ]
        self._log = Path(folder) / "transcript"
        Path(folder).mkdir(mode=0o700, parents=True)  # an earlier recording is not overwritten
        self._log.mkdir()
        (Path(folder) / "federation.json").write_text(json.dumps(self._facts))
        self._end, self._link, self._steps = 0, bytes(32), Counter()

    def received(self, sender, point, values, rows, *, phase="train", epoch=0):
        """Write that ``values`` (n, w), or a dict of such arrays, came from ``sender`` in ``phase``.

        ``point``, one of POINTS, says what they are. ``rows`` (n,) are their rows, numbered from 0 as every
        party numbers them; () for parameters. ``phase`` is one of PHASES.
        """
        if point not in POINTS or phase not in PHASES:
            raise ValueError(f"{point!r} in phase {phase!r}: name one of {POINTS}, and one of {PHASES}")
        rows = np.asarray(rows, "<i4")
        tensors = values if isinstance(values, dict) else {point: values}
        arrays = {"": rows, **{name: _numbers(array) for name, array in tensors.items()}}
        if any(len(rows) not in (0, len(array)) for array in arrays.values()):
            raise ValueError(f"{point} of {sender}: {len(rows)} rows, {[a.shape for a in arrays.values()]}")
        described, payload = [], b""
        for name, array in arrays.items():
            place = {"dtype": array.dtype.str, "shape": array.shape, "offset": self._end + len(payload)}
            described.append({"name": name, **place})
            payload += array.tobytes()
        line = {"sender": sender, "run": self._facts["run"], "phase": phase, "round": int(epoch)}
        line |= {"step": self._steps[sender, point, phase], "point": point, "rows": described[0]}
        line |= {"tensors": described[1:], "nbytes": len(payload), "withheld": False}
        self._steps[sender, point, phase] += 1
        self._append(json.dumps(line).encode() + b"\n", payload)

    def _append(self, line, payload):
        """The payload first, so that no line is without its bytes; the link makes later changes visible."""
        self._link = hashlib.blake2b(self._link + line + payload, digest_size=32).digest()
        for name, data in (("payload.bin", payload), ("index.jsonl", line), ("chain.bin", self._link)):
            with (self._log / name).open("ab") as file:
                file.write(data)
        self._end += len(payload)


def _numbers(values):
    """An array of NumPy or a tensor of torch, as numbers that a transcript may hold."""
    array = np.asarray(values.detach().cpu() if hasattr(values, "detach") else values)
    return np.ascontiguousarray(array, "<f4" if array.dtype == np.float32 else "<f8")
