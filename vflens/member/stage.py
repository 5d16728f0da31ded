"""How far a party's run has come, in ``state.json``: a restarted party must not train a model that already
answers, nor attack twice. Its restarts are counted in ``starts.json``: before its rows are aligned it has no
state.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
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


@contextmanager
def _unchanged(file: Path, what: str) -> Iterator[None]:
    """Read ``file``, which says ``what``.

    Raises:
        StorageError: it does not.
    """
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, OverflowError) as error:
        raise StorageError(
            f"{file} does not say {what} ({error}): use a folder that nobody changed"
        ) from error


class Reached:
    """What a run in ``folder`` has reached; a stage is on disk before its party acts on it.

    ``incarnation`` counts the restarts (:meth:`start_again`), ``attacked`` the prediction rows of the last
    milestone at which the party attacked, ``acted`` are the positions of the defences that acted before the
    last :meth:`save`; ``ended``: the coordinator has told this data party that the run ended well.
    """

    def __init__(self, folder: Path) -> None:
        self._file, self._starts = folder / "state.json", folder / "starts.json"
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
        reached = {"stage": stage, "attacked": self.attacked, "acted": self.acted, "ended": self.ended}
        write_whole(self._file, json.dumps(reached).encode())

    def start_again(self) -> None:
        """Count another restart, on disk before a peer hears of it.

        Raises:
            StorageError: the file is unreadable, or cannot be written.
        """
        self.incarnation = self._restarts() + 1
        write_whole(self._starts, json.dumps({"restarts": self.incarnation}).encode())

    def _restarts(self) -> int:
        """How often earlier processes were started again."""
        if not self._starts.exists():
            return 0
        with _unchanged(self._starts, "how often the party was started"):
            return int(json_object(read_text(self._starts))["restarts"])

    def restore(self) -> None:
        """Restore an earlier process's stage.

        Raises:
            StorageError: the file is unreadable.
        """
        with _unchanged(self._file, "how far the run has come"):
            found = json_object(read_text(self._file))
            self.stage, self.attacked = Stage(found["stage"]), int(found["attacked"])
            self.acted = [int(position) for position in found["acted"]]
            self.ended = bool(found["ended"])

    def check_training(self, step: int) -> None:
        """Refuse training after its end: early stopping leaves steps that no party took.

        Raises:
            StateError: disclosures were made, or predictions opened.
        """
        if self.stage is Stage.TRAINING:
            return
        if self.is_open:
            raise StateError(
                f"step {step} after the end of training: the coordinator opened predictions, go on with them"
            )
        raise StateError(
            f"step {step} after the end of training: disclosures were asked for, go on to predictions"
        )
