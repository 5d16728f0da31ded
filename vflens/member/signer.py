"""What a party states under its own name, so that others can show it later: ``docs/certificates.md``."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple, Protocol

from vflens.protocol.agreement import Agreement
from vflens.storage.heads import to_json
from vflens.storage.sent_heads import SentHeads
from vflens.types import Role, Signature


class Statement(NamedTuple):
    """What a party states of a ``run``: JSON ``facts`` of a ``kind``."""

    kind: str
    run: str
    facts: dict[str, Any]


def heads_statement(run: str, sent: SentHeads) -> Statement:
    """The heads of a party's logs, the federation that it was told of, and the run's nonce."""
    facts = {"heads": to_json(sent.heads), "federation": sent.federation.hex()}
    return Statement("heads", run, facts | _nonce(sent.nonce))


def key_statement(run: str, mask_key: str, nonce: str) -> Statement:
    """A client's key of masks, and the run's nonce."""
    return Statement("key of masks", run, {"key": mask_key} | _nonce(nonce))


def nonce_of(federation: Agreement | None) -> str:
    """The nonce of the run, "" before the party was told of one."""
    return "" if federation is None else federation.nonce


def _nonce(nonce: str) -> dict[str, str]:
    """The nonce as a fact; an earlier release signed none."""
    return {"nonce": nonce} if nonce else {}


class Signer(Protocol):
    """Signs what a party states, and reads what others signed."""

    def sign(self, statement: Statement) -> Signature:
        """The party's word for it."""

    def fits(self, party: str, statement: Statement, signature: Signature | None) -> bool:
        """Whether a certificate that names ``party``, of this federation, signed this, trusted or not."""

    def check(self, party: str, role: Role, statement: Statement, signature: Signature | None) -> None:
        """Refuse what ``party`` in its ``role`` did not sign with a certificate that is trusted.

        Raises:
            ProtocolError: naming the party.
        """

    def knows(self, role: Role) -> bool:
        """Whether certificates of parties of ``role`` can be trusted here: an authority's, or pins."""


def signed_heads(signer: Signer, run: str, sent: SentHeads) -> SentHeads:
    """``sent`` with the signature of its party."""
    return replace(sent, signature=signer.sign(heads_statement(run, sent)))


def fitting(
    signer: Signer, run: str, nonce: str, heads: Mapping[str, SentHeads], log: Any
) -> dict[str, SentHeads]:
    """Those of ``heads`` that their party signed, of the run with this ``nonce``; others are logged."""
    kept = {}
    for party, sent in heads.items():
        if sent.nonce == nonce and signer.fits(party, heads_statement(run, sent), sent.signature):
            kept[party] = sent
        else:
            log.warning("heads without their party's signature", party=party)
    return kept
