"""Fills parties' configurations with random secrets, in place of missing, weak and example ones."""

import secrets
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tomlkit

from vflens.config.loading import checked
from vflens.config.reading import read_toml
from vflens.config.secrets import EXAMPLE, is_weak
from vflens.errors import ConfigError, StorageError
from vflens.names import repeated
from vflens.storage.private import write_private
from vflens.types import Role

_ALIGNED = (Role.PASSIVE, Role.ACTIVE)  # who hash the ids of their rows
_TOP = -1  # table index of a top-level key; [[peers]] count from 0


@dataclass(frozen=True, eq=False)
class _Place:
    """A place for a secret: ``key`` in a ``table`` of ``file``. Places of one ``purpose`` hold the same
    value.
    """

    file: Path
    table: int
    key: str
    purpose: tuple[str, ...]
    value: Any
    peer: str = ""

    def is_good(self) -> bool:
        """Whether the value is good."""
        return isinstance(self.value, str) and not self.value.startswith(EXAMPLE) and not is_weak(self.value)

    def __str__(self) -> str:
        return f"peers.{self.peer}.token" if self.peer else self.key


def fill(files: Sequence[Path]) -> dict[Path, list[str]]:
    """Draw the secrets that ``files`` lack; return each file's new fields and who else needs them.

    A pair of parties shares a token, data parties share the alignment key if one has it: a good one in one
    file is copied to the others. Good secrets and comments stay. Every file then has mode 600.

    Raises:
        ConfigError: a file is no party's configuration, two are of one party, two hold different good values
            of a shared secret. Then no file has changed.
        StorageError: a file cannot be written.
    """
    read = {file.resolve(): read_toml(file) for file in files}
    twice = repeated([str(settings.get("party")) for settings in read.values()])
    if twice is not None:
        raise ConfigError(
            f"two of the files configure party {twice!r}: give those of one federation, each once"
        )
    groups: dict[tuple[str, ...], list[_Place]] = defaultdict(list)
    keyed = any(map(_is_keyed, read.values()))
    for file, settings in read.items():
        for place in _places(file, settings, keyed=keyed):
            groups[place.purpose].append(place)
    written: dict[Path, dict[_Place, str]] = {file: {} for file in read}
    for group in groups.values():
        value = _shared(group)
        for place in group:
            if place.value != value:
                written[place.file][place] = value
    texts = {file: _filled(file, places) for file, places in written.items()}
    for file, text in texts.items():
        _write(file, text)
    given = {settings["party"] for settings in read.values()}
    return {
        file: [f"{p}{_needed_by(p, read[file], given)}" for p in places] for file, places in written.items()
    }


def _is_keyed(settings: Mapping[str, Any]) -> bool:
    """Whether ``settings`` have an alignment key, or say that they need one."""
    align = settings.get("align")
    return "alignment_key" in settings or (isinstance(align, dict) and align.get("mode") == "hmac")


def _places(file: Path, settings: Mapping[str, Any], *, keyed: bool) -> Iterator[_Place]:
    """Every secret that ``settings`` have or need, data parties an alignment key too if they are ``keyed``;
    the check of the settings refuses other gaps.
    """
    me, peers = str(settings.get("party")), settings.get("peers")
    needed = ["seed", "alignment_key"] if keyed and settings.get("role") in _ALIGNED else ["seed"]
    for key in [*needed, "operator_token"] if "operator_token" in settings else needed:
        purpose = (key,) if key == "alignment_key" else (key, me)
        yield _Place(file, _TOP, key, purpose, value=settings.get(key))
    for number, peer in enumerate(peers if isinstance(peers, list) else ()):
        if isinstance(peer, dict):
            other = str(peer.get("name"))
            yield _Place(
                file, number, "token", ("token", *sorted((me, other))), value=peer.get("token"), peer=other
            )


def _shared(group: Sequence[_Place]) -> str:
    """The one value of ``group``: its good one, else a drawn one."""
    good = {place.value: place for place in group if place.is_good()}
    if len(good) > 1:
        one, other = list(good.values())[:2]
        raise ConfigError(
            f"{one} in {one.file} and {other} in {other.file} must be the same and differ: "
            "empty the wrong one"
        )
    return next(iter(good), "") or secrets.token_hex(32)


def _filled(file: Path, places: Mapping[_Place, str]) -> str:
    """The text of ``file`` with the secrets of ``places``, checked; comments and form stay."""
    document = tomlkit.parse(file.read_text(encoding="utf-8-sig"))
    for place, value in places.items():
        holder: Any = document if place.table == _TOP else document["peers"]
        (holder if place.table == _TOP else holder[place.table])[place.key] = value
    checked(document.unwrap(), file)
    return tomlkit.dumps(document)


def _write(file: Path, text: str) -> None:
    try:
        write_private(file, text)
    except OSError as error:
        raise StorageError(
            f"{file} cannot be written ({error.strerror}): free space, or give a file in a folder of your own"
        ) from error


def _needed_by(place: _Place, settings: Mapping[str, Any], given: set[str]) -> str:
    """Parties that also need the secret, because their files were not ``given``."""
    if place.peer and place.peer not in given:
        return f": give the same to party {place.peer!r}, as its peers.{settings['party']}.token"
    data = [p["name"] for p in settings["peers"] if p["role"] in _ALIGNED]
    if place.key == "alignment_key" and not given.issuperset(data):
        return ": give the same to every other data party, and never to the coordinator"
    return ""
