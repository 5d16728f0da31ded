"""How far a party's run has come, in ``state.json``: a restarted party must not train a model that already
answers, nor attack twice.
"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path

from vflens.errors import StateError, StorageError
from vflens.storage.files import write_whole
from vflens.storage.json_file import json_object
from vflens.storage.regular import read_text


class Stage(StrEnum):
    """The stages of a run, in their order."""

    TRAINING = "training"
    DISCLOSED = "disclosed"  # disclosures were requested: the model is final
    OPEN = "open"  # predictions are allowed
    FINISHED = "finished"  # this party has attacked; at the coordinator: all have


_NUMBERS = ("incarnation", "attacked")


class Reached:
    """What a run in ``folder`` has reached; a stage is on disk before its party acts on it.

    ``incarnation`` counts the restarts, ``attacked`` the prediction rows of the last milestone at which the
    party attacked, ``acted`` are the positions of the defences that acted before the last :meth:`save`;
    ``ended``: the coordinator has told this data party that the run ended well.
    """

    def __init__(self, folder: Path) -> None:
        self._file = folder / "state.json"
        self.stage = Stage.TRAINING
        self.incarnation = self.attacked = 0
        self.acted: list[int] = []
        self.ended = False

    @property
    def is_open(self) -> bool:
        """Whether predictions are allowed."""
        return self.stage in (Stage.OPEN, Stage.FINISHED)

    def save(self) -> None:
        """Write all of it.

        Raises:
            StorageError: it cannot be written.
        """
        self._write(self.stage)

    def advance(self, stage: Stage) -> None:
        """Advance to ``stage``, never back.

        Raises:
            StorageError: it cannot be written; the party still refuses acts of later stages.
        """
        stages = list(Stage)
        if stages.index(stage) > stages.index(self.stage):
            self._write(stage)
            self.stage = stage

    def _write(self, stage: Stage) -> None:
        numbers = {name: getattr(self, name) for name in _NUMBERS}
        write_whole(
            self._file,
            json.dumps({"stage": stage, **numbers, "acted": self.acted, "ended": self.ended}).encode(),
        )

    def restore(self) -> None:
        """Restore an earlier process's stage.

        Raises:
            StorageError: the file is unreadable.
        """
        try:
            found = json_object(read_text(self._file))
            self.stage = Stage(found["stage"])
            self.incarnation, self.attacked = (int(found[name]) for name in _NUMBERS)
            self.acted = [int(position) for position in found["acted"]]
            self.ended = bool(found["ended"])
        except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
            raise StorageError(
                f"{self._file} does not say how far the run has come ({error}): use a folder that nobody "
                "changed"
            ) from error

    def check_training(self, step: int) -> None:
        """Refuse training after its end: early stopping leaves steps that no party took.

        Raises:
            StateError: disclosures were made, or predictions opened.
        """
        if self.is_open:
            raise StateError(
                f"step {step} after the end of training: the coordinator opened predictions, go on with them"
            )
        if self.stage is Stage.DISCLOSED:
            raise StateError(
                f"step {step} after the end of training: disclosures were asked for, go on to predictions"
            )
