"""The OpenBLAS core types that the numerics are tried under differ from the machine's own."""

from __future__ import annotations

import core_types
import pytest


@pytest.mark.parametrize(
    ("own", "chosen"),
    [("Haswell", ["Prescott", "Sandybridge"]), ("SkylakeX", ["Haswell", "Prescott"]), ("", [])],
)
def test_two_other_kernels_are_chosen(own: str, chosen: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Builds answer so: Zen is Haswell's, and SkylakeX ends with an illegal instruction where the processor
    lacks it.
    """
    names = {"": own, "SkylakeX": own if own == "SkylakeX" else "", "Zen": "Haswell", "Prescott": "Katmai"}
    monkeypatch.setattr(
        core_types, "kernels", lambda core_type="": names.get(core_type, core_type) if own else ""
    )
    assert core_types.others() == chosen


def test_this_machine_names_its_kernels() -> None:
    assert core_types.kernels()
    assert core_types.kernels("Prescott")  # SSE3 is enough for it
