"""The page of each plug-in says all that such a page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
#: What every page says, in order; a page may say more in between.
SECTIONS = {
    "attacks": ["What it needs", "What it does", "What bounds it", "How to run it"],
    "defenses": ["Who applies it", "What it needs", "What it does", "What it guarantees", "How to run it"],
}


@pytest.mark.parametrize("folder", SECTIONS)
def test_every_plugin_page_says_all_and_has_a_picture(folder: str) -> None:
    pages = sorted((ROOT / "docs" / folder).glob("*.md"))
    assert pages
    for page in pages:
        text = page.read_text(encoding="utf-8")
        headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
        assert [h for h in headings if h in SECTIONS[folder]] == SECTIONS[folder], page.stem
        assert re.search(r"!\[.+\]\(.+\.svg\)", text), page.stem
