"""Masks that two parties draw from what their keys have in common (X25519, BLAKE2b): nobody else can."""

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey

from vflens.errors import ProtocolError
from vflens.randomness import derive


class PairKey:
    """A party's key in one run.

    Args:
        secret: the party's own; after a restart it gives the same key.
        purpose: of the key.
        run: the run's name, part of every key.
        name: the party's.
    """

    def __init__(self, secret: bytes, purpose: str, run: str, name: str) -> None:
        self._key = X25519PrivateKey.from_private_bytes(derive(secret, purpose, run, name))
        self._run, self._name = run, name

    @property
    def public(self) -> bytes:
        """The 32 bytes that the other parties need."""
        return self._key.public_key().public_bytes_raw()

    def shared(self, peer: str, public: bytes, *names: str | int) -> bytes:
        """The key of masks ``names`` that this party and ``peer``, whose key is ``public``, share: 32 bytes.

        Raises:
            ProtocolError: ``public`` is no key.
        """
        try:
            common = self._key.exchange(X25519PublicKey.from_public_bytes(public))
        except ValueError:  # of another length, or a point of small order
            raise ProtocolError(
                f"the public key of {peer!r} is no X25519 key: it must send the one of this run"
            ) from None
        return derive(common, "mask", self._run, *names, *sorted((self._name, peer)))
