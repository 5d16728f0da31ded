"""What the owner of a folder can do to a log's chain after a change: write all links anew."""

from __future__ import annotations

import hashlib
from pathlib import Path

from vflens.storage.chain import LINK_BYTES, NONE, linked, start
from vflens.storage.journal import records


def link_anew(folder: Path) -> list[bytes]:
    """Write the links of the log in ``folder``, a party's, as this version does."""
    link, links = start(f"{folder.parent.name}/{folder.name}"), []
    for record in records(folder):
        link = linked(link, record.line, record.released.digest)
        links.append(link)
    (folder / "chain.bin").write_bytes(b"".join(links))
    return links


def link_as_before(folder: Path) -> list[bytes]:
    """The same as versions up to 0.1 did."""
    link, links = NONE, []
    for record in records(folder):
        link = hashlib.blake2b(link + record.line + bytes(record.payload), digest_size=LINK_BYTES).digest()
        links.append(link)
    (folder / "chain.bin").write_bytes(b"".join(links))
    return links
