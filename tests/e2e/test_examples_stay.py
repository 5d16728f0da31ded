"""Every example gives, bit for bit, what it gave when the files in golden/ were written.

A change that only moves code must not change them. One that changes numbers on purpose writes them anew with
``make golden`` and says why. Sums have another order under another kernel of BLAS; there the figures must
agree closely.
"""

from __future__ import annotations

import hashlib
import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from processes import ENVIRONMENT, VFLENS
from pyarrow import parquet

from vflens.experiments.results.folders import read_party

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
OURS = ("train_seconds", "predict_seconds", "steps_per_second")  # of the machine, not of the experiment
CHAINED = ("chain.bin", "digests.bin")  # follow from the other files
LATER = (  # measured since golden/ was written
    *("psnr", "ssim", "blind_psnr", "blind_ssim"),
    *("column_unit", "column_right", "column_blind_right", "column_tolerance"),
    *(
        "column_mse_stderr",
        "column_stderr",
        "column_found",
        "rmse_stderr",
        "column_blind_found",
        "half_width",
        "found",
        "blind_found",
    ),
    *("imputed_found", "stderr", "tolerance"),
    *("cells_found", "rows_found", "rows_unique", "blind_cells_found", "blind_rows_found", "exposed_mse"),
    "blind_rows_unique",
)
BANK = ["examples/bank_passive.csv", "--id-column", "id", "--columns", "age,income,credit_score"]
COMMANDS: dict[str, list[str]] = {
    "demo": ["run", "examples/demo.toml", "--in-process", "--out", "{out}"],
    "own_csv": ["run", "examples/own_csv.toml", "--out", "{out}"],
    "number": ["run", "examples/number.toml", "--in-process", "--out", "{out}"],
    "demo_deep": ["run", "examples/demo_deep.toml", "--in-process", "--out", "{out}"],
    "sweep": ["sweep", "examples/sweep.toml", "--out", "{out}"],
    "audit": ["audit", *BANK, "--classes", "2", "--models", "3", "--json", "--out", "{out}/audit.html"],
    "rvg-fig4": ["reproduce", "rvg-fig4", "--quick", "--out", "{out}"],
    "release": [
        *("release", "examples/bank_active.csv", "--id", "id", "--label", "subscribed", "--lambda", "1"),
        *("--pi", "standardise", "--seed", "5", "--out", "{out}/released.csv"),
    ],
}
#: Numbers that depend on the kernels that this machine takes, of NumPy, its BLAS and torch.
FINGERPRINT = """
import hashlib, numpy as np
a = np.random.default_rng(0).normal(size=(97, 61))
parts = [a.T @ a, a @ a[:61].T, np.exp(a), np.linalg.svd(a)[1], np.linalg.solve(a[:61].T @ a[:61], a[:61].T)]
import torch
with torch.random.fork_rng():
    t = torch.from_numpy(a)
    convolved = torch.nn.functional.conv2d(t[None, None], t[None, None, :5, :5])
    parts += [(t.T @ t).numpy(), torch.tanh(t).numpy(), convolved.numpy()]
print(hashlib.blake2b(b"".join(p.tobytes() for p in parts), digest_size=12).hexdigest())
"""


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=12).hexdigest()


def _arrays(file: Path) -> bytes:
    with np.load(file) as found:
        return b"".join(name.encode() + found[name].tobytes() for name in sorted(found))


def _digests(out: Path) -> Iterator[tuple[str, str]]:
    """What crossed the wire, and what attacks made of it."""
    for file in sorted(out.rglob("*")):
        name = file.relative_to(out).as_posix()
        if file.name in CHAINED:
            continue
        if file.parent.name in ("transcript", "released") and file.is_file():
            yield name, _digest(file.read_bytes())
        elif file.parent.name == "estimates":
            yield name, _digest(_arrays(file))


def _figures(out: Path) -> Iterator[tuple[str, float]]:
    """Every number of every table; whole columns of a long one as their norm."""
    for file in sorted(out.rglob("*.parquet")):
        if file.name == "data.parquet":
            continue
        rows = parquet.read_table(file).to_pylist()
        rows = [row for row in rows if row.get("metric") not in (*OURS, *LATER)]
        rows = [{**row, "value": v} for row in rows for v in row.pop("values", None) or [row.get("value")]]
        for column in sorted(
            {name for row in rows for name, v in row.items() if isinstance(v, float)} - {*LATER}
        ):
            values = [row[column] for row in rows if row[column] is not None and math.isfinite(row[column])]
            yield f"{file.relative_to(out).as_posix()}:{column}", math.sqrt(math.fsum(v * v for v in values))
    for file in sorted(out.rglob("*.csv")):
        table = np.genfromtxt(file, delimiter=",", skip_header=1)
        yield file.name, float(np.sqrt(np.nansum(table**2)))


def _numbers(found: Any, name: str) -> Iterator[tuple[str, float]]:
    if isinstance(found, float):
        yield name, found
    elif isinstance(found, dict | list):
        items = found.items() if isinstance(found, dict) else enumerate(found)
        for key, value in ((k, v) for k, v in items if k not in LATER):
            yield from _numbers(value, f"{name}.{key}")


def outcome(name: str, out: Path) -> dict[str, Any]:
    """What an example gives: digests of bits, and figures."""
    command = [part.format(out=out) for part in COMMANDS[name]]
    out.mkdir(parents=True, exist_ok=True)
    done = subprocess.run(
        [*VFLENS, *command],
        cwd=ROOT,
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=True,
        timeout=1500,
    )
    figures = dict(_figures(out))
    if "--json" in command:
        figures |= dict(_numbers(json.loads(done.stdout), name))
    return {"bits": dict(_digests(out)), "figures": figures}


def _fingerprint() -> str:
    command = [sys.executable, "-c", FINGERPRINT]
    environment = {**ENVIRONMENT, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def _deep_demo(out: Path) -> None:
    """Digits: without passports the image comes back; with them a blind guess is better than who ignores
    them, but not than others; accuracy stays.
    """
    errors, accuracies = [], []
    for home in (out / "digits-deep" / name for name in ("undefended", "passports")):
        target = [m for m in read_party(home / "passive").metrics if m.rows == 359 and not m.column]
        blind = min(m.value for m in target if m.name == "blind_mse")
        mse = {m.attack: m.value for m in target if m.name == "mse" and m.scored_set == "predict"}
        errors.append({name: mse[name] / blind for name in ("wmi", "bmi", "wmi_moments")})
        accuracies.append(next(m.value for m in read_party(home / "active").metrics if m.name == "accuracy"))
    undefended, defended = errors
    assert undefended["wmi"] < 0.35
    assert undefended["bmi"] < 0.5
    assert defended["wmi"] > 1.0
    # .32 and .53 on this seed, up to .85 on four others.
    assert defended["wmi_moments"] < 0.7
    assert undefended["bmi"] < defended["bmi"] < 0.8
    assert min(accuracies) > 0.93
    assert accuracies[1] > accuracies[0] - 0.02


#: How closely figures agree under other kernels. A network's attacks climb for hundreds of steps: on one
#: processor, two sets of kernels move the norm of their errors behind passports by 1e-3.
CLOSE = {"demo_deep": 5e-3}
CLOSE_OTHERWISE = 1e-3
#: What an example shows, beside its figures.
SHOWN = {"demo_deep": _deep_demo}


@pytest.mark.facts
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", COMMANDS)
def test_an_example_stays_as_it_was(name: str, tmp_path: Path) -> None:
    golden = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    found = outcome(name, tmp_path)
    if name in SHOWN:
        SHOWN[name](tmp_path)
    assert golden["figures"]
    assert found["bits"].keys() == golden["bits"].keys()
    if _fingerprint() == golden["fingerprint"]:
        assert found["bits"] == golden["bits"]
        assert found["figures"] == golden["figures"]
    close = CLOSE.get(name, CLOSE_OTHERWISE)
    assert found["figures"] == pytest.approx(golden["figures"], rel=close, abs=1e-6)


def write(folder: Path) -> None:
    """Make golden/ anew."""
    GOLDEN.mkdir(exist_ok=True)
    for name in COMMANDS:
        found = {"fingerprint": _fingerprint(), **outcome(name, folder / name)}
        (GOLDEN / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write(Path(folder))
