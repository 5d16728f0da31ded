"""A release is built twice with equal bytes, is signed, and is checked offline file by file."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from zipfile import ZipFile

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

ROOT = Path(__file__).parents[2]
_PROJECT = (
    '[build-system]\nrequires = ["setuptools"]\nbuild-backend = "setuptools.build_meta"\n'
    '[project]\nname = "tiny"\nversion = "1.0"\n[tool.setuptools]\npackages = ["tiny"]\n'
)


@pytest.fixture(scope="module")
def release() -> ModuleType:
    spec = importlib.util.spec_from_file_location("release_program", ROOT / "requirements/release.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _git(folder: Path, *command: str) -> None:
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    subprocess.run(["git", *who, *command], cwd=folder, check=True, capture_output=True)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project of three modules, committed."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "tiny").mkdir()
    (folder / "pyproject.toml").write_text(_PROJECT)
    for name in ("__init__", "b", "a"):
        (folder / f"tiny/{name}.py").write_text(f"NAME = {name!r}\n")
    _git(folder, "init", "-q")
    _git(folder, "add", ".")
    _git(folder, "commit", "-qm", "begin")
    return folder


@pytest.fixture
def signed(release: ModuleType, tmp_path: Path) -> tuple[Path, Ed25519PrivateKey]:
    """A folder of two files with a signed statement."""
    folder, key = tmp_path / "release", Ed25519PrivateKey.generate()
    folder.mkdir()
    (folder / "tiny.whl").write_bytes(b"wheel")
    (folder / "sbom-core.json").write_bytes(b"{}")
    (folder / release.STATEMENT).write_bytes(release.sign(release.statement(ROOT, folder), key))
    return folder, key


@pytest.mark.facts
def test_two_builds_at_other_times_and_places_have_equal_bytes(
    release: ModuleType, project: Path, tmp_path: Path
) -> None:
    pytest.importorskip("setuptools")
    release.built(project, sys.executable, tmp_path / "one")
    _git(project, "clone", "-q", ".", str(tmp_path / "clone"))
    (project / "untracked.py").touch()  # only what is committed is released
    release.built(tmp_path / "clone", sys.executable, tmp_path / "other")
    one, other = ({f.name: f.read_bytes() for f in (tmp_path / n).iterdir()} for n in ("one", "other"))
    assert one == other
    assert sorted(one) == ["tiny-1.0-py3-none-any.whl", "tiny-1.0.tar.gz"]
    with ZipFile(tmp_path / "one/tiny-1.0-py3-none-any.whl") as wheel:
        assert {"tiny/a.py", "tiny/b.py"} <= set(wheel.namelist())
    with tarfile.open(tmp_path / "one/tiny-1.0.tar.gz") as sdist:
        assert "tiny-1.0/tiny/a.py" in sdist.getnames()


def test_a_build_that_differs_is_refused(
    release: ModuleType, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds = iter([{"a.whl": b"1"}, {"a.whl": b"2"}])
    monkeypatch.setattr(release, "_once", lambda *_: next(builds))
    with pytest.raises(SystemExit, match=r"two builds of a\.whl differ"):
        release.built(project, sys.executable, tmp_path)


def test_what_was_signed_is_verified(release: ModuleType, signed: tuple[Path, Ed25519PrivateKey]) -> None:
    folder, key = signed
    statement = release.verify(folder, key.public_key())
    assert [one["name"] for one in statement["subject"]] == ["sbom-core.json", "tiny.whl"]
    of = statement["predicate"]["buildDefinition"]["resolvedDependencies"]
    assert len(of[0]["digest"]["gitCommit"]) == 40
    assert {"requirements/core.txt", "requirements/build.txt"} <= {one["uri"] for one in of}


def _link(folder: Path) -> None:
    (folder / "tiny.whl").rename(folder.parent / "x")
    (folder / "tiny.whl").symlink_to(folder.parent / "x")


def _rewrite(folder: Path, name: str) -> None:
    envelope = json.loads((folder / "provenance.intoto.json").read_text())
    envelope[name] = {"payload": "e30=", "payloadType": "text/plain", "signatures": []}[name]
    (folder / "provenance.intoto.json").write_text(json.dumps(envelope))


@pytest.mark.parametrize(
    ("cheat", "words"),
    [
        (lambda f: (f / "tiny.whl").write_bytes(b"other"), "tiny.whl is another"),
        (lambda f: (f / "tiny.whl").unlink(), "tiny.whl lacks"),
        (lambda f: (f / "more.whl").touch(), "more.whl is not stated"),
        (lambda f: (f / "more").mkdir(), "more is no plain file"),
        (_link, "tiny.whl is no plain file"),
        (lambda f: _rewrite(f, "payload"), "not signed by key"),
        (lambda f: _rewrite(f, "payloadType"), "not signed by key"),
        (lambda f: _rewrite(f, "signatures"), "not signed by key"),
        (lambda f: (f / "provenance.intoto.json").write_text("{}"), "no signed statement"),
        (lambda f: (f / "provenance.intoto.json").unlink(), "no signed statement"),
    ],
)
def test_what_was_not_signed_is_refused(
    release: ModuleType,
    signed: tuple[Path, Ed25519PrivateKey],
    cheat: Callable[[Path], object],
    words: str,
) -> None:
    folder, key = signed
    cheat(folder)
    with pytest.raises(SystemExit, match=words):
        release.verify(folder, key.public_key())


def test_another_key_verifies_nothing(release: ModuleType, signed: tuple[Path, Ed25519PrivateKey]) -> None:
    with pytest.raises(SystemExit, match="not signed by key"):
        release.verify(signed[0], Ed25519PrivateKey.generate().public_key())


@pytest.mark.parametrize("command", ["build", "verify"])
def test_a_key_that_is_none_is_refused(release: ModuleType, tmp_path: Path, command: str) -> None:
    with pytest.raises(SystemExit, match=r"is no (private|public) Ed25519 key in PEM"):
        release.main(command, str(tmp_path / "none.pem"), tmp_path)


def test_a_release_without_files_is_refused(release: ModuleType, tmp_path: Path) -> None:
    folder, key = tmp_path / "release", Ed25519PrivateKey.generate()
    folder.mkdir()
    (folder / release.STATEMENT).write_bytes(release.sign(release.statement(ROOT, folder), key))
    with pytest.raises(SystemExit, match="states no file, so nothing was verified"):
        release.verify(folder, key.public_key())


def test_only_a_former_release_makes_room_for_the_next(
    release: ModuleType, signed: tuple[Path, Ed25519PrivateKey], tmp_path: Path
) -> None:
    folder, _ = signed
    (folder / "thesis.tex").write_text("years of work")
    with pytest.raises(SystemExit, match=r"thesis.tex is of no former release"):
        release.emptied(folder)
    (folder / "thesis.tex").unlink()
    (folder / "tiny").mkdir()
    with pytest.raises(SystemExit, match="tiny is of no former release"):
        release.emptied(folder)
    (folder / "tiny").rmdir()
    release.emptied(folder)
    assert not folder.exists()
    release.emptied(folder)  # nothing is there
    mine = tmp_path / "mine"
    mine.mkdir()
    release.emptied(mine)  # empty
    mine.mkdir()
    (mine / "letter").touch()
    (tmp_path / "link").symlink_to(mine)
    for given in (mine, tmp_path / "link", mine / "letter"):
        with pytest.raises(SystemExit, match=r"no former release|is no folder"):
            release.emptied(given)
    assert (mine / "letter").exists()


def test_the_program_refuses_such_a_folder_before_it_builds(
    release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "letter").touch()
    monkeypatch.setattr(release, "_git", lambda *of: "")
    monkeypatch.setattr(release, "_key", lambda *of: Ed25519PrivateKey.generate())
    monkeypatch.setattr(release, "built", lambda *of: pytest.fail("it built"))
    with pytest.raises(SystemExit, match="letter is of no former release"):
        release.main("build", "key", tmp_path)
    assert (tmp_path / "letter").exists()


@pytest.mark.parametrize("at", ["built", "statement", "verify", "unlink"])
def test_an_interrupted_release_is_begun_anew(
    release: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    def built(root: Path, python: str, into: Path) -> None:
        into.mkdir()
        (into / "tiny.whl").write_bytes(b"wheel")
        (into / "tiny.tar.gz").write_bytes(b"source")

    def interrupted(*given: object) -> None:
        if at == "built":
            built(*given)  # type: ignore[arg-type]
        if at == "unlink" and next(first, None):
            whole(*given)  # type: ignore[arg-type]
            return
        raise KeyboardInterrupt

    folder, first, whole = tmp_path / "build/release", iter([True]), Path.unlink
    call = ("build", "key", folder)
    monkeypatch.setattr(release, "ROOT", tmp_path)  # this checkout may have bills of materials
    monkeypatch.setattr(release, "_git", lambda root, *of: "" if "status" in of else "c0")
    monkeypatch.setattr(release, "_key", lambda *of: Ed25519PrivateKey.generate())
    monkeypatch.setattr(release, "_builder", lambda *of: sys.executable)
    monkeypatch.setattr(release, "built", built)
    if at == "unlink":
        release.main(*call)
    with monkeypatch.context() as patch:
        owner: object = Path if at == "unlink" else release
        patch.setattr(owner, at, interrupted)
        with pytest.raises(KeyboardInterrupt):
            release.main(*call)
    release.main(*call)
    assert sorted(f.name for f in folder.iterdir()) == ["provenance.intoto.json", "tiny.tar.gz", "tiny.whl"]
    assert list(folder.parent.iterdir()) == [folder]
