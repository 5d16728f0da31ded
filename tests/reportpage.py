"""A report as its reader sees it: panels, text, scripts."""

from __future__ import annotations

import json
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

from vflens.experiments.pages.report import write_report


class Page(HTMLParser):
    """What a browser would see of a report: tags with attributes, scripts, text outside of scripts.

    ``write`` may make another page.
    """

    def __init__(
        self, folders: list[Path], out: Path, write: Callable[[list[Path], Path], Path] = write_report
    ) -> None:
        super().__init__()
        self.html = write(folders, out).read_text(encoding="utf-8")
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.figures: list[dict[str, list[dict[str, object]]]] = []
        self.text = ""
        self.feed(self.html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.tags[-1] if self.tags else ("", {})
        if tag == "script" and data.strip():
            is_data = attributes.get("type") == "application/json"
            self.figures.append(json.loads(data)) if is_data else self.scripts.append(data)
        elif tag != "style":
            self.text += data

    @property
    def panels(self) -> set[str]:
        return {str(attributes["id"]) for tag, attributes in self.tags if tag == "section"}


def report(run: Path) -> Page:
    return Page([run], run.parent / "report.html")
