"""A DPIA as Markdown, as JSON and as a page that prints."""

import json
import re
from pathlib import Path

from vflens.errors import printable
from vflens.experiments.evidence.dpia import Cells, Dpia
from vflens.experiments.pages.page import templates, write_page
from vflens.storage.files import write_whole

_MARKS = re.compile(r"[\\`|*_<>\[\]#&~$@]")
_ADDRESS = re.compile(r"(\b(?:https?|ftp|mailto|xmpp|www))([:.])", re.IGNORECASE)
_LIST = re.compile(r"^(\d*)([-+.)])(?=\s|$)")
TITLE = "Data protection impact assessment: what is reconstructed"


def markdown(made: Dpia) -> str:
    """The document as Markdown; names cannot add markup."""
    parts = [f"# {TITLE}"]
    for section in made.sections():
        parts.append(f"## {section.title}")
        parts += [f"- {_plain(s)}" for s in section.sentences]
        parts += [_table(table) for table in section.tables if table.rows]
        if not section.sentences and not any(t.rows for t in section.tables):
            parts.append("Nothing.")
    return "\n\n".join(parts).replace("\n\n- ", "\n- ") + "\n"


def _table(table: Cells) -> str:
    rows = (table.head, ("---",) * len(table.head), *table.rows)
    return "\n".join(f"| {' | '.join(map(_plain, row))} |" for row in rows)


def _plain(text: str) -> str:
    """``text`` on one line, without markup: marks, entities, addresses that become links, and lists."""
    escaped = _MARKS.sub(r"\\\g<0>", printable(" ".join(text.split())))
    return _LIST.sub(r"\1\\\2", _ADDRESS.sub(r"\1\\\2", escaped))


def page(made: Dpia) -> str:
    """The document as a page, which loads nothing."""
    return templates().get_template("dpia.html.j2").render(title=TITLE, sections=made.sections())


def write_dpia(made: Dpia, out: Path) -> dict[str, str]:
    """Write ``out`` (a page), and beside it the same as Markdown and JSON; the files by kind.

    Raises:
        StorageError: one cannot be written.
    """
    write_page(out, page(made))
    text = json.dumps(made.json, ensure_ascii=False, indent=2, allow_nan=False)
    write_whole(out.with_suffix(".md"), markdown(made).encode(), remedy="another --out")
    write_whole(out.with_suffix(".json"), text.encode(), remedy="another --out")
    files = {"page": out, "markdown": out.with_suffix(".md"), "json": out.with_suffix(".json")}
    return {kind: str(file) for kind, file in files.items()}
