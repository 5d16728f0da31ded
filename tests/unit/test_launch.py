"""Where the launcher's processes run."""

from __future__ import annotations

from unittest.mock import patch

import pytest

from experiments import launch


@pytest.mark.parametrize(
    ("cores", "passive", "placed"),
    [
        ({4, 7}, 1, {1: [4], 2: [7], 3: [4]}),
        ({4, 7}, 2, {}),  # several work side by side: the system places them better
        ({4, 7}, 7, {}),
        ({4}, 1, {}),
        ({0, 1, 2}, 1, {}),
    ],
)
def test_only_three_processes_on_two_cores_are_placed(
    cores: set[int], passive: int, placed: dict[int, list[int]]
) -> None:
    roles = {1: "coordinator", 2: "active", **{3 + i: "passive" for i in range(passive)}}
    with (
        patch("os.sched_getaffinity", return_value=cores, create=True),
        patch("os.sched_setaffinity", create=True) as set_affinity,
    ):
        launch._place(roles)
    assert {call.args[0]: list(call.args[1]) for call in set_affinity.call_args_list} == placed
