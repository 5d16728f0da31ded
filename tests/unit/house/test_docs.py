"""The docs are true: links lead somewhere, commands parse, the README's plug-ins run."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
import tomllib
from pathlib import Path
from typing import Any

import click
import pytest
import typer
from commandline import Run
from nonempty import nonempty
from rich.text import Text

from vflens.cli.main import app
from vflens.errors import exit_codes
from vflens.experiments.audit.subject import load_subject
from vflens.registry import ATTACKS, DEFENSES

ROOT = Path(__file__).parents[3]
ROOMS = (
    "attacks",
    "benchmarks",
    "clients",
    "coordinator",
    "defenses",
    "docs",
    "protos",
    "services",
    "vflens",
)
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = (ROOT / "docs/commands.md").read_text(encoding="utf-8")
_NOTATION = (ROOT / "docs/notation.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMAND = typer.main.get_command(app)


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


def fences(text: str, language: str) -> list[str]:
    return [body for found, body in FENCE.findall(text) if found == language]


def section(text: str, heading: str) -> str:
    return text.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]


def long_lines(text: str) -> list[int]:
    """Lengths above 120 of lines outside fenced code and tables that are more than one link."""
    lines = FENCE.sub("", text).splitlines()
    return [
        len(x) for x in lines if len(x) > 120 and not re.match(r" *(\||!?\[[^]]*\](\([^)]*\)|: \S+)$)", x)
    ]


def test_long_lines_are_found() -> None:
    words = "word " * 24
    link = f"![{words}](picture.svg)"
    text = f"{words}\n{words}a\n- {words}\n| {words} |\n{link}\nSee {link}\n```toml\n# {words}\n```\n"
    assert long_lines(text) == [121, 122, 140]


@pytest.mark.parametrize(
    "page", [p for p in PAGES if p.name not in ("CHANGELOG.md", "history.md")], ids=name_of
)
def test_lines_of_pages_have_120_characters_at_most(page: Path) -> None:
    assert not long_lines(page.read_text(encoding="utf-8"))


def test_the_glossary_has_each_term_once_in_order_with_one_meaning() -> None:
    meanings = re.findall(
        r"^- \*\*(.+?)\*\*: (.+?)$(?!\n  )", section(_NOTATION, "Terms"), re.MULTILINE | re.DOTALL
    )
    terms = [term for term, _ in meanings]
    assert len(terms) > 70
    assert terms == sorted(set(terms), key=str.lower)
    assert [term for term, meaning in meanings if re.search(r"\b(also|or)\b", meaning)] == []


def test_the_glossary_has_each_term_of_regulators() -> None:
    """Those of the table that maps them to what a DPIA measures."""
    evidence = (ROOT / "docs/evidence.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+?) \|", section(evidence, "Terms"), re.MULTILINE)[1:]
    wanted = {term for row in rows if set(row) != {"-"} for term in row.split("; ")}
    assert {"singling out", "maximum risk", "model extraction"} < wanted
    glossary = re.findall(r"^- \*\*(.+?)\*\*:", section(_NOTATION, "Terms"), re.MULTILINE)
    assert wanted - {term.lower() for term in glossary} == set()


def _links(page: Path) -> list[str]:
    """The targets of a page's links into this repository."""
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    targets: list[str] = re.findall(r"\]\(([^)\s]+)\)", prose)
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


@pytest.mark.parametrize("page", [page for page in PAGES if _links(page)], ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    for target in nonempty(_links(page)):
        path, _, anchor = target.partition("#")
        linked = (page.parent / path).resolve() if path else page
        assert linked.exists(), f"{target} does not exist"
        if anchor:
            assert anchor in _anchors(linked), f"{target}: there is no such heading"


def _anchors(page: Path) -> set[str]:
    prose = FENCE.sub("", page.read_text(encoding="utf-8"))
    headings = re.findall(r"^#+ (.+)$", prose, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def _names(file: Path) -> set[str]:
    """Those of the tests in ``file``, and of their classes."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return {n.name for n in ast.walk(ast.parse(file.read_text(encoding="utf-8"))) if isinstance(n, kinds)}


def test_each_past_defect_has_its_test_or_the_reason_why_it_stays() -> None:
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([SV]\d+) \| .+ \| (.+) \|$", section(page, "Past defects"), re.MULTILINE)
    numbers = [f"V{i}" for i in range(1, 19)] + [f"S{i}" for i in range(1, 33) if i != 31]
    assert [defect for defect, _ in rows] == numbers
    for defect, held in rows:
        tests = re.findall(r"`(tests/[\w/]+\.py)((?:::\w+)*)`", held)
        assert tests or re.search(r"left as it is: \w+", held), f"{defect} has neither"
        assert held.count("`tests/") == len(tests), f"{defect} names something else"
        for file, names in tests:
            assert set(names.split("::")[1:]) <= _names(ROOT / file), f"{defect}: {file} lacks {names}"


def test_pages_are_there() -> None:
    assert len(PAGES) >= 30
    for registry, folder in ((ATTACKS, "attacks"), (DEFENSES, "defenses")):
        pages = {p.stem for p in (ROOT / "docs" / folder).glob("*.md")}
        assert pages == set(registry.names())
    index = (ROOT / "docs" / "adr" / "README.md").read_text(encoding="utf-8")
    for page in (ROOT / "docs" / "adr").glob("0*.md"):
        assert f"({page.name})" in index


def test_every_decision_has_a_date_a_status_and_alternatives() -> None:
    pages = sorted((ROOT / "docs/adr").glob("0*.md"))
    assert len(pages) > 20
    for page in pages:
        title, empty, dated, *rest = page.read_text(encoding="utf-8").split("\n")
        assert re.fullmatch(rf"# {int(page.name[:4])}\. .+", title), page.name
        assert empty == ""
        assert re.fullmatch(r"2\d{3}-\d\d-\d\d · (accepted|superseded by .+)", dated), page.name
        assert any(line.startswith("**Alternatives**") for line in rest), page.name


def test_decisions_name_code_that_exists() -> None:
    """But for what was there before, and for what was not taken."""
    files = {str(f.relative_to(ROOT)) for room in ROOMS for f in (ROOT / room).rglob("*") if f.is_file()}
    named, past = set(), r"(?s)\*\*(Context|Alternatives).*?(?=\n\*\*[A-Z]|\Z)"
    for page in (ROOT / "docs/adr").glob("0*.md"):
        decided = re.sub(past, "", page.read_text(encoding="utf-8"))
        named |= {(page.name, n) for n in re.findall(r"`([\w/]+\.(?:py|proto))`", decided)}
    assert len(named) > 10
    assert [n for n in sorted(named) if not any(f"/{f}".endswith(f"/{n[1]}") for f in files)] == []


def test_contributing_names_files_that_exist_for_every_kind_of_change() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(
        re.findall(r"(?:attacks|clients|coordinator|defenses|docs|protos|tests|vflens)/[\w/.-]*\w", page)
    )
    assert len(named) > 20
    assert [n for n in named if "NAME" not in n and not (ROOT / n).exists()] == []
    kinds = re.findall(r"\| \[(.+?)\]\(#add-.+?\) \|", page)
    assert [f"Add {kind}" for kind in kinds] == re.findall(r"^## (Add an? .+)$", page, re.MULTILINE)


def test_every_benchmark_has_a_place_on_the_page_of_costs() -> None:
    page = (ROOT / "docs/performance.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(benchmarks/\w+\.py)`", page))
    assert all((ROOT / name).is_file() for name in named)
    assert {f"benchmarks/{p.name}" for p in (ROOT / "benchmarks").glob("test_*.py")} <= named


def _commands() -> list[tuple[str, str]]:
    """Every vflens command line: in shell fences, and in the comments of the examples."""
    found = [
        (name_of(p), line)
        for p in PAGES
        for body in fences(p.read_text(encoding="utf-8"), "sh")
        for line in body.splitlines()
    ]
    for example in sorted((ROOT / "examples").glob("*.toml")):
        found += [
            (name_of(example), line.lstrip("# "))
            for line in example.read_text(encoding="utf-8").splitlines()
            if line.startswith("#")
        ]
    commands = re.compile(r"(?:^|\S*/|dealer )vflens (.+)$")
    return [
        (page, match[1])
        for page, line in found
        if (match := commands.match(line) or re.search(r"dealer vflens (.+)$", line))
    ]


@pytest.mark.parametrize(("page", "line"), _commands())
def test_commands_parse(page: str, line: str) -> None:
    words = shlex.split(line, comments=True)
    command, arguments = _resolve(words)
    command.make_context("vflens", list(arguments)).close()
    examples = [word for word in words if word.startswith("examples/")]
    assert not [word for word in examples if not (ROOT / word).exists()]


def test_there_are_commands() -> None:
    assert len(_commands()) > 12


def _mentioned(page: Path) -> list[str]:
    return re.findall(r"`(?:\.venv/bin/)?vflens ([^`]+)`", page.read_text(encoding="utf-8"))


def test_commands_are_mentioned() -> None:
    assert sum(len(_mentioned(page)) for page in PAGES) > 50


@pytest.mark.parametrize("page", [page for page in PAGES if _mentioned(page)], ids=name_of)
def test_mentioned_commands_exist(page: Path) -> None:
    for line in nonempty(_mentioned(page)):
        command, arguments = _resolve(line.split())
        flags = {flag for parameter in command.params for flag in (*parameter.opts, "--help")}
        assert {a for a in arguments if a.startswith("--")} <= flags, line


def _resolve(words: list[str]) -> tuple[click.Command, list[str]]:
    command: Any = COMMAND
    while words and hasattr(command, "commands") and words[0] in command.commands:
        command, words = command.commands[words[0]], words[1:]
    assert command is not COMMAND, f"there is no command {' '.join(words)!r}"
    return command, words


def test_every_command_has_an_example_and_stands_in_the_table() -> None:
    found = []

    def walk(command: Any, path: str) -> None:
        for name, inner in getattr(command, "commands", {}).items():
            if hasattr(inner, "commands"):
                walk(inner, f"{path} {name}")
            elif not inner.hidden:  # an earlier name
                found.append(name)
                assert f"Example: vflens{path} {name}" in inner.help, name
                assert f"`vflens{path} {name}" in COMMANDS or f"`{name}`" in COMMANDS, name

    walk(COMMAND, "")
    assert len(found) > 12


def test_no_help_loses_words_to_markup() -> None:
    def walk(command: Any, path: str) -> None:
        for text in (command.help, *(getattr(p, "help", None) for p in command.params)):
            assert Text.from_markup(text or "").plain == (text or ""), path
        for name, inner in getattr(command, "commands", {}).items():
            walk(inner, f"{path} {name}")

    walk(COMMAND, "vflens")


def test_the_example_of_audit_reads_its_file() -> None:
    command, words = _resolve(["audit"])
    example = re.search(r"Example: vflens audit (.+)", command.help or "")
    assert example is not None
    given = command.make_context("audit", [*words, *shlex.split(example[1])]).params
    source, columns = str(ROOT / given["source"]), given["columns"].split(",")
    subject = load_subject(source, classes=given["classes"], columns=columns, id_column=given["id_column"])
    assert subject.x.shape[1] == len(columns)


def test_the_example_of_release_runs(vflens: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command, _ = _resolve(["release"])
    example = re.search(r"Example: vflens release (.+)", command.help or "", re.DOTALL)
    assert example is not None
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    monkeypatch.chdir(tmp_path)
    ended = vflens("release", *shlex.split(example[1]))
    assert ended.code == 0, ended.err
    assert (
        (tmp_path / "released.csv")
        .read_text(encoding="utf-8")
        .startswith("balance,contacts,loan,subscribed\n")
    )


def test_make_targets_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    bodies = [body for page in PAGES for body in fences(page.read_text(encoding="utf-8"), "sh")]
    targets = {t for body in bodies for t in re.findall(r"^make ([a-z-]+)", body, re.MULTILINE)}
    assert {"demo", "test", "check"} <= targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_exit_codes_are_those_of_the_errors() -> None:
    sentence = "Exit codes: " + ", ".join(f"{code} {word}" for code, word in exit_codes().items()) + "."
    assert sentence.startswith("Exit codes: 0 done, 1 failed, 2 configuration, 3 data, ")
    assert sentence.endswith(", 14 range, 15 threshold, 16 undecided, 130 interrupted.")
    assert sentence in str(COMMAND.epilog)


def test_nothing_names_this_machine() -> None:
    """Neither the paths of the machine on which it was written nor a package registry's address."""
    words = [
        "/" + "work/",
        ".." + "/shared",
        "/" + "opt/",
        "pypi" + ".org",
        "files.python" + "hosted",
        "index" + "-url",
    ]
    for path in nonempty(_sources()):
        text = path.read_text(encoding="utf-8", errors="replace")
        found = [w for w in words if w in text]
        assert not found or name_of(path) == ".ci/run", f"{name_of(path)} names {found}"


def _sources() -> list[Path]:
    built = re.compile(r"\.(?!ci$|dockerignore$|gitignore$)|(?:runs|build|dist)$|.*\.egg-info$")
    tops = [top for top in ROOT.iterdir() if not built.match(top.name)]
    files = [f for top in tops for f in ([top] if top.is_file() else top.rglob("*"))]
    return [f for f in files if f.is_file() and f.suffix not in (".png", ".parquet", ".gz", ".npz", ".pyc")]


def test_the_page_on_plugins_shows_the_examples() -> None:
    """Those that `vflens new` copies, which other tests run."""
    page = (ROOT / "docs/own-plugins.md").read_text(encoding="utf-8")
    attack, defence = (ROOT / f"examples/new_{kind}" for kind in ("attack", "defence"))
    assert fences(page, "python") == [
        (attack / "clamped_half_star.py").read_text(encoding="utf-8"),
        (defence / "top_scores.py").read_text(encoding="utf-8"),
    ]
    used, acts, package = map(tomllib.loads, fences(page, "toml"))
    assert package == tomllib.loads((attack / "pyproject.toml").read_text(encoding="utf-8"))
    assert used["attacks"] == [{"name": "clamped_half_star"}]
    assert acts["scenarios"][0]["defenses"] == [{"at": "coordinator", "name": "top_scores", "keep": 2}]


def test_the_readme_is_short_and_names_the_wheel_of_this_version() -> None:
    assert len(README.splitlines()) < 200
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wheels = re.findall(r"vflens-([\d.]+)-py3", README)
    assert set(wheels) == {project["version"]}
    extras = set(project["optional-dependencies"]) - {"dev", "docs"}
    assert set(re.findall(r"^\| `(\w+)` \|", section(README, "Install"), re.MULTILINE)) == extras


DOORS = ("Should I join?", "I have an attack", "I run a party")


@pytest.mark.parametrize("door", DOORS)
def test_a_door_has_five_pages(door: str) -> None:
    text = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    pages = re.findall(r"^(\d)\. \[[^\]]+\]\(([\w./-]+)\): ", section(text, door), re.MULTILINE)
    assert [int(number) for number, _ in pages] == [1, 2, 3, 4, 5]
    assert all((ROOT / "docs" / page).is_file() for _, page in pages)
    assert f"**{door}**" in README


def test_no_page_installs_vflens_from_nowhere() -> None:
    """It is on no index: a page says which wheel, or leads to README's Install."""
    wrong = [
        name_of(page)
        for page in PAGES
        if re.search(
            r"pip install\S* (?:-\S+ \S+ )*'?vflens(?:\[\w+\])?'?(?:\s|`|$)", page.read_text(encoding="utf-8")
        )
    ]
    assert wrong == []
