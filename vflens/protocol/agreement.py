"""What all parties of a run agreed on, whatever the division of rows: members, training, model."""

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, ClassVar, Self, cast

import numpy as np

from vflens.errors import ConfigError, ProtocolError, StorageError
from vflens.models.family import ModelFamily
from vflens.models.settings import Training
from vflens.models.size import Size
from vflens.protocol.checks import check_exchange
from vflens.storage.files import load_arrays, save_arrays, write_whole
from vflens.storage.json_file import in_words, json_object
from vflens.storage.regular import read_text
from vflens.storage.sent_heads import check_nonce
from vflens.types import Array, ColumnInfo, Exchange, PartyInfo, Phase, Pixel, Role, Setting, Signature

_NO_COLUMNS = b'"columns": []'  # the text of no other key, and of no text: a quote in it is escaped


@contextmanager
def naming(party: PartyInfo) -> Iterator[None]:
    """Let a refusal of the columns of ``party`` name the party."""
    try:
        yield
    except ConfigError as error:
        raise ConfigError(f"party {party.name!r}: {error}") from None


class Agreement(ABC):
    """The facts that all parties of one run share.

    A party's rows are positions: at all parties the same in a vertical run, its own in a horizontal one.
    """

    run: str
    parties: tuple[PartyInfo, ...]
    training: Training
    lab: bool
    model: ModelFamily
    nonce: str  # 64 hexadecimal digits, other ones in each run; "" in a run of an earlier release

    setting: ClassVar[Setting]
    #: The shared fields of ``federation.json``; its others are facts for reports.
    AGREED: ClassVar[tuple[str, ...]]

    @property
    @abstractmethod
    def n_classes(self) -> int:
        """The number of classes, k."""

    @abstractmethod
    def rows_of(self, party: str, phase: Phase) -> Array:
        """The rows int32 (n,) of ``party`` in training or prediction."""

    @abstractmethod
    def part_size(self, party: PartyInfo) -> Size:
        """What the part of the model of ``party`` takes.

        Raises:
            ConfigError: the model does not fit the columns.
        """

    @property
    @abstractmethod
    def received_width(self) -> int:
        """Numbers per row that arrive at the top of the model.

        Raises:
            ConfigError: the model does not fit the columns, or embeddings cannot be combined.
        """

    @property
    def local_passes(self) -> int:
        """Passes over its rows that a party makes in training, at most."""
        return self.epochs

    @property
    def epochs(self) -> int:
        """Epochs of the training, unless it ends early."""
        return self.training.epochs

    @property
    @abstractmethod
    def epoch_steps(self) -> int:
        """Training steps of an epoch."""

    @property
    def step_messages(self) -> int:
        """How many messages a party numbers in a step."""
        return 1

    @property
    def steps(self) -> int:
        """Training steps, unless training ends early."""
        return self.epochs * self.epoch_steps

    @abstractmethod
    def agreed(self) -> dict[str, Any]:
        """The facts of :data:`AGREED`."""

    @abstractmethod
    def positions(self) -> dict[str, Array]:
        """Rows of the run that all parties know, by name."""

    @classmethod
    @abstractmethod
    def restored(cls, facts: Mapping[str, Any], positions: Mapping[str, Array]) -> Self:
        """That of :meth:`agreed` and :meth:`positions`.

        Raises:
            ValueError, KeyError, TypeError: they are none.
        """

    @cached_property
    def dtype(self) -> np.dtype[Any]:
        """The type of the numbers that parties exchange in training."""
        return self.model.dtype

    def check_step(self, exchange: Exchange) -> None:
        """Refuse what is no training exchange of this run, or has another epoch than its step's: transcripts
        sample by epoch.

        Raises:
            ProtocolError: naming both.
        """
        check_exchange(exchange, self.run, Phase.TRAIN)
        epoch = exchange.step // self.step_messages // self.epoch_steps
        if exchange.round != epoch:
            raise ProtocolError(
                f"step {exchange.step} claims epoch {exchange.round}: it belongs to epoch {epoch}, number it "
                "so"
            )

    @cached_property
    def digest(self) -> bytes:
        """32 bytes, equal at all parties of the run."""
        return _ended(self._hashed, (), self.positions()).tobytes()

    @cached_property
    def _hashed(self) -> blake2b:
        """The hash of the shared facts; with many members it takes milliseconds."""
        return self._begun(self.agreed())

    @cached_property
    def _written(self) -> tuple[str, list[Any]]:
        """What all parties write alike, in JSON without braces, and what :func:`_beside` gives."""
        agreed = {**self.agreed(), "nonce": self.nonce}
        beside = _beside(agreed)
        agreed["parties"] = list(_columns_once(agreed["parties"]))
        return json.dumps(agreed)[1:-1], beside

    def save(self, folder: Path, **more: Any) -> None:
        """Write ``federation.json``, with ``more`` facts for reports, and ``rows.npz``, with a digest of the
        rest, into ``folder``.
        """
        (shared, beside), positions = self._written, self.positions()
        sealed = _ended(self._hashed, beside, positions)
        text = ", ".join(filter(None, (shared, json.dumps(more)[1:-1])))
        write_whole(folder / "federation.json", f"{{{text}}}".encode())
        save_arrays(folder / "rows.npz", {**positions, "agreed": sealed})

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read the files of :meth:`save`.

        Raises:
            StorageError: the folder holds no (whole) federation, or a changed one.
        """
        with _reading(folder):
            facts, positions, found = _files(folder)
            check_nonce(facts.get("nonce", ""))
            if not np.array_equal(found, _ended(cls._begun(facts), _beside(facts), positions)):
                raise StorageError(
                    f"{folder / 'federation.json'} was changed after its run began: bring back the file as "
                    "it was, or run again"
                )
            return cls.restored(facts, positions)

    @classmethod
    def digest_in(cls, folder: Path) -> bytes:
        """The digest of what the files of :meth:`save` say now.

        Raises:
            StorageError: the folder holds no (whole) federation.
        """
        with _reading(folder):
            facts, positions, _ = _files(folder)
            return _ended(cls._begun(facts), (), positions).tobytes()

    @classmethod
    def _begun(cls, facts: Mapping[str, Any]) -> blake2b:
        """The hash of the shared ``facts`` as one list in JSON, without its end."""
        total, mark = blake2b(digest_size=32), "["
        for name in cls.AGREED:
            fact = facts[name]
            for part in _members(fact) if name == "parties" else [_in_json(fact)]:
                total.update(mark.encode() + part)
                mark = ""
            mark = ", "
        return total


def _beside(facts: Mapping[str, Any]) -> list[Any]:
    """What a seal covers beside the shared facts: the nonce and the rows of rounds, if there are any; facts
    for reports may grow.
    """
    return [facts[n] for n in ("nonce", "recorded_rows") if facts.get(n)]


def _ended(begun: blake2b, more: Sequence[Any], positions: Mapping[str, Array]) -> Array:
    """Digest uint8 (32,) of what has ``begun``, of ``more`` and of ``positions``."""
    total = begun.copy()
    total.update(b"".join(b", " + _in_json(fact) for fact in more) + b"]")
    for rows in positions.values():
        total.update(np.ascontiguousarray(rows).view(np.uint8).data)
    return np.frombuffer(total.digest(), np.uint8)


def _in_json(fact: Any) -> bytes:
    return json.dumps(fact, sort_keys=True).encode()


def _members(parties: Sequence[Mapping[str, Any]]) -> Iterator[bytes]:
    """The list of ``parties`` in JSON as all know them: without signatures, which differ each time, and each
    with its columns, which are written once as long as they stay.
    """
    before, columns, mark = None, b"", b"["
    for party in _in_full(parties):
        if party["columns"] is not before:
            before, columns = party["columns"], _in_json(party["columns"])
        bare = {name: value for name, value in party.items() if name != "signature"}
        head, tail = _in_json({**bare, "columns": []}).split(_NO_COLUMNS, 1)
        yield b"".join((mark, head, _NO_COLUMNS[:-2], columns, tail))
        mark = b", "
    yield b"]" if parties else b"[]"


@contextmanager
def _reading(folder: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StorageError(
            f"{folder} holds no federation ({in_words(error)}): give the folder of a party that took "
            "part in a run"
        ) from error


def _files(folder: Path) -> tuple[dict[str, Any], dict[str, Array], Array]:
    """The facts and the positions in ``folder``, and the digest of the agreed ones when they were written."""
    facts = json_object(read_text(folder / "federation.json"))
    positions = load_arrays(folder / "rows.npz")
    return facts, positions, positions.pop("agreed")


def parties_to_dicts(parties: Iterable[PartyInfo]) -> list[dict[str, Any]]:
    """``parties`` for JSON, columns in common as one object; not by ``asdict``, which takes half a second for
    ten parties of images.
    """
    found: list[dict[str, Any]] = []
    before: tuple[ColumnInfo, ...] = ()
    for party in parties:
        alike = bool(found) and party.columns == before
        before = party.columns
        columns = found[-1]["columns"] if alike else [vars(column) for column in before]
        found.append(_to_dict(party, columns))
    return found


def _to_dict(party: PartyInfo, columns: list[dict[str, Any]]) -> dict[str, Any]:
    facts = {**vars(party), "columns": columns}
    if party.signature is None:
        del facts["signature"]
    if not party.categories:
        del facts["categories"]
    if party.label is None:
        del facts["label"]
    else:
        facts["label"] = vars(party.label)
    return facts


def parties_from_dicts(parties: Iterable[Mapping[str, Any]]) -> tuple[PartyInfo, ...]:
    """The parties that :func:`parties_to_dicts` gave, or a file with their columns in common once."""
    before, columns = None, tuple[ColumnInfo, ...]()
    found = []
    for facts in _in_full(parties):
        if facts["columns"] is not before:
            before, columns = facts["columns"], tuple(_column(**c) for c in facts["columns"])
        found.append(_from_dict(facts, columns))
    return tuple(found)


def _columns_once(parties: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """``parties``; a client that has the columns of the one before has none here."""
    before = None
    for party in parties:
        alike = bool(before) and party["columns"] is before
        yield {name: value for name, value in party.items() if not alike or name != "columns"}
        before = party["columns"]


def _in_full(parties: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """``parties``; a client without columns has those of the one before."""
    before = None
    for party in parties:
        alike = before is not None and "columns" not in party
        before = before if alike else party["columns"]
        yield {**party, "columns": before}


def _from_dict(data: Mapping[str, Any], columns: tuple[ColumnInfo, ...]) -> PartyInfo:
    return PartyInfo(
        data["name"],
        Role(data["role"]),
        columns=columns,
        n_classes=data["n_classes"],
        label=_column(**data["label"]) if "label" in data else None,
        classes=tuple(data["classes"]),
        train_rows=data["train_rows"],
        predict_rows=data["predict_rows"],
        mask_key=data.get("mask_key", ""),
        categories=tuple(data.get("categories", ())),
        signature=Signature(*data["signature"]) if "signature" in data else None,
    )


def _column(
    name: str,
    low: float | None,
    high: float | None,
    alphabet: list[float] | None,
    pixel: list[int] | None,
) -> ColumnInfo:
    return ColumnInfo(
        name,
        low,
        high,
        alphabet=tuple(alphabet) if alphabet else None,
        pixel=cast("Pixel", tuple(pixel)) if pixel else None,
    )
