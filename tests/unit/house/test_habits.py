"""Habits that a file keeps: a commit's subject, the papers that a citation names, one version."""

from __future__ import annotations

import ast
import importlib.util
import re
import subprocess
import tomllib
from pathlib import Path
from types import ModuleType

import pytest
import yaml
from hypothesis import settings

ROOT = Path(__file__).parents[3]
ROOMS = ("attacks", "clients", "coordinator", "defenses", "services", "vflens")
FILES = sorted(file for room in ROOMS for file in (ROOT / room).rglob("*.py"))


def judged(subject: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """What the commit-msg hook answers to a message with this subject."""
    message = folder / "message"
    message.write_text(f"{subject}\n\nThe why.\n", encoding="utf-8")
    return subprocess.run([ROOT / ".ci/subject", message], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    "subject", ["gate: refuse repeated rows", "docs: " + "x" * 66, "Merge branch 'main'", "fixup! anything"]
)
def test_a_good_subject_passes(subject: str, tmp_path: Path) -> None:
    answer = judged(subject, tmp_path)
    assert (answer.returncode, answer.stderr) == (0, "")


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        ("docs: " + "x" * 67, "The subject has 73 characters"),
        ("Format", "The subject 'Format' names no area"),
        ("gate: Refuse repeated rows", "names no area"),
    ],
)
def test_another_is_refused_with_the_reason(subject: str, reason: str, tmp_path: Path) -> None:
    answer = judged(subject, tmp_path)
    assert answer.returncode == 1
    assert reason in answer.stderr


def test_the_citation_names_the_four_papers() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    titles = [reference["title"] for reference in citation["references"]]
    assert len(set(titles)) == 4
    assert all(reference["authors"] for reference in citation["references"])
    assert citation["license"] == "Apache-2.0"


def test_the_version_is_the_same_everywhere() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))["version"]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest = re.findall(r"^## (\S+)", changes, re.MULTILINE)[0]
    assert [citation, newest] == [project, project]


def _gatherer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("changes_program", ROOT / "requirements/changes.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_release_fits_on_a_page_and_speaks_to_three_readers() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    newest, *others = text.split("\n## ")[1:]
    assert len(newest.splitlines()) <= 60
    assert others
    gatherer = _gatherer()
    assert re.findall(r"^### (.+)$", newest, re.MULTILINE) == list(gatherer.DOORS.values())
    lines = re.findall(r"^- (.+)$", newest, re.MULTILINE)
    assert len(lines) > 30
    assert {line.partition(":")[0] for line in lines} <= set(gatherer.KINDS)


def test_every_fragment_of_a_change_is_one() -> None:
    _gatherer().fragments(ROOT)


def _project(folder: Path, **fragments: str) -> Path:
    (folder / "changes").mkdir()
    (folder / "pyproject.toml").write_text('[project]\nversion = "0.4.0"\n')
    (folder / "CHANGELOG.md").write_text("# Changelog\n\nWords.\n\n## 0.3.0\n\n- x\n\n## 0.1.0 (2026)\n")
    for name, text in fragments.items():
        (folder / "changes" / f"{name}.md").write_text(text)
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    return folder


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Mended, table\nx\n", "'Mended, table': write KIND, DOOR"),
        ("Added, kitchen\nx\n", "write KIND, DOOR"),
        ("Added, table\n\n", "no sentence follows"),
        ("Fixed, table\nx\n", "add `, since: 0.3.0`"),
        ("Fixed, table, since: 0.2.0\nx\n", "since: 0.2.0 is no release \\(0.3.0, 0.1.0\\)"),
        ("Security, research, since: 9.9.9\nx\n", "is no release"),
    ],
)
def test_another_fragment_is_refused(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(SystemExit, match=words):
        _gatherer().fragments(_project(tmp_path, mine=text))


def test_fragments_become_the_section_of_their_release(tmp_path: Path) -> None:
    fixed, added = "Fixed, table, since: 0.1.0\nIt adds\nup.\n", "Added, table\n`x` is new.\n"
    root = _project(tmp_path, b=fixed, a=added, c="Added, research\nA rank.\n", README="How to.\n")
    gatherer = _gatherer()
    with pytest.raises(SystemExit, match=r"has the changes of 0\.4\.0 now: commit it"):
        gatherer.gather(root)
    assert (root / "CHANGELOG.md").read_text() == (
        "# Changelog\n\nWords.\n\n## 0.4.0\n\n### Your own table\n\n- Added: `x` is new.\n"
        "- Fixed: It adds up.\n\n"
        "### Research\n\n- Added: A rank.\n\n## 0.3.0\n\n- x\n\n## 0.1.0 (2026)\n"
    )
    assert [f.name for f in (root / "changes").iterdir()] == ["README.md"]
    gatherer.gather(root)  # nothing is left to gather
    (root / "changes/late.md").write_text(added.replace("x", "y"))
    with pytest.raises(SystemExit, match=r"has 0\.4\.0 already: raise the version"):
        gatherer.gather(root)


def _timed_results(tree: ast.AST) -> set[ast.Call]:
    """The calls of ``x.result(seconds)``: they raise TimeoutError, which is an OSError."""
    return {
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "result"
        and (node.args or node.keywords)
    }


def _unhandled(source: str) -> list[int]:
    """The lines that wait with a time-out outside a ``try`` that names the time-out."""
    tree = ast.parse(source)
    handled = {
        call
        for block in ast.walk(tree)
        if isinstance(block, ast.Try)
        and any("Timeout" in ast.unparse(handler.type or block) for handler in block.handlers)
        for statement in block.body
        for call in _timed_results(statement)
    }
    return sorted(call.lineno for call in _timed_results(tree) - handled)


def test_who_waits_with_a_time_out_names_it() -> None:
    """A TimeoutError that is let out ends a process as a full disk would: "free space", code 12."""
    found = {f.name: _unhandled(f.read_text(encoding="utf-8")) for f in FILES}
    assert {name: lines for name, lines in found.items() if lines} == {}
    assert sum(len(_timed_results(ast.parse(f.read_text(encoding="utf-8")))) for f in FILES) >= 3
    assert _unhandled("try:\n    a.result(2.0)\nexcept VflensError:\n    pass") == [2]
    assert _unhandled("try:\n    a.result(2.0)\nexcept (TimeoutError, VflensError):\n    pass") == []
    assert _unhandled("a.result()") == []


#: The functions that open a file for writing, and why a link cannot lead them elsewhere.
WRITERS = {
    "vflens/storage/regular.py": "O_NOFOLLOW",
    "vflens/storage/files.py": "a name of its own, O_EXCL, which takes the place of the file",
    "vflens/experiments/sweeps/pool.py": "O_NOFOLLOW",
    "vflens/experiments/offline/copied.py": "into a new folder of its own",
    "services/folder.py": "into a new folder of its own",
    "vflens/experiments/starting/copies.py": "into a new folder of its own",
    "vflens/experiments/release/sink.py": "mkstemp",
    "vflens/experiments/release/run.py": "into the files of sink.py",
}
_WRITES = {"write_text", "write_bytes", "touch"}


def _writing(source: str) -> list[int]:
    """The lines that open a file for writing, or could: by a mode that is no literal, or flags of os.open."""
    return [
        node.lineno for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and _writes(node)
    ]


def _writes(call: ast.Call) -> bool:
    called = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    owner = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
    if called != "open" or owner in ("Image", "Images", "tarfile", "webbrowser", "ZipFile", "archive"):
        return (
            called in _WRITES
            or (owner == "shutil" and called.startswith(("copy", "move")))
            or called == "mkstemp"
        )
    if owner == "os":
        return "O_RDONLY" not in ast.unparse(call)
    given = [k.value for k in call.keywords if k.arg == "mode"] or call.args[0 if owner else 1 :][:1]
    mode = given[0].value if given and isinstance(given[0], ast.Constant) else "r" if not given else "?"
    return not isinstance(mode, str) or set(mode) & set("wax+?") != set()


def test_only_these_functions_open_a_file_for_writing() -> None:
    """Another party's folder may hold links: who writes a new file uses vflens/storage."""
    found = {f.relative_to(ROOT).as_posix(): _writing(f.read_text(encoding="utf-8")) for f in FILES}
    assert {name for name, lines in found.items() if lines} == set(WRITERS)
    assert _writing("file.open('rb'); open(f); os.open(f, os.O_RDONLY); Image.open(f, 'w')") == []
    for line in (
        "open(f, 'w')",
        "f.open('r+b')",
        "f.open(mode)",
        "os.open(f, flags)",
        "f.write_text(t)",
        "shutil.copy(f, g)",
    ):
        assert _writing(line) == [1]


def test_no_test_of_hypothesis_has_a_deadline() -> None:
    """A machine may be busy: tests/conftest.py says so once, for all."""
    assert settings.default is not None
    assert settings.default.deadline is None
    files = {f: f.read_text(encoding="utf-8") for f in (ROOT / "tests").rglob("*.py")}
    by_hand = re.compile(r"settings\([^)]*\bdeadline *=")
    assert [f.name for f, text in files.items() if by_hand.search(text)] == []


@pytest.mark.parametrize("at", ["replace", "unlink", "run"])
def test_fragments_whose_gathering_was_interrupted_are_gathered_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    root = _project(tmp_path, a="Added, table\nA.\n", b="Added, table\nB.\n")
    gatherer = _gatherer()

    def interrupted(*given: object, **options: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(subprocess if at == "run" else Path, at, interrupted)
        with pytest.raises(KeyboardInterrupt):
            gatherer.gather(root)
    if at == "run":  # all are in CHANGELOG.md, which is to be committed
        gatherer.gather(root)
    else:
        with pytest.raises(SystemExit, match=r"has the changes of 0\.4\.0 now: commit it"):
            gatherer.gather(root)
    assert (root / "CHANGELOG.md").read_text().count("- Added: B.") == 1
    assert [*(root / "changes").iterdir()] == []
