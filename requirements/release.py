"""Build a release that everybody can build again, state where it comes from, and check all of it offline.

``release.py build KEY FOLDER`` puts into FOLDER the wheel and the source distribution of the committed tree,
built twice with equal bytes, their bills of materials, and an in-toto statement of them (SLSA provenance 1.0)
in a DSSE envelope that KEY, an Ed25519 key in PEM, signs. ``release.py verify KEY FOLDER`` checks with the
public key that FOLDER holds what was signed, byte for byte, and nothing else.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import serialization as pem
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

ROOT = Path(__file__).resolve().parents[1]
STATEMENT = "provenance.intoto.json"
_TYPE = "application/vnd.in-toto+json"
_BUILD = "import sys, setuptools.build_meta as b; getattr(b, 'build_' + sys.argv[1])(sys.argv[2])"
_LOCKS = ("build.txt", "core.txt", "extras.txt")


def built(root: Path, python: str, into: Path) -> None:
    """The wheel and the source distribution of the tree that is committed in ``root``.

    Raises:
        SystemExit: a second build gives other bytes.
    """
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        one, other = (_once(root, python, Path(folder)) for folder in (first, second))
        different = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
        if different:
            raise SystemExit(f"two builds of {different[0]} differ: build from a clean checkout")
    for name, content in one.items():
        (into / name).write_bytes(content)


def _once(root: Path, python: str, folder: Path) -> dict[str, bytes]:
    """File → bytes of one build, in whose archives times are the commit's and names are in order."""
    began = int(_git(root, "log", "-1", "--format=%ct"))
    packed = subprocess.run(["git", "archive", "HEAD"], cwd=root, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as tree:
        tree.extractall(folder / "tree", filter="data")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(began), "PYTHONHASHSEED": "0"}
    for kind in ("sdist", "wheel"):
        call = [python, "-c", _BUILD, kind, str(folder / "dist")]
        subprocess.run(call, cwd=folder / "tree", env=environment, check=True, capture_output=True)
    in_order: dict[str, Callable[[bytes, int], bytes]] = {".whl": wheel_in_order, ".gz": sdist_in_order}
    return {f.name: in_order[f.suffix](f.read_bytes(), began) for f in sorted((folder / "dist").iterdir())}


def wheel_in_order(wheel: bytes, when: int) -> bytes:
    """``wheel`` with its files and its record in order, of the time ``when`` in seconds."""
    out = io.BytesIO()
    with ZipFile(io.BytesIO(wheel)) as old, ZipFile(out, "w") as new:
        for name in sorted(old.namelist(), key=lambda n: (n.endswith("/RECORD"), n)):
            content = old.read(name)
            if name.endswith("/RECORD"):
                content = b"".join(sorted(content.splitlines(keepends=True)))
            entry = ZipInfo(name, time.gmtime(when)[:6])
            entry.external_attr, entry.compress_type = 0o100644 << 16, ZIP_DEFLATED
            new.writestr(entry, content)
    return out.getvalue()


def sdist_in_order(sdist: bytes, when: int) -> bytes:
    """``sdist`` with its files in order, of the time ``when`` in seconds and of nobody."""
    plain = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(sdist)) as old, tarfile.open(fileobj=plain, mode="w") as new:
        for entry in sorted(old.getmembers(), key=lambda e: e.name):
            entry.mtime, entry.uid, entry.gid, entry.uname, entry.gname = when, 0, 0, "", ""
            entry.pax_headers = {}
            new.addfile(entry, old.extractfile(entry) if entry.isfile() else None)
    return gzip.compress(plain.getvalue(), mtime=when)


def statement(root: Path, folder: Path) -> dict[str, Any]:
    """What ``folder`` holds, by SHA-256, and of which commit and locked packages it was built."""
    commit = {"uri": "git+file:vflens", "digest": {"gitCommit": _git(root, "rev-parse", "HEAD")}}
    locks = [root / "requirements" / name for name in _LOCKS]
    locked = [{"uri": f"requirements/{f.name}", "digest": _digest(f)} for f in locks if f.exists()]
    files = [{"name": f.name, "digest": _digest(f)} for f in _released(folder)]
    definition = {
        "buildType": "https://packaging.python.org/specifications/pyproject-toml",
        "externalParameters": {"target": "make release"},
        "resolvedDependencies": [commit, *locked],
    }
    run = {"builder": {"id": "requirements/release.py"}}
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": files,
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {"buildDefinition": definition, "runDetails": run},
    }


def sign(document: dict[str, Any], key: Ed25519PrivateKey) -> bytes:
    """The DSSE envelope of a statement."""
    payload = json.dumps(document, sort_keys=True).encode()
    signature = {"keyid": key_id(key.public_key()), "sig": _base64(key.sign(_pre_authenticated(payload)))}
    envelope = {"payloadType": _TYPE, "payload": _base64(payload), "signatures": [signature]}
    return json.dumps(envelope, indent=1).encode()


def verify(folder: Path, key: Ed25519PublicKey) -> dict[str, Any]:
    """The statement of ``folder``, whose files are those that ``key`` signed.

    Raises:
        SystemExit: a file lacks, is another, is not stated or no plain file; no file is stated; nobody with
            the key signed it.
    """
    try:
        envelope = json.loads((folder / STATEMENT).read_bytes())
        payload = base64.b64decode(envelope["payload"], validate=True)
        signatures = [base64.b64decode(s["sig"], validate=True) for s in envelope["signatures"]]
        kind = envelope["payloadType"]
    except (OSError, ValueError, KeyError, TypeError):
        raise SystemExit(f"{folder / STATEMENT} is no signed statement: fetch the release anew") from None
    if kind != _TYPE or not any(_is_signed(key, one, payload) for one in signatures):
        raise SystemExit(f"{STATEMENT} is not signed by key {key_id(key)[:16]}: trust none of {folder}")
    document: dict[str, Any] = json.loads(payload)
    stated = {of["name"]: of["digest"] for of in document["subject"]}
    if not stated:
        raise SystemExit(f"{STATEMENT} states no file, so nothing was verified: fetch the release anew")
    there = {f.name: _digest(f) for f in _released(folder)}
    for name in sorted({*stated, *there}):
        if stated.get(name) != there.get(name):
            fault = "lacks" if name not in there else "is not stated" if name not in stated else "is another"
            raise SystemExit(f"{folder / name} {fault}: fetch the release anew")
    return document


def _is_signed(key: Ed25519PublicKey, signature: bytes, payload: bytes) -> bool:
    try:
        key.verify(signature, _pre_authenticated(payload))
    except InvalidSignature:
        return False
    return True


def _pre_authenticated(payload: bytes) -> bytes:
    """What a DSSE signature is of: type and payload, each behind its length."""
    return b"DSSEv1 %d %s %d %s" % (len(_TYPE), _TYPE.encode(), len(payload), payload)


def key_id(key: Ed25519PublicKey) -> str:
    """SHA-256 of the public key in DER."""
    of = key.public_bytes(pem.Encoding.DER, pem.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(of).hexdigest()


def _released(folder: Path) -> Iterator[Path]:
    """The files of ``folder`` but its statement; a link may lead to other bytes later."""
    for file in sorted(folder.iterdir()):
        if file.is_symlink() or not file.is_file():
            raise SystemExit(f"{file} is no plain file: fetch the release anew")
        if file.name != STATEMENT:
            yield file


def _digest(file: Path) -> dict[str, str]:
    return {"sha256": hashlib.sha256(file.read_bytes()).hexdigest()}


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _git(root: Path, *command: str) -> str:
    return subprocess.run(
        ["git", *command], cwd=root, check=True, capture_output=True, text=True
    ).stdout.strip()


def _builder(folder: Path) -> str:
    """A Python with the locked packages that build, and nothing else."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin/python")
    lock = str(ROOT / "requirements/build.txt")
    call = [
        python,
        "-m",
        "pip",
        "--disable-pip-version-check",
        "-q",
        "install",
        "--require-hashes",
        "-r",
        lock,
    ]
    subprocess.run(call, check=True)
    return python


def _key(file: str, kind: type, read: Callable[[bytes], Any]) -> Any:
    try:
        key = read(Path(file).read_bytes())
    except (OSError, ValueError, TypeError):
        key = None
    if not isinstance(key, kind):
        wanted = "public" if kind is Ed25519PublicKey else "private"
        raise SystemExit(f"KEY={file} is no {wanted} Ed25519 key in PEM: make one with openssl genpkey")
    return key


def emptied(folder: Path) -> None:
    """Remove the former release in ``folder``, and no other folder.

    Raises:
        SystemExit: it holds something that is no release.
    """
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise SystemExit(f"{folder} is no folder: name another one")
    if not folder.exists():
        return
    held = list(folder.iterdir())
    try:
        payload = base64.b64decode(json.loads((folder / STATEMENT).read_bytes())["payload"])
        stated = {STATEMENT, *(subject["name"] for subject in json.loads(payload)["subject"])}
    except (OSError, ValueError, KeyError, TypeError):
        stated = set()
    for file in held:
        if file.is_symlink() or not file.is_file() or file.name not in stated:
            raise SystemExit(f"{file} is of no former release: name another FOLDER, or empty this one")
    for file in sorted(held, key=lambda f: f.name == STATEMENT):  # last: an interrupted call is repeated
        file.unlink()
    folder.rmdir()


def main(command: str, key: str, folder: Path) -> None:
    """Build into ``folder``, new or of a former release, or verify it."""
    if command == "verify":
        document = verify(folder, _key(key, Ed25519PublicKey, pem.load_pem_public_key))
        commit = document["predicate"]["buildDefinition"]["resolvedDependencies"][0]["digest"]["gitCommit"]
        print(f"{folder}: {len(document['subject'])} files are those that were signed, of commit {commit}")
        return
    signer = _key(key, Ed25519PrivateKey, lambda of: pem.load_pem_private_key(of, None))
    if _git(ROOT, "status", "--porcelain"):
        raise SystemExit("the checkout has changes that no commit has: commit or remove them")
    emptied(folder)
    folder.parent.mkdir(parents=True, exist_ok=True)
    # Whole or not at all: without its statement, the next call would take the folder for somebody's own.
    with tempfile.TemporaryDirectory(prefix=f".{folder.name}-", dir=folder.parent) as home:
        new = Path(home, "new")
        built(ROOT, _builder(Path(home, "python")), new)
        for bill in sorted((ROOT / "build").glob("sbom-*.json")):
            shutil.copy(bill, new)
        (new / STATEMENT).write_bytes(sign(statement(ROOT, new), signer))
        verify(new, signer.public_key())
        new.rename(folder)
    print(f"{folder}: {', '.join(f.name for f in sorted(folder.iterdir()))}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
