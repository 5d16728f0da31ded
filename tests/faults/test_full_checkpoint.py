"""A disk that is full when a checkpoint is written: a numbered error; the run goes on from what is there."""

from __future__ import annotations

from pathlib import Path

import pytest
from cells import POINT_FAULTS, Undisturbed, check
from world import dealt, quick


@pytest.mark.parametrize("kind", ["whole transcript", "sampled transcript"])
def test_it_ends_the_run_which_goes_on_to_the_same_bits(tmp_path: Path, kind: str) -> None:
    with quick():
        undisturbed = Undisturbed.of(dealt(tmp_path / "dealt", kind), tmp_path / "undisturbed")
        for who in ("passive", "active", "coordinator"):
            for point in ("begun", "written"):
                ended = check(
                    undisturbed,
                    "plain",
                    lambda world, who=who, point=point: world.fail(  # type: ignore[misc]
                        who, f"checkpoint.npz.{point}", 2, POINT_FAULTS["full"]
                    ),
                )
                assert ended == "StorageError", (who, point)
