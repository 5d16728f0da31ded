"""The page of each plug-in says all that such a page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commandline import Run, strict, vflens

from vflens.plugins.attack import Attack, installed_attack
from vflens.registry import ATTACKS, DEFENSES

_FIXTURES = (vflens,)  # used by name
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


def _known() -> set[tuple[str, str]]:
    """Each defence and an attack that is made for it."""
    kinds = {name: installed_attack(name) for name in ATTACKS.names()}
    return {(defense, name) for name, kind in kinds.items() if kind is not None for defense in kind.knows}


def test_a_page_of_a_defence_names_its_adaptive_attacks_or_says_that_nobody_knows_one() -> None:
    words = set()
    for defense in DEFENSES.names():
        text = (ROOT / "docs/defenses" / f"{defense}.md").read_text(encoding="utf-8")
        _, mark, after = text.partition("**Adaptive attack**:")
        assert mark, defense
        sentence = after.partition("\n\n")[0]
        named = re.findall(r"\]\(\.\./attacks/(\w+)\.md\)", sentence)
        assert named or "nobody here knows one" in sentence, defense
        words |= {(defense, attack) for attack in named}
    assert words == _known()
    assert len({defense for defense, _ in words}) >= 6


@pytest.mark.parametrize(("defense", "attack"), sorted(_known()))
def test_a_page_of_an_adaptive_attack_names_its_defences(defense: str, attack: str) -> None:
    text = (ROOT / "docs/attacks" / f"{attack}.md").read_text(encoding="utf-8")
    assert f"(../defenses/{defense}.md)" in text


def test_what_is_new_says_so_on_its_page_and_in_the_list(vflens: Run) -> None:
    """One declaration, which the list reads without an import."""
    kinds: dict[str, type[Attack]] = {name: ATTACKS.get(name) for name in ATTACKS.names()}
    since = {name: kind.since for name, kind in kinds.items() if kind.since}
    assert len(since) >= 1
    pages = {page.stem: page.read_text(encoding="utf-8") for page in (ROOT / "docs/attacks").glob("*.md")}
    marked = {
        name: re.findall(r"^\*New in (\S+), may change\.\*$", text, re.MULTILINE)
        for name, text in pages.items()
    }
    assert {name: found for name, found in marked.items() if found} == {n: [of] for n, of in since.items()}
    listed = strict(vflens("attacks", "--json").out)
    shown = {name: re.findall(r" \[new in (\S+), may change\]$", text) for name, text in listed.items()}
    assert {name: found for name, found in shown.items() if found} == {n: [of] for n, of in since.items()}
