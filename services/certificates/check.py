"""A party's certificates, tried on its peers."""

from pathlib import Path

from vflens.config import PartyConfig
from vflens.errors import AccessError
from vflens.services.certificates.owner import configured
from vflens.services.identity import check_trust, counterpart
from vflens.types import Document, Role


def check(file: Path) -> list[Document]:
    """Try the certificates of a party's configuration on every peer: accepted, absent, or why not.

    Raises:
        ConfigError: the party's own certificate, key or trust cannot be used.
    """
    config, _ = configured(file)
    check_trust(config)
    return [
        {"peer": peer.name, "address": peer.address, **_tried(peer.name, peer.role, peer.address, config)}
        for peer in config.peers
    ]


def _tried(name: str, role: Role, address: str, config: PartyConfig) -> Document:
    tls = counterpart(name, role, config)
    try:
        return {"state": "accepted" if tls is None or tls.reaches(address) else "absent", "reason": ""}
    except AccessError as error:
        return {"state": "refused", "reason": str(error)}
