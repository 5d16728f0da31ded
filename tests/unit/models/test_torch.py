"""torch: only where it is needed, with one sentence where it is missing, and its generator left alone."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch

from vflens.errors import install_extra
from vflens.models.networks.device import placed
from vflens.models.networks.generator import keyed
from vflens.registry import ATTACKS, DEFENSES

ROOT = Path(__file__).parents[3]


def test_a_gpu_that_is_there_is_asked_for_algorithms_that_repeat_their_bits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    asked: list[tuple[bool, bool]] = []
    monkeypatch.setattr(
        torch, "use_deterministic_algorithms", lambda mode, warn_only: asked.append((mode, warn_only))
    )
    assert placed("cuda") == torch.device("cuda")
    assert asked == [(True, True)]
    assert os.environ["CUBLAS_WORKSPACE_CONFIG"] == ":4096:8"


def test_without_torch_one_sentence_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\ntry:\n    import vflens.models.networks\nexcept Exception "
        "as e:\n    print(type(e).__name__, e)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == (f"ConfigError split networks need torch: {install_extra('deep')}")


def _imported(module: str, found: set[str] | None = None) -> set[str]:
    """What is imported with ``module``: at the head of its file, or of one that stands there."""
    found = set() if found is None else found
    path = ROOT / module.replace(".", "/")
    file = next((f for f in (path.with_suffix(".py"), path / "__init__.py") if f.exists()), None)
    if module in found or (module.startswith("vflens") and file is None):
        return found  # known, or a name in a module
    found.add(module)
    for name in _head(file) if file else ():
        _imported(name, found)
    return found


@cache
def _head(file: Path) -> list[str]:
    """The names that a file imports at its head."""
    names: list[str] = []
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def test_without_torch_every_plug_in_loads_or_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['torch'] = None\n"
        "from vflens.registry import ATTACKS, DEFENSES\n"
        "for registry in (ATTACKS, DEFENSES):\n"
        "    for name in registry.names():\n"
        "        try:\n            registry.get(name)\n"
        "        except Exception as e:\n            print(type(e).__name__, e)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    registries = {"attacks": ATTACKS, "defenses": DEFENSES}
    plug_ins = [f"vflens.{folder}.{name}" for folder, found in registries.items() for name in found.names()]
    needing = [name for name in plug_ins if "torch" in {top.split(".")[0] for top in _imported(name)}]
    assert 0 < len(needing) < len(plug_ins)
    assert run.stdout.splitlines() == [
        f"ConfigError plug-in {name!r} needs torch: {install_extra('deep')}" for name in needing
    ]


def test_what_everybody_imports_does_not_import_torch() -> None:
    code = (
        "import sys, vflens.models.settings, vflens.plugins.defense, vflens.member.gate, "
        "vflens.plugins.views.vertical, vflens.clients.vertical.active, "
        "vflens.coordinator.vertical.coordinator, vflens.cli.main; "
        "print('torch' in sys.modules)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"


def test_the_generator_of_torch_is_as_it_was_after_a_party_s_draws() -> None:
    """Else a notebook's own draws would follow from the secret of the party that it trained."""
    torch.manual_seed(7)
    expected = torch.rand(3).tolist()
    torch.manual_seed(7)
    drawn = []
    for seed in range(2):
        with keyed(np.random.default_rng(seed)):
            drawn.append(torch.rand(1).item())
    assert drawn[0] != drawn[1]
    assert torch.rand(3).tolist() == expected
