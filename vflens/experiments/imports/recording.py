"""The messages that ``FlowerGrid`` and ``NVFlareFilter`` of the recorder wrote."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from vflens.errors import DataError
from vflens.storage.files import UNREADABLE, read_arrays
from vflens.storage.json_file import in_words
from vflens.storage.regular import read_text
from vflens.types import Array, sealed


@dataclass(frozen=True, eq=False)
class Message:
    """A line of a recording.

    ``arrays`` are in the model's order, None of a reply that failed; a ``difference`` is what training added.
    ``metrics`` crossed beside them; a mean weighs a reply by the one called ``weighted_by``, "" if by its
    rows. ``trains``: it is no evaluation or query.
    """

    round: int
    node: str
    received: bool
    trains: bool
    arrays: Sequence[Array] | None
    difference: bool
    metrics: Mapping[str, Any]
    weighted_by: str

    @property
    def tensors(self) -> dict[str, Array]:
        """The metrics as arrays: a number or a list of them float64, a text its bytes."""
        return {name: sealed(_array(value)) for name, value in self.metrics.items()}


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
            f"{recording} holds no recording of a server ({in_words(error)}): give the folder of the recorder"
        ) from error
    numbered = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if not numbered:
        raise DataError(f"{file} holds no message: record an app that trains")
    return [_message(recording, number, line) for number, line in numbered]


def _message(recording: Path, number: int, line: str) -> Message:
    try:
        facts = json.loads(line)
        return Message(
            int(facts["round"]),
            str(facts["node"]),
            received={"sent": False, "received": True}[facts["direction"]],
            trains=facts.get("type", "train") == "train",
            arrays=_arrays(recording, facts),
            difference=bool(facts.get("difference", False)),
            metrics=dict(facts.get("metrics", {})),
            weighted_by=str(facts.get("weighted_by", "")),
        )
    except (*UNREADABLE, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{recording / 'messages.jsonl'}, line {number}, cannot be read ({in_words(error)}): record anew"
        ) from error


def _arrays(recording: Path, facts: Mapping[str, Any]) -> list[Array] | None:
    """Those of a message.

    Raises:
        one of UNREADABLE, or KeyError: the file is damaged, or holds no numbers.
    """
    if "file" not in facts:
        return None
    kept = read_arrays(recording / Path(str(facts["file"])).name)  # the recording's own folder alone
    found = [kept[f"arr_{i}"] for i in range(len(kept))]
    if any(array.dtype.kind not in "biuf" for array in found):
        raise ValueError(f"{facts['file']} holds something else than real numbers")
    return found


def _array(value: Any) -> Array:
    """A number, or a list of them, float64; anything else the bytes of its text."""
    numbers = value if isinstance(value, list) else [value]
    if all(isinstance(number, int | float) for number in numbers):
        return np.array(value, float)
    return np.frombuffer(str(value).encode(), np.uint8)
