"""The fragments of ``changes``: one file a change, checked; ``make release`` gathers them into CHANGELOG.md.

towncrier gathers such files too. It knows neither doors nor that a fix names a release that has the fault.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
KINDS = ("Added", "Changed", "Fixed", "Security")
DOORS = {"table": "Your own table", "federation": "A federation", "research": "Research"}
_HEAD = re.compile(rf"({'|'.join(KINDS)}), ({'|'.join(DOORS)})(?:, since: (\S+))?")


class Fragment(NamedTuple):
    """A change: its kind, its door, and what a user sees, in one line."""

    kind: str
    door: str
    text: str

    @property
    def line(self) -> str:
        """It in CHANGELOG.md."""
        return f"- {self.kind}: {self.text}"


def releases(changelog: str) -> list[str]:
    """The versions that ``changelog`` has a section of, the newest first."""
    return re.findall(r"^## (\d+\.\d+\.\d+)", changelog, re.MULTILINE)


def fragment(file: Path, released: list[str]) -> Fragment:
    """The change in ``file``.

    Raises:
        SystemExit: its first line is no kind and door, it has no text, or it mends what none of the
            ``released`` versions has.
    """
    head, _, rest = file.read_text(encoding="utf-8").partition("\n")
    found, text = _HEAD.fullmatch(head.strip()), " ".join(rest.split())
    if found is None:
        kinds, doors = ", ".join(KINDS), ", ".join(DOORS)
        raise SystemExit(f"{file}: the first line is {head!r}: write KIND, DOOR of {kinds} and {doors}")
    kind, door, since = found.groups()
    if not text:
        raise SystemExit(f"{file}: no sentence follows: say what a user sees")
    if kind == "Fixed" and since is None:
        raise SystemExit(f"{file}: a fix names the release with the fault: add `, since: {released[0]}`")
    if since is not None and since not in released:
        raise SystemExit(
            f"{file}: since: {since} is no release ({', '.join(released)}): nobody met the fault, say how "
            "it is now under Added or Changed"
        )
    return Fragment(kind, door, text)


def fragments(root: Path) -> dict[Path, Fragment]:
    """The changes in ``root/changes`` by file, checked."""
    released = releases((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    files = sorted(f for f in (root / "changes").glob("*.md") if f.name != "README.md")
    return {file: fragment(file, released) for file in files}


def section(version: str, changes: list[Fragment]) -> str:
    """The section of ``version``, by door and kind."""
    parts = [f"## {version}\n"]
    for door, title in DOORS.items():
        of_door = sorted((c for c in changes if c.door == door), key=lambda c: KINDS.index(c.kind))
        if of_door:
            parts.append("\n".join([f"### {title}\n", *(c.line for c in of_door), ""]))
    return "\n".join(parts)


def gather(root: Path) -> None:
    """Put the fragments of ``root`` into its CHANGELOG.md and remove them; nothing where there are none.

    Raises:
        SystemExit: a fragment is wrong, or of a released version; or all are gathered, to be committed.
    """
    found = fragments(root)
    if not found:
        return
    log = root / "CHANGELOG.md"
    text = log.read_text(encoding="utf-8")
    version = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    if version not in releases(text):
        before, mark, after = text.partition("\n## ")
        new = log.with_suffix(".new")  # whole or not at all
        new.write_text(f"{before}\n{section(version, list(found.values()))}{mark}{after}", encoding="utf-8")
        new.replace(log)
    elif not all(c.line in text for c in found.values()):  # else an interrupted call goes on
        raise SystemExit(f"CHANGELOG.md has {version} already: raise the version in pyproject.toml first")
    for file in found:
        file.unlink()
    subprocess.run(["git", "add", "-A", "CHANGELOG.md", "changes"], cwd=root, check=True)
    raise SystemExit(f"CHANGELOG.md has the changes of {version} now: commit it, then make release again")


if __name__ == "__main__":
    gather(ROOT) if sys.argv[1:] == ["gather"] else fragments(ROOT)
