"""What mkdocs needs beyond docs/: pages from outside it, lists of plug-ins, executed tutorials, public names.

The pages also stay readable in the repository, so their links lead to files of the repository. On the site
a file outside docs/ that a page links becomes a page of its own under ``repository/``, a folder becomes its
list of pages, and a notebook becomes the page of its executed cells.
"""

from __future__ import annotations

import inspect
import posixpath
import re
from importlib import import_module
from pathlib import Path
from typing import Any

from notebooks import executed

ROOT = Path(__file__).parents[1]
#: Folders of pages that have no index of their own → its heading.
LISTED = {"attacks": "Attacks", "defenses": "Defences"}
#: Where a page lies → its weight in a search: guides come before decisions, sources and licences.
WEIGHTS = {"repository/": 0.2, "adr/": 0.3, "attacks/": 0.8, "defenses/": 0.8}
_LINK = re.compile(r"(\]\()([^)\s#:]+)(#[^)\s]*)?(\))")
_FETCHED = re.compile(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
_ROLE = re.compile(r":[a-z]+:<code>~?(?:[\w.]*\.)?(\w+)</code>")
_FENCE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)


def place(file: str) -> str:
    """Where the site has a file or folder of the repository (both as POSIX paths from their roots)."""
    if not file.startswith("docs/"):
        return f"repository/{file}" if file.endswith(".md") else f"repository/{file}.md"
    inside = file.removeprefix("docs/").removesuffix("/")
    if inside in LISTED:
        return f"{inside}/index.md"
    return inside.removesuffix(".ipynb") + ".md" if inside.endswith(".ipynb") else inside


def origin(page: str) -> str:
    """The file of the repository whose links a page of the site has."""
    return page.removeprefix("repository/") if page.startswith("repository/") else f"docs/{page}"


def relinked(text: str, page: str) -> str:
    """``text`` of a page with every link to a file of the repository led to its place on the site."""
    here = posixpath.dirname(origin(page))

    def led(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(here, link[2]))
        there = posixpath.relpath(place(target), posixpath.dirname(page))
        return f"{link[1]}{there}{link[3] or ''}{link[4]}"

    parts = _FENCE.split(text)  # every other part is a fence: it stays
    return "".join(part if i % 2 else _LINK.sub(led, part) for i, part in enumerate(parts))


def outside(pages: dict[str, str]) -> dict[str, str]:
    """The files outside docs/ that ``pages`` (place → text) link, and those that they link, as pages."""
    found: dict[str, str] = {}
    waiting = dict(pages)
    while waiting:
        page, text = waiting.popitem()
        here = posixpath.dirname(origin(page))
        for link in _LINK.finditer(_FENCE.sub("", text)):
            target = posixpath.normpath(posixpath.join(here, link[2]))
            if target.startswith("docs/") or not (ROOT / target).is_file() or place(target) in found:
                continue
            body = (ROOT / target).read_text(encoding="utf-8")
            if not target.endswith(".md"):
                body = f"# {target}\n\n```{Path(target).suffix[1:] or 'text'}\n{body}\n```\n"
            found[place(target)] = waiting[place(target)] = body
    return found


def listing(folder: str) -> str:
    """A page that names the pages of a folder."""
    pages = sorted((ROOT / "docs" / folder).glob("*.md"))
    titles = {p.name: p.read_text(encoding="utf-8").split("\n", 1)[0].removeprefix("# ") for p in pages}
    lines = [f"- [{title}]({name})" for name, title in titles.items()]
    return "\n".join([f"# {LISTED[folder]}", "", *lines, ""])


def undocumented() -> list[str]:
    """Public names that docs/api.md does not show, or that have no docstring."""
    package = import_module("vflens")
    shown = set(re.findall(r"^::: (\S+)$", (ROOT / "docs/api.md").read_text(encoding="utf-8"), re.MULTILINE))
    return [
        name
        for name in package.__all__
        if f"vflens.{name}" not in shown or not inspect.getdoc(getattr(package, name))
    ]


def on_config(config: Any) -> Any:
    """Refuse undocumented names; list the pages of ``FOLDER/*`` in the navigation."""
    from mkdocs.exceptions import PluginError

    if missing := undocumented():
        raise PluginError(f"docs/api.md must show these public names, each with a docstring: {missing}")
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add what is written here; a notebook is replaced by its page."""
    from mkdocs.structure.files import File

    def add(place: str, text: str) -> None:
        files.append(File.generated(config, place, content=text))

    for file in list(files):
        if file.src_uri.endswith(".ipynb"):
            files.remove(file)
            add(file.src_uri.removesuffix(".ipynb") + ".md", executed(Path(file.abs_src_path)))
    for folder in LISTED:
        add(f"{folder}/index.md", listing(folder))
    for place, text in outside({f.src_uri: f.content_string for f in files.documentation_pages()}).items():
        add(place, text)
    config.nav = _expanded(config.nav, sorted(f.src_uri for f in files.documentation_pages()))
    return files


def _expanded(entries: list[Any], pages: list[str]) -> list[Any]:
    """``entries`` of a section with the pages of each folder in place of ``FOLDER/*``, its index first."""
    expanded: list[Any] = []
    for entry in entries:
        if isinstance(entry, dict):
            expanded.append({title: _expanded(inner, pages) for title, inner in entry.items()})
            continue
        inside = [p for p in pages if entry.endswith("/*") and p.startswith(entry[:-1])]
        index = [p for p in inside if posixpath.basename(p) in ("index.md", "README.md")]
        expanded += [*index, *(p for p in inside if p not in index)] or [entry]
    return expanded


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Lead the links of every page to places of the site, and weigh it for searches."""
    page.meta["search"] = {"boost": weight(page.file.src_uri)}
    return relinked(markdown, page.file.src_uri)


def weight(page: str) -> float:
    """How much a page of the site counts in a search."""
    return next((w for folder, w in WEIGHTS.items() if page.startswith(folder)), 2.0)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Show what a docstring marks as a name, such as :class:`~vflens.Run`, as the name."""
    return _ROLE.sub(r"<code>\1</code>", html)


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Refuse a page that a browser cannot show without asking another site."""
    from mkdocs.exceptions import PluginError

    if fetched := _FETCHED.search(output):
        raise PluginError(f"{page.file.src_uri} fetches from another site: {fetched[0]}")
    return output
