"""How far a party's run has come, in ``state.json``: a restarted party must not train a model that already
answers, nor attack twice. Its restarts are counted in ``starts.json``: before its rows are aligned it has no
state.
"""

import json
import time
from collections.abc import Callable, Collection
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import BaseModel, Field

from vflens.errors import StateError, StorageError
from vflens.member.recovery import NO_CHECKPOINT
from vflens.names import HEX_64_OR_NONE
from vflens.plugins.chain import Acted
from vflens.storage.files import write_whole
from vflens.storage.heads import Heads, LogHead, to_json
from vflens.storage.json_file import in_words, read_as

#: What tells the seconds of training and of predictions.
CLOCK: ContextVar[Callable[[], float]] = ContextVar("CLOCK", default=time.perf_counter)

T = TypeVar("T", bound=BaseModel)


class Stage(StrEnum):
    """The stages of a run, in their order."""

    TRAINING = "training"
    DISCLOSED = "disclosed"  # disclosures were requested: the model is final
    OPEN = "open"  # predictions are allowed
    FINISHED = "finished"  # this party has attacked; at the coordinator: all have


_Count = Annotated[int, Field(ge=0, lt=1 << 63)]


class _State(BaseModel):
    """``state.json``, of this version: a run of another one is not taken up."""

    stage: Stage
    attacked: _Count
    acted: list[_Count]
    acted_on_wire: list[_Count]
    ended: bool
    checkpoints: tuple[Annotated[str, Field(pattern=HEX_64_OR_NONE)], ...]
    heads: dict[str, LogHead]


class _Starts(BaseModel):
    """``starts.json``."""

    restarts: _Count


def _read(kind: type[T], file: Path, what: str) -> T:
    """The ``kind`` in ``file``, which says ``what``."""
    try:
        return read_as(kind, file)
    except (OSError, ValueError) as error:
        raise StorageError(
            f"{file} does not say {what} ({in_words(error)}): use a folder that nobody changed, and the "
            "version of vflens that began its run"
        ) from error


class Reached:
    """What a run in ``folder`` has reached; a stage is on disk before its party acts on it.

    ``incarnation`` counts the restarts (:meth:`start_again`), ``attacked`` the prediction rows of the last
    milestone at which the party attacked, ``acted`` are the defences that acted before the last :meth:`save`;
    ``ended``: the coordinator has told this data party that the run ended well.
    ``checkpoints`` are the digests of those that may be on disk, and ``heads`` gives those of the logs: a
    folder that fits them no more was changed.
    """

    def __init__(self, folder: Path, heads: Callable[[], Heads] = dict) -> None:
        self.heads = heads
        self._file, self._starts = folder / "state.json", folder / "starts.json"
        self.stage = Stage.TRAINING
        self.incarnation = self.attacked = 0
        self.acted = Acted()
        self.ended = False
        self.checkpoints: Collection[str] = (NO_CHECKPOINT,)

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

    def vouch(self, checkpoints: Collection[str]) -> None:
        """Write the digests of the ``checkpoints`` that may be on disk from now on.

        Raises:
            StorageError: they cannot be written.
        """
        self.checkpoints = checkpoints
        self.save()

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
        reached = {
            "stage": stage,
            "attacked": self.attacked,
            "acted": self.acted.anywhere,
            "acted_on_wire": self.acted.on_wire,
            "ended": self.ended,
            "checkpoints": self.checkpoints,
            "heads": to_json(self.heads()),
        }
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
        return _read(_Starts, self._starts, "how often the party was started").restarts

    def restore(self) -> None:
        """Restore an earlier process's stage.

        Raises:
            StorageError: the file is unreadable.
        """
        found = _read(_State, self._file, "how far the run has come")
        self.stage, self.attacked = found.stage, found.attacked
        self.acted = Acted(found.acted, found.acted_on_wire)
        self.ended, self.checkpoints = found.ended, found.checkpoints

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
