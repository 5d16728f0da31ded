"""Tables and options that ``vflens release`` refuses, each in one sentence."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from commandline import Run

REFUSED: dict[str, tuple[str, tuple[str, ...], int, str]] = {
    "text": ("a,y\n1,u\nx,v\n", ("--lambda", "1"), 3,
        "column 'a' holds text in data row 2, which is not a number: choose --encode a=ordinal"),
    "constant label": ("a,y\n1,u\n2,u\n", ("--lambda", "1"), 3,
        "label column 'y' is constant: name another --label"),
    "constant label as a number": ("a,y\n1,1\n2,1.0\n", ("--lambda", "1"), 3, "label column 'y' is constant"),
    "one row": ("a,y\n1,u\n", ("--lambda", "1"), 3, "label column 'y' is constant"),
    "no rows": ("a,y\n", ("--lambda", "1"), 3, "it holds no rows"),
    "nothing": ("", ("--lambda", "1"), 3, "its header is empty"),
    "infinite": ("a,y\n1,u\ninf,v\n", ("--lambda", "1"), 3,
        "infinite or beyond 1e+150, where squares overflow, in data row 2"),
    "huge": ("a,y\n1,u\n1e200,v\n", ("--lambda", "1"), 3,
        "infinite or beyond 1e+150, where squares overflow, in data row 2"),
    "short row": ("a,b,y\n1,2,u\n3\n", ("--lambda", "1"), 3, "data row 2 has 1 cell, the header 3 names"),
    "twice": ("a,a,y\n1,2,u\n3,4,v\n", ("--lambda", "1"), 3, "column 'a' occurs twice"),
    "rounded away": ("a,y\n1e20,u\n2,v\n", ("--lambda", "1"), 2,
        "column 'a' holds numbers where float64 has steps of"),
    "no size": ("a,y\n1,u\n2,v\n", (), 2,
        "choose exactly one of --lambda, --epsilon and, in [release] of a description, target_mse"),
    "two sizes": ("a,y\n1,u\n2,v\n", ("--lambda", "1", "--target-mse", "2"), 2,
        "--lambda and target_mse given"),
    "lambda": ("a,y\n1,u\n2,v\n", ("--lambda", "-1"), 2, "lambda holds -1.0: give finite numbers above 0"),
    "epsilon alone": ("a,y\n1,u\n2,v\n", ("--epsilon", "1"), 2, "--epsilon without --diameter"),
    "epsilon from data": ("a,y\n1,u\n2,v\n", ("--epsilon", "1", "--diameter", "1", "--pi", "standardise"), 2,
        "--epsilon with --pi standardise"),
    "diameters": ("a,y\n1,u\n2,v\n", ("--epsilon", "1", "--diameter", "1,2"), 2,
        "--diameter has 2 numbers, the table 1 column"),
    "refuted diameter": ("a,y\n1,u\n4,v\n", ("--epsilon", "1", "--diameter", "2.5"), 3,
        "two rows differ in column 'a' by more than --diameter 2.5"),
    "refuted diameter beside lambda": ("a,b,y\n1,0,u\n1,4,v\n", ("--lambda", "1", "--diameter", "2.5"), 3,
        "two rows differ in column 'b' by more than --diameter 2.5"),
    "empty seed": ("a,y\n1,u\n2,v\n", ("--lambda", "1", "--seed", ""), 2, "--seed is empty"),
    "theta beyond numbers": ("a,b,y\n1,2,u\n2,1,v\n",
        ("--mechanism", "correlated", "--m", "1", "--theta", "1e308"), 2,
        "theta is 1e+308: give a number from 1e-50 to 1e+50"),
    "box far away": ("a,y\n1,u\n2,v\n",
        ("--mechanism", "bounded", "--lambda", "1", "--lower", "1e12", "--upper", "2e12"), 2,
        "move the box nearer to 0"),
    "epsilon beyond numbers": ("a,y\n1,u\n2,v\n", ("--epsilon", "1e300", "--diameter", "1"), 2,
        "epsilon is 1e+300: give a number up to 17.2, for which Gaussian noise on 1 column"),
    "delta beyond numbers": ("a,y\n1,u\n2,v\n", ("--epsilon", "1", "--diameter", "1", "--delta", "1e-320"), 2,
        "delta is 1e-320: give a probability from 1e-300"),
    "diameter beyond numbers": ("a,y\n1,u\n2,v\n", ("--lambda", "1", "--diameter", "1e300"), 2,
        "diameter 1e+300 is 1e+300 deviations of the noise"),
    "target beyond numbers": ("a,y\n1,u\n2,v\n", ("--target-mse", "1e-300"), 2,
        "target_mse 1e-300 needs lambda = inf"),
    "noise too small for its epsilon": ("a,y\n1,u\n2,v\n", ("--epsilon", "1", "--diameter", "1e300"), 2,
        "for which no ε can be computed"),
    "negative diameter": ("a,y\n1,u\n2,v\n", ("--lambda", "1", "--diameter", "-1"), 2,
        "diameter holds -1.0: give finite numbers above 0"),
    "constant column": ("a,b,y\n1,5,u\n2,5,v\n", ("--lambda", "1", "--pi", "standardise"), 2,
        "column 'b' is constant"),
    "pi": ("a,y\n1,u\n2,v\n", ("--lambda", "1", "--pi", "nowhere.txt"), 2,
        "--pi 'nowhere.txt' cannot be read"),
    "not its option": ("a,y\n1,u\n2,v\n", ("--lambda", "1", "--m", "1"), 2,
        "m does not go with --mechanism gaussian"),
    "no m": ("a,b,y\n1,2,u\n2,1,v\n", ("--mechanism", "correlated"), 2, "--mechanism correlated needs m"),
    "theta of 0": ("a,b,y\n1,2,u\n2,1,v\n", ("--mechanism", "correlated", "--m", "1", "--theta", "0"), 2,
        "theta is 0.0: give a number from 1e-50 to 1e+50"),
    "rho of 0": ("a,b,y\n1,2,u\n2,1,v\n", ("--mechanism", "correlated", "--m", "1", "--rho", "0"), 2,
        "rho is 0.0: give a number from 1e-50 to 1e+50"),
    "m of 0": ("a,b,y\n1,2,u\n2,1,v\n", ("--mechanism", "correlated", "--m", "0"), 2,
        "m = 0: give a variance, a finite number above 0"),
    "m not a number": ("a,b,y\n1,2,u\n2,1,v\n", ("--mechanism", "correlated", "--m", "nan"), 2,
        "m = nan: give a variance"),
    "semicolons": ("a;b;y\n1;2;u\n2;1;v\n", ("--lambda", "1"), 3,
        "its header is one column, with other marks than a comma: separate columns by commas"),
    "three classes": ("a,b,y\n1,2,u\n2,1,v\n0,0,w\n", ("--mechanism", "correlated", "--m", "1"), 2,
        "the label has more than two values"),
    "one column": ("a,y\n1,u\n2,v\n", ("--mechanism", "correlated", "--m", "1"), 2,
        "leaves no room for noise"),
    "mechanism": ("a,y\n1,u\n2,v\n", ("--mechanism", "magic"), 2,
        "--mechanism 'magic': choose gaussian, laplace, bounded, correlated"),
    "mechanism misspelt": ("a,y\n1,u\n2,v\n", ("--mechanism", "gausian"), 2, ", did you mean gaussian?"),
    "missing misspelt": ("a,y\n1,u\n2,v\n", ("--lambda", "1", "--missing", "drop_rows"), 2,
        "--missing 'drop_rows': choose refuse or drop_row, did you mean drop_row?"),
    "box": ("a,y\n1,u\n2,v\n", ("--mechanism", "bounded", "--lambda", "1", "--lower", "2", "--upper", "1"), 2,
        "lower"),
    "encode": ("a,y\n1,u\nx,v\n", ("--lambda", "1", "--encode", "a=hash"), 2,
        "--encode 'a=hash': give ordinal, one_hot, one_hot:missing, number, date"),
    "encode whom": ("a,y\n1,u\nx,v\n", ("--lambda", "1", "--encode", "z=ordinal"), 2,
        "there is no column 'z' to release"),
    "id whom": ("a,y\n1,u\n2,v\n", ("--lambda", "1", "--id", "z"), 2, "has no column 'z'"),
    "nothing left": ("a,y\n1,u\n2,v\n", ("--lambda", "1", "--id", "a"), 2, "no column to release"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_released_is_refused_in_one_sentence(vflens: Run, tmp_path: Path, case: str) -> None:
    text, options, expected, sentence = REFUSED[case]
    (tmp_path / "t.csv").write_text(text)
    code, out, err = vflens(
        "release", tmp_path / "t.csv", "--label", "y", "--out", tmp_path / "o.csv", *options
    )
    assert (code, out) == (expected, "")
    assert sentence in err
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert [f.name for f in tmp_path.iterdir()] == ["t.csv"]


def test_a_cell_is_not_repeated(refused: Callable[..., str], tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(f"a,y\n1,u\n{'x' * 100_000},v\n")
    out = ("--out", tmp_path / "o.csv")
    words = refused(3, "release", tmp_path / "t.csv", "--label", "y", "--lambda", "1", *out)
    assert "xxx" not in words
    assert words.startswith(f"{tmp_path / 't.csv'}: column 'a' holds text in data row 2, ")
    assert "which is not a number: choose --encode a=ordinal" in words
