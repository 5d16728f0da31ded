"""``vflens check`` says how rows are aligned, and what it costs for the number of ids."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from processes import experiment_file

from vflens.experiments.run.check import check
from vflens.experiments.run.vertical.check import alignment_cost
from vflens.types import AlignMode

PASSIVE = Path(__file__).parents[4] / "examples/passive.toml"


@pytest.mark.parametrize(
    ("mode", "ids", "words"),
    [
        ("psi", [1_000_000, 1_000_000], "psi, about 200.0 s of one core for 2000000 ids"),  # 2 · 10⁶ · 100 µs
        ("psi", [20_000] * 3, "psi, about 8.1 s of one core for 60000 ids"),  # 6 · 10⁴ · 135 µs
        (
            "psi",
            [1_000_000],
            "psi, about 65.0 s of one core for 1000000 ids, and 0.035 ms for each id of the others",
        ),
        ("hmac", [1_000_000, 1_000_000], "hmac, about 14.0 s of one core for 2000000 ids"),
    ],
)
def test_what_it_costs(mode: AlignMode, ids: list[int], words: str) -> None:
    assert alignment_cost(mode, ids) == words


def test_own_file(tmp_path: Path) -> None:
    file = tmp_path / "passive.toml"
    text = PASSIVE.read_text(encoding="utf-8").replace("../runs", f"{tmp_path}/runs")
    before, _, tls = text.replace('file = "bank', f'file = "{PASSIVE.parent}/bank').partition("[tls]")
    file.write_text(f"{before}[[peers]]{tls.partition('[[peers]]')[2]}", encoding="utf-8")
    file.chmod(0o600)
    assert check(file)["alignment"] == (
        "psi, about 0.0 s of one core for 200 ids, and 0.035 ms for each id of the others"
    )


@pytest.mark.parametrize(("asked", "mode"), [({}, "hmac"), ({"align": {"mode": "psi"}}, "psi")])
def test_an_experiment(tmp_path: Path, asked: dict[str, dict[str, str]], mode: str) -> None:
    assert check(experiment_file(tmp_path, **asked))["alignment"] == (
        f"{mode}, about 0.0 s of one core for 180 ids"
    )


def test_more_ids_than_the_limit_are_refused(tmp_path: Path, refused: Callable[..., str]) -> None:
    file = experiment_file(tmp_path, limits={"max_ids": 179})
    assert refused(2, "check", file) == "limits.max_ids = 179: the data parties have 180 ids, raise it"


def test_a_message_with_the_order_of_all_rows_has_to_fit(tmp_path: Path, refused: Callable[..., str]) -> None:
    """The ids fit: a message has 16,384 of them."""
    data = {"name": "synthetic", "rows": 140_000, "features": 2, "classes": 2, "informative": 2}
    file = experiment_file(tmp_path, data=data, align={"mode": "psi"}, limits={"message_mib": 1})
    assert refused(2, "check", file) == (
        "limits.message_mib = 1: the order of 140000 rows take 1.1 MiB, raise it"
    )
