"""The stage of a party's run, in ``state.json``: a restarted party must not train a model that already
answers.
"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path

from vflens.errors import StateError, StorageError
from vflens.storage.files import write_whole
from vflens.storage.json_file import json_object


class Stage(StrEnum):
    """The stages of a run, in their order."""

    TRAINING = "training"
    DISCLOSED = "disclosed"  # disclosures were requested: the model is final
    OPEN = "open"  # predictions are allowed


class Reached:
    """The stage that a run in ``folder`` has reached; each is on disk before its party acts on it."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / "state.json"
        self.stage = Stage.TRAINING

    def save(self) -> None:
        """Write the stage.

        Raises:
            StorageError: it cannot be written.
        """
        write_whole(self._file, json.dumps({"stage": self.stage}).encode())

    def advance(self, stage: Stage) -> None:
        """Advance to ``stage``, never back.

        Raises:
            StorageError: it cannot be written; the party still refuses acts of later stages.
        """
        stages = list(Stage)
        if stages.index(stage) > stages.index(self.stage):
            write_whole(self._file, json.dumps({"stage": stage}).encode())
            self.stage = stage

    def restore(self) -> None:
        """Restore an earlier process's stage.

        Raises:
            StorageError: the file is unreadable.
        """
        try:
            self.stage = Stage(json_object(self._file.read_text(encoding="utf-8"))["stage"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise StorageError(
                f"{self._file} does not say how far the run has come ({error}): use a folder that nobody "
                "changed"
            ) from error

    def check_training(self, step: int) -> None:
        """Refuse training after its end: early stopping leaves steps that no party took.

        Raises:
            StateError: disclosures were made, or predictions opened.
        """
        if self.stage is Stage.OPEN:
            raise StateError(
                f"step {step} after the end of training: the coordinator opened predictions, go on with them"
            )
        if self.stage is Stage.DISCLOSED:
            raise StateError(
                f"step {step} after the end of training: disclosures were asked for, go on to predictions"
            )
