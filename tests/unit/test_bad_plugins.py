"""Plug-ins of other packages that misbehave: one sentence and code 9, and the process lives on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from foreign import installed

import vflens as vl
from vflens.experiments.audit.bench import broken
from vflens.registry import ATTACKS, Registry

MODULES = {
    "at_import": "raise SystemExit(0)\n",
    "at_work": '''
from vflens import LinearAttack, linear_estimate

class Quits(LinearAttack):
    """Ends the process."""
    def solve(self, A, b, *, rng, moments=None):
        raise SystemExit(0)

class Fails(LinearAttack):
    """Has a bug."""
    def solve(self, A, b, *, rng, moments=None):
        return 1 / 0
''',
}
ENTRY_POINTS = """[vflens.attacks]
rude_import = rude.at_import:Quits
rude_quits = rude.at_work:Quits
rude_fails = rude.at_work:Fails
"""


@pytest.fixture(autouse=True)
def _package(tmp_path: Path) -> Iterator[None]:
    with installed("rude", MODULES, ENTRY_POINTS, tmp_path / "site"):
        yield


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("rude_import", "plug-in 'rude.at_import' does not import: SystemExit: 0"),
        ("rude_quits", "attack 'rude_quits' failed: SystemExit: 0"),
        ("rude_fails", "attack 'rude_fails' failed: ZeroDivisionError: division by zero"),
    ],
)
def test_a_plugin_does_not_end_the_process(name: str, words: str) -> None:
    with pytest.raises(vl.errors.PluginError, match=f"^{words}$"):
        vl.estimate(name, np.ones((1, 2)), np.ones((1, 1)))


def test_an_audit_names_attacks_that_do_not_import() -> None:
    assert broken(ATTACKS) == {"rude_import": "plug-in 'rude.at_import' does not import: SystemExit: 0"}


def test_a_bad_file_does_not_hide_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "plugins_of_ours"
    (home / "folder.py").mkdir(parents=True)
    (home / "__init__.py").write_text("")
    (home / "good.py").write_text('"""Good."""\n')
    (home / "wrong.py").write_text("def (")
    (home / "latin.py").write_bytes(b'"""\xe9"""')
    (home / "gone.py").symlink_to(home / "nowhere")
    monkeypatch.syspath_prepend(str(tmp_path))
    registry = Registry("plugins_of_ours", "none", "vflens.plugins.attack:Attack")
    assert {name: registry.summary(name) for name in registry.names()} == {
        "good": "Good.",
        "latin": "cannot be read (UnicodeDecodeError): mend latin.py",
        "wrong": "cannot be read (SyntaxError): mend wrong.py",
    }
