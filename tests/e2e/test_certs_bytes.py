"""Certificates whose bytes were changed, or whose names no party has: words, never a traceback."""

from __future__ import annotations

import base64
import random
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from certs import FEDERATION, files, subject
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import (
    Encoding,
)

from vflens.errors import ConfigError
from vflens.services.certificates.read import described
from vflens.types import Role
from vflens.wire.tls.issue import draw_authority, draw_key
from vflens.wire.tls.subject import subject_of
from vflens.wire.tls.trust import check_root, is_issued_by, load_trust, read_certificates

ACTIVE = subject("active", Role.ACTIVE)
NOW = datetime.now(UTC)


# --- damaged files


@pytest.mark.filterwarnings("ignore:Parsed a serial number:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*serial number:UserWarning")
def test_bytes_that_were_changed_end_in_words(tmp_path: Path) -> None:
    """What the library raises for parts that it cannot read never leaves."""
    authority = draw_authority(FEDERATION)
    own = read_certificates(files(tmp_path / "a", ACTIVE).certificate)[0]
    kinds, rng = [own, authority.certificate], random.Random(5)
    file, refusals = tmp_path / "changed.pem", 0
    for number in range(300):
        data = bytearray(kinds[number % 2].public_bytes(Encoding.DER))
        for _ in range(rng.choice((1, 1, 2)) if number > 1 else 0):  # the first two stay as they are
            data[rng.randrange(len(data))] = rng.randrange(256)
        _write_der(file, bytes(data))
        try:
            (certificate,) = read_certificates(file)
            described(certificate, file)
            is_issued_by(certificate, authority.certificate)
            check_root(certificate, file)
            if load_trust(file, FEDERATION).problem:
                refusals += 1
        except ConfigError:
            refusals += 1
    assert 150 < refusals < 300


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("2a8648ce3d030107", "2a8648ce3d030108"),  # a curve that does not exist
        ("2a8648ce3d0201", "2a8648ce3d0209"),  # a kind of key that does not exist
        ("0603551d13", "0603551d11"),  # two lists of names
    ],
)
def test_parts_that_the_library_does_not_know(tmp_path: Path, old: str, new: str) -> None:
    data = read_certificates(files(tmp_path / "a", ACTIVE).certificate)[0].public_bytes(Encoding.DER)
    assert bytes.fromhex(old) in data
    _write_der(tmp_path / "x.pem", data.replace(bytes.fromhex(old), bytes.fromhex(new)))
    with pytest.raises(ConfigError):
        check_root(read_certificates(tmp_path / "x.pem")[0], tmp_path / "x.pem")


def _write_der(file: Path, data: bytes) -> None:
    text = base64.encodebytes(data)
    file.write_bytes(b"-----BEGIN CERTIFICATE-----\n" + text + b"-----END CERTIFICATE-----\n")


def test_names_that_no_party_has(tmp_path: Path) -> None:
    """A name with other characters, or of a role that does not exist, names no party."""
    for uri in (
        "spiffe://hospitals/active/a b",
        "spiffe://hospitals/king/a",
        "spiffe://hospitals/active/a/b",
    ):
        key, name = draw_key(), x509.Name([])
        names = [x509.DNSName(ACTIVE.dns), x509.UniformResourceIdentifier(uri.replace(" ", "%20"))]
        builder = x509.CertificateBuilder(name, name, key.public_key(), 7, NOW, NOW + timedelta(days=9))
        builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        assert subject_of(builder.sign(key, hashes.SHA256())) is None
