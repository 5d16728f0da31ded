"""``vflens certs`` on files that are wrong, damaged or hostile: one sentence each, and no file is touched."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import tomli_w
from certs import FEDERATION, files, pin, subject
from commandline import Refused, Run
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from laboratory import deal
from processes import change, experiment_file

from vflens.config import Tls
from vflens.experiments.run.loading import load_experiment
from vflens.types import Role
from vflens.wire.tls import identity
from vflens.wire.tls.issue import draw_authority, draw_key, pem, request, write_key

ACTIVE = subject("active", Role.ACTIVE)
PASSIVE = subject("passive", Role.PASSIVE)
NOW = datetime.now(UTC)


@pytest.fixture(autouse=True)
def _looks_at_the_files_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run in one process here."""
    monkeypatch.setattr(identity, "_LOOK_SECONDS", 0.0)


@pytest.fixture
def tls(tmp_path: Path) -> Tls:
    """The good files of the active party, which trusts the two others."""
    made = files(tmp_path / "own", ACTIVE)
    pin(
        made,
        [files(tmp_path / "p", PASSIVE), files(tmp_path / "c", subject("coordinator", Role.COORDINATOR))],
    )
    return made


@pytest.fixture(scope="module")
def settings(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The active party's configuration, without [tls]; no peer runs."""
    folder = tmp_path_factory.mktemp("dealt")
    limits = {"wait_seconds": 1, "call_seconds": 1, "step_seconds": 1}
    made = deal(load_experiment(experiment_file(folder, limits=limits)), folder / "dealt")
    return tomllib.loads(made["active"].read_text(encoding="utf-8"))


@pytest.fixture
def config(settings: dict[str, Any], tls: Tls, tmp_path: Path) -> Path:
    """It with the good files."""
    file = tmp_path / "config.toml"
    file.touch(0o600)
    file.write_text(tomli_w.dumps(settings | {"tls": {name: str(path) for name, path in tls}}), "utf-8")
    return file


def test_good_files_are_accepted(config: Path, vflens: Run) -> None:
    """The other tests of this module find one fault each."""
    ended = vflens("certs", "check", config)
    assert (ended.code, ended.err.startswith("error: no answer from coordinator, passive")) == (11, True)


def test_a_certificate_that_ends_soon_is_a_warning(
    config: Path, tls: Tls, vflens: Run, tmp_path: Path
) -> None:
    near = files(tmp_path / "near", ACTIVE, days=3.5)
    near.key.replace(tls.key)
    near.certificate.replace(tls.certificate)
    ended = vflens("certs", "check", config)
    assert ended.code == 11
    assert "certificate.pem ends in 3 days (" in ended.err.splitlines()[0]


def test_a_new_certificate_is_no_key(config: Path, refused: Refused) -> None:
    change(config, tls={"certificate": "tls/a.pem", "key": "tls/a.pem", "trust": "tls/trust"})
    text = refused(2, "certs", "init", config)
    assert "two of certificate, key and trust are the same file: give each its own path" in text
    assert not (config.parent / "tls/a.pem").exists()


# --- the party's own files


def _garbage(tls: Tls, tmp_path: Path) -> None:
    lines = tls.certificate.read_text().splitlines()
    tls.certificate.write_text("\n".join([lines[0], "A" * 64, *lines[1:]]))


def _another_key(tls: Tls, tmp_path: Path) -> None:
    files(tmp_path / "other", ACTIVE).key.replace(tls.key)


def _password(tls: Tls, tmp_path: Path) -> None:
    key: Any = load_pem_private_key(tls.key.read_bytes(), None)
    secret = BestAvailableEncryption(b"secret")
    tls.key.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, secret))


def _link(file: Path, target: str) -> None:
    file.unlink(missing_ok=True)
    file.symlink_to(target)


def _pipe(file: Path) -> Path:
    """Nobody writes to it."""
    file.parent.mkdir(exist_ok=True)
    file.unlink(missing_ok=True)
    os.mkfifo(file, 0o600)
    return file


NO_FILE = "cannot be read (it is no regular file): check the path"
OWN: dict[str, tuple[Callable[[Tls, Path], object], str]] = {
    "garbage in PEM": (_garbage, "certificate.pem holds no certificate in PEM: give the file"),
    "no PEM": (lambda t, _: t.certificate.write_bytes(b"\xff\x00"), "holds no certificate in PEM"),
    "empty": (lambda t, _: t.certificate.write_bytes(b""), "holds no certificate in PEM"),
    "huge": (
        lambda t, _: os.truncate(t.certificate, 1 << 30),
        "cannot be read (File too large): check the path",
    ),
    "endless": (lambda t, _: _link(t.certificate, "/dev/zero"), "certificate.pem " + NO_FILE),
    "a pipe": (lambda t, _: _pipe(t.certificate), "certificate.pem " + NO_FILE),
    "a key that is a pipe": (lambda t, _: _pipe(t.key), "key.pem " + NO_FILE),
    "a pipe among the pins": (lambda t, _: _pipe(t.trust / "a.pem"), "a.pem " + NO_FILE),
    "a loop of links": (
        lambda t, _: _link(t.certificate, t.certificate.name),
        "does not exist: draw it with: vflens certs init",
    ),
    "another party's": (
        lambda t, p: files(p / "x", PASSIVE).certificate.replace(t.certificate),
        "is that of passive 'passive' of federation 'hospitals', not of active 'active'",
    ),
    "another's key": (_another_key, "is not that of certificate"),
    "a key with a password": (_password, "is no private key in PEM without a password"),
    "a public key": (
        lambda t, _: t.key.write_bytes(t.certificate.read_bytes()),
        "is no private key in PEM without a password",
    ),
    "a key that is a loop": (
        lambda t, _: _link(t.key, t.key.name),
        "cannot be read (Too many levels of symbolic links)",
    ),
    "a key for all": (lambda t, _: t.key.chmod(0o604), "is open to other users of this machine (mode 604)"),
    "a file among the pins": (
        lambda t, _: (t.trust / "notes.pem").write_text("call them first"),
        "notes.pem holds no certificate in PEM: give the file that its owner made",
    ),
    "a folder among the pins": (
        lambda t, _: (t.trust / "old.pem").mkdir(),
        "old.pem cannot be read (Is a directory)",
    ),
    "a loop among the pins": (
        lambda t, _: _link(t.trust / "a.pem", "a.pem"),
        "Too many levels of symbolic links",
    ),
    "a pin of another federation": (
        lambda t, p: pin(t, [files(p / "x", subject("passive", Role.PASSIVE, "banks"))]),
        "holds the certificate of passive 'passive' of federation 'banks', this party is of federation "
        "'hospitals': remove the file",
    ),
}


@pytest.mark.parametrize("fault", OWN)
def test_own_files_that_are_wrong(
    config: Path, tls: Tls, refused: Refused, tmp_path: Path, fault: str
) -> None:
    """Before the party meets anyone."""
    make, words = OWN[fault]
    make(tls, tmp_path)
    assert words in refused(2, "certs", "check", config)


def test_a_trust_that_is_a_loop(config: Path, tls: Tls, refused: Refused) -> None:
    for file in tls.trust.iterdir():
        file.unlink()
    tls.trust.rmdir()
    _link(tls.trust, tls.trust.name)
    assert "holds no certificate: add the peers' with: vflens certs trust" in refused(
        2, "certs", "check", config
    )
    assert "cannot be written" in refused(12, "certs", "trust", config, config.parent / "p/certificate.pem")


# --- certificates that others sent


def _unflagged_authority(folder: Path) -> Path:
    """Self-signed and in no party's name, but without the flag that lets it sign."""
    key, name = draw_key(), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
    builder = x509.CertificateBuilder(name, name, key.public_key(), 7, NOW, NOW + timedelta(days=9))
    return _written(folder, builder.sign(key, hashes.SHA256()))


def _party_that_signs(folder: Path) -> Path:
    """A peer's certificate that could also vouch for others."""
    authority = draw_authority(FEDERATION)
    names = x509.SubjectAlternativeName(
        [x509.DNSName(PASSIVE.dns), x509.UniformResourceIdentifier(PASSIVE.uri)]
    )
    builder = x509.CertificateBuilder(
        authority.certificate.subject, authority.certificate.subject, authority.key.public_key(), 7, NOW,
        NOW + timedelta(days=9),
    )  # fmt: skip
    for extension in (names, x509.BasicConstraints(ca=True, path_length=None)):
        builder = builder.add_extension(extension, critical=False)
    return _written(folder, builder.sign(authority.key, hashes.SHA256()))


def _two_names(folder: Path) -> Path:
    """A certificate of two parties at once."""
    key, name = draw_key(), x509.Name([])
    uris = [x509.UniformResourceIdentifier(whom.uri) for whom in (PASSIVE, ACTIVE)]
    builder = x509.CertificateBuilder(name, name, key.public_key(), 7, NOW, NOW + timedelta(days=9))
    builder = builder.add_extension(x509.SubjectAlternativeName(uris), critical=False)
    return _written(folder, builder.sign(key, hashes.SHA256()))


def _written(folder: Path, certificate: x509.Certificate) -> Path:
    folder.mkdir()
    (folder / "sent.pem").write_bytes(pem(certificate))
    return folder / "sent.pem"


SENT: dict[str, tuple[Callable[[Path], Path], str]] = {
    "signed by another": (
        lambda p: files(p, PASSIVE, draw_authority(FEDERATION)).certificate,
        "holds a certificate that another one signed: trust the authority's own certificate",
    ),
    "an authority without the flag": (_unflagged_authority, "is neither a party's nor an authority's"),
    "a party that may sign": (_party_that_signs, "is neither a party's nor an authority's"),
    "two names": (_two_names, "is neither a party's nor an authority's"),
    "of another federation": (
        lambda p: files(p, subject("passive", Role.PASSIVE, "banks")).certificate,
        "is the certificate of passive 'passive' of federation 'banks', no peer of active 'active'",
    ),
    "of another role": (
        lambda p: files(p, subject("passive", Role.COORDINATOR)).certificate,
        "is the certificate of coordinator 'passive'",
    ),
    "ended": (lambda p: files(p, PASSIVE, start=NOW - timedelta(days=100)).certificate, "ask for a new one"),
    "a key": (lambda p: files(p, PASSIVE).key, "holds no certificate in PEM"),
    "a folder": (lambda p: files(p, PASSIVE).trust, "cannot be read (Is a directory)"),
    "a pipe": (lambda p: _pipe(p / "sent.pem"), NO_FILE),
    "a file that is not there": (lambda p: p / "x.pem", "cannot be read (No such file or directory)"),
}


@pytest.mark.parametrize("fault", SENT)
def test_certificates_that_are_not_trusted(
    config: Path, tls: Tls, refused: Refused, tmp_path: Path, fault: str
) -> None:
    make, words = SENT[fault]
    sent, before = make(tmp_path / "sent"), sorted(tls.trust.iterdir())
    assert words in refused(2, "certs", "trust", config, sent)
    assert sorted(tls.trust.iterdir()) == before


# --- an authority's folder


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    """A request of the active party."""
    file = tmp_path / "active.csr"
    file.write_bytes(pem(request(draw_key(), ACTIVE)))
    return file


def _signs(vflens: Run, asked: Path) -> Path:
    ours = asked.parent / "ours"
    assert vflens("certs", "sign", asked, "--authority", ours).code == 0
    asked.with_suffix(".pem").unlink()
    return ours


def test_an_authority_whose_key_is_lost_draws_no_other(vflens: Run, refused: Refused, asked: Path) -> None:
    ours = _signs(vflens, asked)
    (ours / "authority.key").unlink()
    text = refused(2, "certs", "sign", asked, "--authority", ours)
    assert "authority.key cannot be read (No such file or directory): check the path" in text
    assert not (ours / "authority.key").exists()
    assert not asked.with_suffix(".pem").exists()


def test_an_authority_with_another_key(vflens: Run, refused: Refused, asked: Path) -> None:
    ours = _signs(vflens, asked)
    write_key(ours / "authority.key", draw_key())
    text = refused(2, "certs", "sign", asked, "--authority", ours)
    assert "authority.pem and" in text
    assert "do not fit: bring back the pair" in text


@pytest.mark.parametrize("made", [_unflagged_authority, lambda p: files(p, PASSIVE).certificate])
def test_no_authority(refused: Refused, asked: Path, made: Callable[[Path], Path]) -> None:
    ours = asked.parent / "ours"
    made(ours).replace(ours / "authority.pem")
    write_key(ours / "authority.key", draw_key())
    assert "is no authority of a federation" in refused(2, "certs", "sign", asked, "--authority", ours)


def test_a_key_that_signs_no_certificate_of_ours(vflens: Run, refused: Refused, asked: Path) -> None:
    ours, other = _signs(vflens, asked), ed25519.Ed25519PrivateKey.generate()
    private = other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (ours / "authority.key").write_bytes(private)
    assert "is no P-256 key" in refused(2, "certs", "sign", asked, "--authority", ours)


def test_an_ended_authority(
    vflens: Run, refused: Refused, asked: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("vflens.wire.tls.issue._AUTHORITY_DAYS", -1e-3)
    monkeypatch.setattr("vflens.services.certificates.sign._check_authority", lambda *_: None)
    with suppress(ValueError):
        vflens("certs", "sign", asked, "--authority", asked.parent / "ours")
    monkeypatch.undo()
    text = refused(2, "certs", "sign", asked, "--authority", asked.parent / "ours")
    assert "draw another authority with certs sign in an empty folder" in text


def test_no_certificate_outlives_its_authority(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vflens.wire.tls.issue._AUTHORITY_DAYS", 10)
    authority = draw_authority(FEDERATION)
    issued = authority.issue(draw_key().public_key(), ACTIVE)
    assert issued.not_valid_after_utc <= authority.certificate.not_valid_after_utc
    assert issued.not_valid_after_utc > NOW + timedelta(days=9)
