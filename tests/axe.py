"""axe-core 4.14.1 (npm, MPL-2.0) in a page of Chromium: what a screen reader or a keyboard meets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_SCRIPT = Path(__file__).parent / "axe-core" / "axe.min.js"


def serious(page: Any) -> list[str]:
    """The serious and critical violations of ``page``: rule and places."""
    page.evaluate(_SCRIPT.read_text(encoding="utf-8"))
    found = page.evaluate("axe.run(document)")
    assert found["passes"], "axe looked at nothing"
    return [
        f"{one['id']}: {[node['html'][:200] for node in one['nodes'][:3]]}"
        for one in found["violations"]
        if one["impact"] in ("serious", "critical")
    ]
