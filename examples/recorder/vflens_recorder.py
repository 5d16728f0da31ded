"""Record what a party of another framework sends and receives, as a folder that VFLens reads.

Copy this file beside your program: it needs NumPy only. It has one recorder for each place of the program:

    Recorder        where a party of a vertical federation receives: FATE, SecretFlow or a program of your own
    FlowerGrid      in place of the grid of a Flower server, by the Message API or the Strategy API
    NVFlareFilter   a filter of a server of NVFlare, for the data and the results of its tasks

Keep the folder private: it holds what others sent.
"""

import hashlib
import json
import threading
from collections import Counter
from pathlib import Path

import numpy as np

try:
    from nvflare.apis.dxo import from_shareable
    from nvflare.apis.filter import Filter
except ImportError:
    Filter = object

POINTS = ("embedding", "gradient", "scores", "parameters")
PHASES = ("train", "predict", "disclose")


class Recorder:
    """The new folder of ``party`` in ``run``. Of its ``parties`` the "active" one has the labels.

    Where the party ``alice`` receives:

        recorder = Recorder("runs/mine/alice", "mine", "alice", [
            {"name": "alice", "role": "passive", "columns": ["age", "income"]},
            {"name": "bob", "role": "active", "columns": ["balance"], "classes": ["no", "yes"]},
        ])
        recorder.received("bob", "gradient", gradient, rows, phase="train", epoch=epoch)

    ``vflens ledger``, ``vflens verify-log`` and ``vflens attack`` read ``runs/mine/alice``.
    """

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


class Messages:
    """The new folder of a server, which ``vflens import`` reads: ``messages.jsonl`` has one line for each
    message, and ``N.npz`` the arrays that a message was the first to have.
    """

    def __init__(self, folder):
        self._folder = Path(folder)
        self._folder.mkdir(mode=0o700, parents=True)  # an earlier recording is not overwritten
        self._files, self._lock = {}, threading.Lock()

    def write(self, line, arrays, cleartext):
        """Write a message: the facts of ``line``, ``arrays`` by name, None if it failed, and what crossed
        beside them.
        """
        with self._lock:
            if arrays is not None:
                line |= {"file": self._file(arrays), "names": list(map(str, arrays))}
            line["metrics"] = {str(name): _plain(value) for name, value in cleartext.items()}
            with (self._folder / "messages.jsonl").open("a") as file:
                file.write(json.dumps(line) + "\n")

    def _file(self, arrays):
        """That of an earlier message, where it had the same."""
        values = [np.asarray(v.numpy() if hasattr(v, "numpy") else v) for v in arrays.values()]
        same = hashlib.sha256()
        for array in values:
            same.update(f"{array.dtype} {array.shape} ".encode() + array.tobytes())
        file = self._files.setdefault(same.digest(), f"{len(self._files) + 1}.npz")
        if not (self._folder / file).exists():
            np.savez(self._folder / file, *values)
        return file


def _plain(value):
    """A number, a text or a list of them as JSON; of anything else its representation."""
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, bool | int | float | str) else repr(value)


class FlowerGrid:
    """A grid that passes everything on to ``grid``, and writes all messages into ``folder``.

    In the ServerApp ``grid = FlowerGrid(grid, "recorded")``. Parameters to train on begin a new round once a
    client has answered, unless they are of the same group as those before, or when a client is asked again.
    """

    def __init__(self, grid, folder):
        self._grid, self._messages, self._lock = grid, Messages(folder), threading.Lock()
        self._round, self._group, self._asked, self._answered = 0, "", set(), False

    def __getattr__(self, name):
        return getattr(self._grid, name)

    def send_and_receive(self, messages, **options):
        """Record what goes out, and the answers."""
        return self._received(self._grid.send_and_receive(self._sent(messages), **options))

    def push_messages(self, messages):
        """Record what goes out."""
        return self._grid.push_messages(self._sent(messages))

    def pull_messages(self, message_ids):
        """Record the answers."""
        return self._received(self._grid.pull_messages(message_ids))

    def _sent(self, messages):
        messages = list(messages)
        training = [m.metadata for m in messages if _kind(m) == "train" and _arrays(m)]
        with self._lock:  # the Strategy API may send to each client from a thread of its own
            if training:
                group = str(getattr(training[0], "group_id", ""))
                self._begin({m.dst_node_id for m in training}, group)
            for message in messages:
                self._record(message, "sent", message.metadata.dst_node_id)
        return messages

    def _begin(self, nodes, group):
        answered = self._answered and not (group and group == self._group)
        if answered or nodes & self._asked or not self._round:
            self._round, self._asked, self._answered = self._round + 1, set(), False
        self._asked, self._group = self._asked | nodes, group

    def _received(self, messages):
        messages = list(messages)
        with self._lock:
            for message in messages:
                self._answered |= _kind(message) == "train"
                self._record(message, "received", message.metadata.src_node_id)
        return messages

    def _record(self, message, direction, node):
        line = {"round": self._round, "node": str(node), "direction": direction, "type": _kind(message)}
        if message.has_error():
            reason = str(message.error.reason).strip().splitlines() or [""]
            self._messages.write({**line, "error": reason[-1]}, None, {})
            return
        cleartext = {}
        for record, values in _beside(message):
            if record.endswith(".status"):  # of the Strategy API, where 0 is success
                if values["code"]:
                    self._messages.write({**line, "error": str(values["message"])}, None, {})
                    return
                continue
            cleartext |= {n if n not in cleartext else f"{record}.{n}": v for n, v in values.items()}
        self._messages.write(line, _arrays(message), cleartext)


def _beside(message):
    """The records beside the arrays of a message, and their names: metrics first."""
    records = (getattr(message.content, kind, {}) for kind in ("metric_records", "config_records"))
    return [item for found in records for item in found.items()]


def _kind(message):
    return message.metadata.message_type.split(".")[0]


def _arrays(message):
    """The arrays of a message by name, those of all its records."""
    if message.has_error():
        return {}
    return {n: a for record in message.content.array_records.values() for n, a in record.items()}


class NVFlareFilter(Filter):
    """A filter that lets everything pass, and writes all messages into ``folder``.

    Give one and the same folder to both chains of the server, as the last filter of each:

        job.to_server(NVFlareFilter("recorded", "sent"), filter_type=FilterType.TASK_DATA, tasks=["train"])
        job.to_server(NVFlareFilter("recorded", "received"), filter_type=FilterType.TASK_RESULT,
                      tasks=["train"])
    """

    _OPEN, _OPENING = {}, threading.Lock()  # the two filters of a folder write into one recording

    def __init__(self, folder, direction):
        super().__init__()
        self.folder, self.direction = folder, direction

    def process(self, shareable, fl_ctx):
        """Write ``shareable``, and return it as it is."""
        with self._OPENING:
            if self.folder not in self._OPEN:
                self._OPEN[self.folder] = Messages(self.folder)
        line = {"round": shareable.get_header("current_round", 0), "direction": self.direction}
        line["node"] = fl_ctx.get_peer_context().get_identity_name()
        line["type"] = str(shareable.get_header("__task_name__"))
        code = shareable.get_return_code()
        if code != "OK":
            self._OPEN[self.folder].write({**line, "error": str(code)}, None, {})
            return shareable
        dxo = from_shareable(shareable)
        line["weighted_by"], line["difference"] = "NUM_STEPS_CURRENT_ROUND", dxo.data_kind == "WEIGHT_DIFF"
        holds_arrays = dxo.data_kind in ("WEIGHTS", "WEIGHT_DIFF")
        cleartext = {**dxo.meta, **dxo.meta.get("initial_metrics", {}), **({} if holds_arrays else dxo.data)}
        cleartext.pop("initial_metrics", None)
        self._OPEN[self.folder].write(line, dict(dxo.data) if holds_arrays else {}, cleartext)
        return shareable
