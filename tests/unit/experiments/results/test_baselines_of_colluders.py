"""What parties guess from all their columns together is the baseline of attacks of all of them."""

from __future__ import annotations

from pathlib import Path

from runfolder import metric, write_run

from vflens.experiments.results.record import read_runs

ERRORS = {
    ("ls", "active"): 0.02,
    ("ls:mine", "active+b"): 0.01,
    ("ls:with-b", "active"): 0.02,  # a label says nothing: its party attacked alone
    ("ls:with-c", "active+c"): 0.01,
    ("ls:with-others", "active+c+b"): 0.01,
    ("imputation", "active"): 0.06,
    ("imputation:with-b", "active+b"): 0.03,
}


def test_a_guess_of_colluders_stands_beside_their_attacks_alone(tmp_path: Path) -> None:
    where = {"target": "passive", "scored_set": "predict", "rows": 360}
    figures = [metric("mse", mse, attack=a, adversary=who, **where) for (a, who), mse in ERRORS.items()]
    write_run(tmp_path, {}, extra=figures)
    (run,) = read_runs([tmp_path])
    assert {r.attack: r.blind for r in run.results if r.attack.startswith("ls")} == {
        "ls": 0.06,
        "ls:mine": 0.03,
        "ls:with-b": 0.06,
        "ls:with-c": 0.06,
        "ls:with-others": 0.03,
    }
