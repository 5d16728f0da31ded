"""The messages that ``examples/flower/vflens_recorder.py`` wrote."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from vflens.errors import DataError
from vflens.storage.files import UNREADABLE, read_arrays
from vflens.storage.json_file import in_words
from vflens.storage.regular import read_text
from vflens.types import Array


@dataclass(frozen=True, eq=False)
class Message:
    """A line of a recording, with its arrays in the model's order; None of a reply that failed. ``rows``: a
    reply's weight in the average, 0 without one.
    """

    round: int
    node: str
    direction: str
    arrays: Sequence[Array] | None
    rows: float


def read_messages(recording: Path) -> list[Message]:
    """The messages of ``recording``, in their order.

    Raises:
        DataError: it cannot be read.
    """
    file = recording / "messages.jsonl"
    try:
        lines = read_text(file).splitlines()
    except (OSError, ValueError) as error:
        raise DataError(
            f"{recording} holds no recording ({in_words(error)}): give the folder of the recorder"
        ) from error
    found = [_message(recording, number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise DataError(f"{file} holds no message: record an app that trains")
    return found


def _message(recording: Path, number: int, line: str) -> Message:
    try:
        facts = json.loads(line)
        arrays: list[Array] | None = None
        if "file" in facts:
            name = Path(str(facts["file"])).name  # the recording's own folder alone
            kept = read_arrays(recording / name)
            arrays = [kept[f"arr_{i}"] for i in range(len(kept))]
        metrics = facts.get("metrics", {})  # in Flower's older API the name has an underscore
        rows = float(metrics.get("num-examples", metrics.get("num_examples", 0)))
        return Message(int(facts["round"]), str(facts["node"]), str(facts["direction"]), arrays, rows=rows)
    except (*UNREADABLE, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{recording / 'messages.jsonl'}, line {number}, cannot be read ({in_words(error)}): record anew"
        ) from error
