"""``vflens check`` says how rows are aligned, and what it costs for the number of ids."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import tomli_w
from commandline import Run
from processes import experiment_file

from vflens.experiments.run.check import check
from vflens.experiments.run.vertical.check import alignment_cost, shared_rows
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


def _of_two_files(folder: Path, passive: list[str], active: list[str]) -> Path:
    """An experiment on the files of two parties, whose rows have these ids."""
    for name, ids, more in (("passive", passive, "a"), ("active", active, "b,y")):
        rows = [
            f"{i},{j % 7}{',' + ['no', 'yes'][j % 2] if name == 'active' else ''}" for j, i in enumerate(ids)
        ]
        (folder / f"{name}.csv").write_text("\n".join([f"id,{more}", *rows]) + "\n", encoding="utf-8")
    files = {"passive": {"file": "passive.csv"}, "active": {"file": "active.csv", "label_column": "y"}}
    facts = {"name": "e", "seed": 1, "out": str(folder / "runs"), "predict_share": 0.4, "files": files}
    scenario = {"attacks": [{"name": "half_star"}], "scenarios": [{"name": "run"}]}
    granted = {"disclose": [{"what": "parameters", "to": "active"}], "training": {"epochs": 1}}
    (folder / "e.toml").write_text(tomli_w.dumps({**facts, **scenario, **granted}), encoding="utf-8")
    return folder / "e.toml"


@pytest.mark.parametrize(
    "odd",
    [str.lower, lambda i: f"00{i}", lambda i: f" {i}", lambda i: i.replace("-", " - "), lambda i: f"x{i}"],
)
def test_check_run_and_report_say_how_many_rows_are_shared(
    tmp_path: Path, vflens: Run, odd: Callable[[str], str]
) -> None:
    ids = [f"K-{i:02d}" for i in range(1, 41)]
    file = _of_two_files(tmp_path, [*ids[:30], *map(odd, ids[30:])], [*ids, *(f"z{i}" for i in range(20))])
    words = "active: 30 of 60 rows are shared; passive: 30 of 40 rows are shared"
    near = "; 10 more would match but for case, spaces, marks or leading zeros"
    assert check(file)["shared"] == words + ("" if odd("K-01") == "xK-01" else near)
    done = vflens("run", file, "--in-process")
    for party, own in (("active", 60), ("passive", 40)):
        assert f"note: e/run, {party}: 30 of {own} rows are shared" in done.out
    own_folder = tmp_path / "runs/e/run/passive"  # what a party of its own can know
    report = tmp_path / "own.html"
    assert vflens("report", own_folder, "--out", report).code == 0
    page = report.read_text(encoding="utf-8")
    assert "passive: 30 of 40 rows are shared." in page
    assert "of 60 rows" not in page


@pytest.mark.parametrize(
    ("passive", "near"),
    [
        ([f"{i:06d}" for i in range(1, 31)], 30), ([f"{i}.0" for i in range(1, 31)], 30),
        (["".join(chr(0xFF10 + int(c)) for c in str(i)) for i in range(1, 31)], 30),
        ([f"\u200b{i}" for i in range(1, 31)], 30), ([f"{i}0" for i in range(31, 61)], 0),
    ],
)  # fmt: skip
def test_where_no_row_is_shared_nearly_equal_ids_are_counted(
    tmp_path: Path, refused: Callable[..., str], passive: list[str], near: int
) -> None:
    words = refused(4, "check", _of_two_files(tmp_path, passive, [str(i) for i in range(1, 31)]))
    more = f"; {near} more would match but for case, spaces, marks or leading zeros"
    assert words.startswith("the parties share no row (active: 30, passive: 30 rows): check id_column")
    assert words.endswith(more) == bool(near)


def test_zeros_within_ids_tell_them_apart() -> None:
    ids = {"active": np.array([b"105", b"1000", b"x"]), "passive": np.array([b"1005", b"1", b"x"])}
    assert "more would match" not in shared_rows(ids, 1, one_owner=True)


def test_others_tables_are_not_compared() -> None:
    """An experiment that is no laboratory stands for several owners: none may know the other's odd ids."""
    ids = {"active": np.array([b"A1", b"a2"]), "passive": np.array([b"A1", b"A2"])}
    counts = "active: 1 of 2 rows are shared; passive: 1 of 2 rows are shared"
    assert shared_rows(ids, 1, one_owner=False) == counts
    assert shared_rows(ids, 1, one_owner=True).startswith(f"{counts}; 1 more")
