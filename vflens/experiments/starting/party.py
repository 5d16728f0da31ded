"""A party's configuration to begin with: its peers, TLS and its table, without secrets and grants."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex

import tomlkit

from vflens.config.loading import CONFIGS, checked
from vflens.config.party import DataPartyConfig
from vflens.errors import ConfigError
from vflens.names import one_of
from vflens.storage.private import write_private
from vflens.types import Document, Role
from vflens.wire.channel import check_address

_PEER = re.compile(r"(?P<role>[a-z]+)(?::(?P<name>[^=]+))?=(?P<address>.+)")
#: What a leader between two organisations mostly wants; a target scores 50 rows or more.
_WANTED: Mapping[str, Document] = {Role.COORDINATOR: {"predict_share": 0.4, "after": "stop"}}


@dataclass(frozen=True, kw_only=True)
class NewParty:
    """A party as its operator describes it.

    ``peers`` are texts "ROLE=ADDRESS" or "ROLE:NAME=ADDRESS"; without a name a peer is named as its role.
    ``table`` is relative to the file that is written. ``label`` and ``classes`` are those of a party with
    labels; ``bounds`` "LOW,HIGH" those of a numeric label, "" of classes.
    """

    role: str
    name: str
    run: str
    address: str
    peers: Sequence[str]
    table: str | None = None
    id_column: str | None = None
    label: str | None = None
    classes: Sequence[str] = ()
    bounds: str = ""

    def settings(self) -> Document:
        """Its configuration, without secrets.

        Raises:
            ConfigError: a role, an address or a peer that is none, or rows without a table.
        """
        if self.role not in set(CONFIGS):
            raise ConfigError(f"role {self.role!r}: a party is {one_of(CONFIGS)}")
        check_address(self.address, insecure=True)
        files = {file: f"{self.name}/tls/{file}.pem" for file in ("certificate", "key")}
        return {
            "party": self.name,
            "role": self.role,
            "run": self.run,
            "address": self.address,
            "out": self.name,
            "seed": "",
            **_WANTED.get(self.role, {}),
            "tls": {**files, "trust": f"{self.name}/tls/trust"},
            "peers": list(self._peers()),
            **self._data(),
        }

    def _peers(self) -> Iterator[Document]:
        for peer in self.peers:
            found = _PEER.fullmatch(peer)
            if found is None or (role := found["role"]) not in set(CONFIGS):
                raise ConfigError(
                    f"--peer {peer!r}: give ROLE=ADDRESS or ROLE:NAME=ADDRESS, a role is {one_of(CONFIGS)}"
                )
            check_address(address := found["address"], insecure=True)
            yield {"name": found["name"] or role, "role": role, "address": address, "token": ""}

    def _data(self) -> Document:
        if not self.table and issubclass(CONFIGS[Role(self.role)], DataPartyConfig):
            raise ConfigError(f"--table is missing: name the CSV or parquet file of the {self.role} party")
        given = {"file": self.table, "id_column": self.id_column, "label_column": self.label}
        data = {key: value for key, value in given.items() if value}
        classes = {"classes": list(self.classes)} if self.classes else {}
        return {"data": {**data, **classes, **self._number()}} if data else {}

    def _number(self) -> Document:
        """The keys of a numeric label; {} of classes."""
        if not self.bounds:
            return {}
        if not self.label:
            raise ConfigError(f"--label-bounds {self.bounds} without --label-column: name the label's column")
        try:
            low, high = map(float, self.bounds.split(","))
        except ValueError:
            raise ConfigError(
                f"--label-bounds {self.bounds!r}: give the least and largest number, such as 0,400"
            ) from None
        return {"label_kind": "number", "bounds": {self.label: [low, high]}}


def write_party(party: NewParty, file: Path) -> None:
    """Write ``party``'s configuration into ``file``, for its owner alone. Secrets are still empty there.

    Raises:
        ConfigError: ``file`` is there already, or a value is wrong; then nothing is written.
        OSError: it cannot be written.
    """
    there = ConfigError(f"{file} is there already: choose another file, or move it away")
    if file.exists():
        raise there
    settings = party.settings()
    # Drawn for the check alone.
    peers = [{**peer, "token": token_hex(32)} for peer in settings["peers"]]
    checked({**settings, "peers": peers, "seed": token_hex(32)}, file)
    try:
        write_private(file, _text(settings), new=True)
    except FileExistsError:  # another command wrote it meanwhile
        raise there from None


def _text(settings: Document) -> str:
    """``settings`` as TOML, with what its owner should know."""
    lines = [
        f"# `vflens serve {settings['role']} --config` and this file start it. Paths are relative to it.",
        tomlkit.dumps(settings),
        "# It grants nothing: the page on configuration has the fields of [[disclose]].\n"
        if "data" in settings
        else "",
    ]
    try:
        "".join(lines).encode()
    except UnicodeEncodeError as error:
        raise ConfigError(
            f"{error.object[error.start : error.end]!r} is no text: give names in UTF-8"
        ) from None
    return "\n".join(lines)
