"""Record what the server of a Flower app sends and receives in training, for ``vflens import-flower``.

Copy this file beside your app: it needs NumPy only. In the ServerApp, wrap the grid:

    grid = Recorder(grid, "recorded")

The folder then holds ``messages.jsonl``, one line for each message, and the arrays of message N in ``N.npz``.
Keep it private: it holds every client's parameters.
"""

import json
from pathlib import Path

import numpy as np


class Recorder:
    """A grid that passes everything on to ``grid``, and writes training messages into ``folder``.

    Every call that sends training messages begins a new round.
    """

    def __init__(self, grid, folder):
        self._grid, self._folder = grid, Path(folder)
        self._folder.mkdir(mode=0o700, parents=True)  # an earlier recording is not overwritten
        self._round = self._files = 0
        self._newest = None, ""  # the arrays written last, and their file

    def __getattr__(self, name):
        return getattr(self._grid, name)

    def send_and_receive(self, messages, **options):
        """As of the grid."""
        return self._received(self._grid.send_and_receive(self._sent(messages), **options))

    def push_messages(self, messages):
        """As of the grid."""
        return self._grid.push_messages(self._sent(messages))

    def pull_messages(self, message_ids):
        """As of the grid."""
        return self._received(self._grid.pull_messages(message_ids))

    def _sent(self, messages):
        messages = list(messages)
        self._round += any(map(_trains, messages))
        for message in messages:
            self._record(message, "sent", message.metadata.dst_node_id)
        return messages

    def _received(self, messages):
        messages = list(messages)
        for message in messages:
            self._record(message, "received", message.metadata.src_node_id)
        return messages

    def _record(self, message, direction, node):
        if not _trains(message):
            return
        line = {"round": self._round, "node": str(node), "direction": direction}
        if message.has_error():
            line["error"] = str(message.error.reason)
        else:
            arrays = {n: a for record in message.content.array_records.values() for n, a in record.items()}
            metrics = {n: v for record in message.content.metric_records.values() for n, v in record.items()}
            line |= {"file": self._written(arrays), "names": list(arrays), "metrics": metrics}
        with (self._folder / "messages.jsonl").open("a") as file:
            file.write(json.dumps(line) + "\n")

    def _written(self, arrays):
        """The file of ``arrays``: that of the message before, where all clients are sent the same."""
        values = list(arrays.values())
        same, file = self._newest
        if same is None or list(map(id, same)) != list(map(id, values)):
            self._files += 1
            file = f"{self._files}.npz"
            np.savez(self._folder / file, *(value.numpy() for value in values))
            self._newest = values, file
        return file


def _trains(message):
    return message.metadata.message_type.split(".")[0] == "train"
