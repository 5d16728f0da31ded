"""``vflens release`` as a user meets it: files in, files out, one sentence for whatever cannot be."""

from __future__ import annotations

import hashlib
import io
import json
import re
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from commandline import STAGE, Run
from processes import ATTENDED, ENVIRONMENT
from releases import facts_of, numbers_in, table, vflens
from sklearn.datasets import load_breast_cancer
from thinned import first

from vflens.table_noise import preserving
from vflens.table_noise.svm import SvmSolution, solve_svm
from vflens.types import Array

_FIXTURES = (
    table,
    vflens,
)  # used by name
ROOT = Path(__file__).parents[2]
KEYS = {"mechanism", "parameters", "cramer_rao", "ldp", "not_protected"}


def _read(file: Path) -> pd.DataFrame:
    """By pandas where it can: it needs a package of its own for zstd."""
    if file.suffix == ".parquet":
        return pd.read_parquet(file)
    with pa.input_stream(str(file)) as stream:  # decompresses by suffix
        return pd.read_csv(io.BytesIO(stream.read()), float_precision="round_trip")


def test_names_order_and_label_are_kept_and_the_noise_has_the_size_it_should(
    vflens: Run, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    facts = facts_of(
        vflens,
        table,
        "--label",
        "y",
        "--id",
        "who",
        "--encode",
        "job=ordinal",
        "--lambda",
        "0.0016",
        "--out",
        out,
    )
    before, after = pd.read_csv(table), pd.read_csv(out)
    assert list(after.columns) == ["income", "age", "job", "y"]
    assert (after["y"] == before["y"]).all()
    codes = before["job"].map({c: i for i, c in enumerate(sorted(set(before["job"])))})
    noise = np.column_stack(
        [after["income"] - before["income"], after["age"] - before["age"], after["job"] - codes]
    )
    assert noise.std() == pytest.approx(0.0016**-0.25, rel=0.1)  # 1,200 draws: 2 %
    assert abs(noise.mean(axis=0)).max() < 5 * 0.0016**-0.25 / 20
    assert facts.keys() >= KEYS
    assert {"total", "min_row", "per_feature"} <= facts["cramer_rao"].keys()
    assert {"delta", "epsilon_theorem", "epsilon_exact"} <= facts["ldp"].keys()
    assert [c["column"] for c in facts["cramer_rao"]["per_feature"]] == ["income", "age", "job"]
    assert facts["cramer_rao"]["total"] == pytest.approx(400 * 3 / 0.0016**0.5)
    assert {"warnings", "undone_by_rounding", "encodings.job.categories"} <= set(facts["private"])
    assert facts == json.loads((tmp_path / "out.csv.certificate.json").read_text())
    assert facts["released"]["sha256"] == hashlib.sha256(out.read_bytes()).hexdigest()


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".csv.bz2", ".csv.zst", ".parquet"])
def test_every_format_holds_the_same_bits(vflens: Run, table: Path, tmp_path: Path, suffix: str) -> None:
    options = (
        "--label",
        "y",
        "--id",
        "who",
        "--keep-ids",
        "--encode",
        "one-hot",
        "--lambda",
        "1",
        "--seed",
        "s",
    )
    first, other = tmp_path / "first.csv", tmp_path / f"other{suffix}"
    facts_of(vflens, table, *options, "--out", first)
    facts_of(vflens, table, *options, "--out", other)
    pd.testing.assert_frame_equal(
        _read(other), pd.read_csv(first, float_precision="round_trip"), check_exact=True
    )
    again = tmp_path / "again.csv"
    assert vflens(other, "--label", "y", "--id", "who", "--lambda", "1", "--out", again)[0] == 0


def test_a_seed_repeats_a_release_and_only_that_one(vflens: Run, tmp_path: Path) -> None:
    x = np.arange(600.0).reshape(200, 3) / 7
    table = numbers_in(tmp_path, x)

    def noise(name: str, *options: str) -> Array:
        out = tmp_path / f"{name}.csv"
        assert vflens(table, "--out", out, *options)[0] == 0
        noise: Array = pd.read_csv(out, float_precision="round_trip").to_numpy() - x
        return noise

    a, b = (
        noise("a", "--lambda", "1", "--seed", "hush-7351"),
        noise("b", "--lambda", "1", "--seed", "hush-7351"),
    )
    np.testing.assert_array_equal(a, b)
    scaled = noise("c", "--lambda", "16", "--seed", "hush-7351")
    assert (
        abs(np.corrcoef(a.ravel(), scaled.ravel())[0, 1]) < 0.2
    )  # the same draws, scaled, would give the table away
    fresh = noise("d", "--lambda", "1"), noise("e", "--lambda", "1")
    assert not np.array_equal(*fresh)
    for file in tmp_path.glob("a.csv*"):
        assert b"hush-7351" not in file.read_bytes(), file.name


def test_the_page_opens_offline_and_escapes_what_the_table_says(vflens: Run, tmp_path: Path) -> None:
    frame = pd.DataFrame({"<script>alert(1)</script>": np.arange(50.0) ** 2, "b": np.arange(50) % 7})
    frame.to_csv(tmp_path / "t.csv", index=False)
    facts_of(vflens, tmp_path / "t.csv", "--lambda", "1", "--out", tmp_path / "o.csv")
    page = (tmp_path / "o.csv.certificate.html").read_text()
    assert "<script>alert(1)" not in page
    assert "default-src 'none'" in page
    own = page[: page.index("<script>/**")] if "<script>/**" in page else page[:60_000]
    assert not re.findall(r"""(?:src|href)=["']?(?:https?:)?//""", own)
    plots = re.findall(r'<script type="application/json">(.*?)</script>', page, re.S)
    assert len(plots) == 3  # the trade-off and two columns
    trade_off = json.loads(plots[0])["data"]
    assert [len(line["x"]) for line in trade_off] == [25, 25, 25, 3]
    assert trade_off[3]["x"][0] == 1.0


@pytest.mark.parametrize("m", ["1", "1e3", "1e6"])
def test_the_written_file_gives_the_same_classifier(vflens: Run, tmp_path: Path, m: str) -> None:
    bunch = load_breast_cancer()
    x, y = np.asarray(bunch.data), np.where(np.asarray(bunch.target) == 1, 1.0, -1.0)
    table, out = numbers_in(tmp_path, x, y), tmp_path / "out.csv"
    facts = facts_of(vflens, table, "--label", "y", "--mechanism", "correlated", "--m", m, "--out", out)
    released = pd.read_csv(out, float_precision="round_trip")
    before = solve_svm(x, y, theta=1.0, rho=1e-2)
    after = solve_svm(released.iloc[:, :30].to_numpy(), released["y"].to_numpy(), theta=1.0, rho=1e-2)
    assert facts["classifier"]["preserved"]
    assert before.change(after) < 1e-6
    assert (released.iloc[:, :30].to_numpy() - x).std() == pytest.approx(float(m) ** 0.5, rel=0.1)
    assert facts["cramer_rao"]["min_row"] == pytest.approx(28.4127 * float(m), rel=1e-5)  # MATH §9
    assert facts["ldp"]["epsilon_exact"] is None
    assert "exactly" in facts["ldp"]["reason"]


def test_the_classifier_is_solved_again_from_its_definition(
    vflens: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong β does not pass, and the check is no part of what the noise depends on."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    table = numbers_in(tmp_path, x, np.where(x[:, 0] + 0.3 * rng.normal(size=60) > 0, 1, -1))
    options = ["--label", "y", "--mechanism", "correlated", "--m", "1", "--seed", "4 owners", "--force"]
    out = tmp_path / "out.csv"
    assert facts_of(vflens, table, *options, "--out", out)["classifier"]["verified"] is None
    unverified = out.read_bytes()
    right = facts_of(vflens, table, *options, "--out", out, "--verify")
    assert right["classifier"]["verified"] < 1e-9
    assert out.read_bytes() == unverified
    assert "solved again in CVXPY it differs by" in Path(f"{out}.certificate.html").read_text("utf-8")
    monkeypatch.setattr(preserving, "solve_svm", lambda *given, **sizes: _moved(solve_svm(*given, **sizes)))
    wrong = facts_of(vflens, table, *options, "--out", out, "--verify")
    assert wrong["classifier"]["preserved"]
    assert wrong["classifier"]["verified"] == pytest.approx(1e-3)


def _moved(solution: SvmSolution) -> SvmSolution:
    return replace(solution, beta=solution.beta + 1e-3)


def test_where_the_classifier_moves_it_is_not_called_preserved(vflens: Run, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3))
    table = numbers_in(tmp_path, x, np.where(x[:, 0] + 0.3 * rng.normal(size=60) > 0, 1, -1))
    options = ("--label", "y", "--mechanism", "correlated", "--m", "1e20", "--out", tmp_path / "out.csv")
    code, out, err = vflens(table, *options, "--json")
    assert code == 0
    assert json.loads(out)["classifier"]["preserved"] is False
    assert "not classifier-preserving" in err


def test_undone_cells_are_counted_as_one_who_reads_the_file_counts_them(
    vflens: Run, table: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.csv"
    facts = facts_of(
        vflens, table, "--label", "y", "--id", "who", "--encode", "one-hot", "--lambda", "40", "--out", out
    )
    before, after = pd.read_csv(table), pd.read_csv(out)
    hot = [c for c in after.columns if c.startswith("job=")]
    guessed = after[hot].to_numpy().argmax(axis=1)
    assert facts["undone_by_rounding"]["job"] == np.mean(
        [hot[g] == f"job={j}" for g, j in zip(guessed, before["job"], strict=True)]
    )
    assert facts["undone_by_rounding"]["age"] == np.mean(after["age"].round() == before["age"])
    assert "income" not in facts["undone_by_rounding"]


def test_epsilon_and_target_error_choose_the_noise(vflens: Run, table: Path, tmp_path: Path) -> None:
    common = (
        table,
        "--label",
        "y",
        "--id",
        "who",
        "--encode",
        "ordinal",
        "--force",
        "--out",
        tmp_path / "o.csv",
    )
    private = facts_of(vflens, *common, "--epsilon", "1.5", "--diameter", "200,62,2")
    assert private["ldp"]["epsilon_exact"] == pytest.approx(1.5, rel=1e-9)
    for options in ((), ("--mechanism", "laplace"), ("--mechanism", "laplace", "--matched", "variance")):
        facts = facts_of(vflens, *common, "--target-mse", "12", *options)
        assert facts["cramer_rao"]["min_row"] == pytest.approx(12)
    bounded = facts_of(
        vflens, *common, "--mechanism", "bounded", "--lower=-1", "--upper", "3", "--lambda", "1"
    )
    assert bounded["parameters"]["mean"][0] > 0
    assert bounded["ldp"]["epsilon_exact"] is None
    assert "supports" in bounded["ldp"]["reason"]
    scaled = facts_of(vflens, *common, "--pi", "standardise", "--lambda", "1", "--diameter", "200")
    assert scaled["ldp"]["epsilon_exact"] is None
    assert "computed from the table" in scaled["ldp"]["reason"]


def test_pandas_is_not_loaded_to_release_a_table(tmp_path: Path) -> None:
    """It takes as long as the release of a table of Adult's size."""
    (tmp_path / "t.csv").write_text("a,b,y\n1,x,u\n2,,v\n4,x,v\n")
    program = (
        "import sys; sys.argv = ['vflens', 'release', 't.csv', '--label', 'y', '--encode', 'ordinal', "
        "'--missing', 'drop-row', "
        "'--lambda', '1', '--out', 'o.csv']; from vflens.cli.main import command_line; command_line()"
    )
    environment = ENVIRONMENT | {"PYTHONPATH": str(ROOT)}
    slow = "sum(m in sys.modules for m in ('pandas', 'scipy.optimize', 'scipy.interpolate', 'torch'))"
    command = [sys.executable, "-c", f"try:\n    {program}\nexcept SystemExit: pass\nsys.exit({slow})"]
    done = subprocess.run(command, check=False, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "o.csv").exists()


#: ``vflens`` with these arguments, which waits for a signal once the first rows are written.
HELD = """
import threading
from vflens.cli.main import main
from vflens.experiments.release.sink import TableSink

def held(sink, columns, write=TableSink.write):
    write(sink, columns)
    print("wrote", flush=True)
    threading.Event().wait()

TableSink.write = held
main()
"""


@pytest.mark.parametrize("sent", first([signal.SIGINT, signal.SIGKILL, signal.SIGTERM], 2))
def test_a_kill_in_the_middle_leaves_no_half_output(tmp_path: Path, sent: signal.Signals) -> None:
    table = numbers_in(tmp_path, np.random.default_rng(0).random((600, 8)))
    out = tmp_path / "made" / "o.csv"
    command = [*ATTENDED, sys.executable, "-c", HELD, "release", str(table), "--mechanism", "bounded"]
    command += ["--lower=-1", "--upper", "1", "--lambda", "1", "--out", str(out)]
    environment, pipe = ENVIRONMENT | {"PYTHONPATH": str(ROOT)}, subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "wrote\n"
        assert list(out.parent.glob(".release-*-o.csv"))
        process.send_signal(sent)
        _, err = process.communicate(timeout=60)
    assert process.returncode == (-sent if sent == signal.SIGKILL else 130)
    if sent != signal.SIGKILL:
        assert STAGE.sub("", err) == f"error: interrupted: {out} was not written\n"
    left = [f.name for f in out.parent.iterdir()]
    assert all(name.startswith(".release-") for name in left), left
    assert sent == signal.SIGKILL or not left
