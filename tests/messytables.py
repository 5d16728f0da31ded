"""Three tables as people bring them, made up: a hospital's, a bank's and an insurer's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

_SEED = 7


def hospital(folder: Path, rows: int = 120_000, repeats: int = 299) -> Path:
    """``;``, decimal commas, cp1252, limits, units, two of them, 124/73, money, ICD, times, repeated rows."""
    rng = np.random.default_rng(_SEED)
    height, weight = rng.normal(171, 9, rows).round(), rng.normal(77, 14, rows).round(1)
    crp, hb = rng.lognormal(1.2, 1.3, rows), rng.normal(13.8, 1.6, rows)
    codes = [f"{'ABCDEFGIKMNS'[k % 12]}{k // 12 % 100:02}.{k % 10}" for k in range(1889)]
    streets = ("Hauptstraße", "Gartenweg", "Mühlgasse", "Am Fluß")
    units = [" mmol/l" if rare else " g/dl" for rare in rng.random(rows) < 1 / 9]
    pressure = rng.normal((124, 73), (15, 9), (rows, 2)).round().astype(int)
    admitted = pd.Timestamp("2019-01-01") + pd.to_timedelta(rng.integers(0, 3 * 525_600, rows), unit="min")
    table = pd.DataFrame(
        {
            "Fall": [f"F{k:07}" for k in rng.permutation(rows)],
            "Straße": [streets[k] for k in rng.integers(0, 4, rows)],
            "cm": height.astype(int),
            "kg": _comma(weight, 1),
            "BMI": _comma(weight / (height / 100) ** 2, 1),
            "weiblich": np.where(rng.random(rows) < 0.5, "J", "N"),
            "Diabetes": np.where(rng.random(rows) < 0.17, "J", "N"),
            "Diagnose": [codes[k] for k in rng.integers(0, len(codes), rows)],
            "CRP": np.where(crp < 0.9, "<0,5", _comma(crp, 1)),
            "Kreatinin": [f"{cell} mg/dl" for cell in _comma(rng.lognormal(-0.1, 0.3, rows), 2)],
            "Hb": [f"{a}{unit}" for a, unit in zip(_comma(hb, 1), units, strict=True)],
            "Blutdruck": [f"{a}/{b}" for a, b in pressure.tolist()],
            "Kosten": [f"{euro:,.2f} €".translate({44: ".", 46: ","}) for euro in rng.lognormal(8, 1, rows)],
            "Aufnahme": admitted.strftime("%d.%m.%Y %H:%M"),
            "Station": [f"{k:02}" for k in rng.integers(1, 30, rows)],
            "geb": (pd.Timestamp("1930-01-01") + pd.to_timedelta(rng.integers(0, 30_000, rows), unit="D"))
            .strftime("%d.%m.%Y"),
        }
    )  # fmt: skip
    for name in ("kg", "CRP", "Diabetes"):
        table.loc[rng.random(rows) < 0.01, name] = ""
    table = pd.concat([table, table.iloc[rng.choice(rows, repeats, replace=False)]])
    table.to_csv(folder / "hospital.csv", sep=";", encoding="cp1252", index=False)
    return folder / "hospital.csv"


def bank(folder: Path, rows: int = 150_000) -> Path:
    """Words of an order and their codes, thousands marks, zeros in front, words in a score, rare products."""
    rng = np.random.default_rng(_SEED + 1)
    words = ("none", "primary", "lower secondary", "upper secondary", "bachelor", "master", "doctorate")
    level, income = rng.integers(0, 7, rows), rng.lognormal(10.5, 0.5, rows).round()
    score = rng.normal(600, 80, rows).round().astype(int).astype(str)
    score[rng.random(rows) < 0.02] = "pending"
    opened = pd.Timestamp("2001-01-01") + pd.to_timedelta(rng.integers(0, 600_000_000, rows), unit="s")
    table = pd.DataFrame(
        {
            "customer": [f"C{k:08}" for k in rng.permutation(rows)],
            "education": [words[k] for k in level],
            "education_num": level,
            "income": income,
            "monthly_income": (income / 12).round(2),
            "balance": [f"{x:,.2f}" for x in rng.lognormal(6.6, 2.2, rows)],
            "opened": opened.strftime("%Y-%m-%dT%H:%M:%S"),
            "zip": [f"{k:05}" for k in rng.integers(0, 99_999, rows)],
            "rate": [f"{x:.2f} %" for x in rng.normal(7, 1.5, rows)],
            "online": np.where(rng.random(rows) < 0.7, "TRUE", "FALSE"),
            "score": score,
            "age": rng.integers(18, 95, rows),
            "children": rng.poisson(1.1, rows),
            "months": rng.integers(1, 240, rows),
            **{f"product_{k}": (rng.random(rows) < 0.0005 * 1.27**k).astype(int) for k in range(20)},
        }
    )
    table.to_csv(folder / "bank.csv", index=False)
    return folder / "bank.csv"


def insurer(folder: Path, rows: int = 200_000) -> Path:
    """Parquet: truth values, timestamps, age and year of birth, −999, a constant, rare flags."""
    rng = np.random.default_rng(_SEED + 2)
    age, premium = rng.integers(18, 90, rows), rng.gamma(4, 160, rows).round(2)
    km = rng.gamma(2, 7_000, rows).round()
    km[rng.random(rows) < 0.02] = -999
    columns = {
        "policy": [f"P{k:07}" for k in rng.permutation(rows)],
        "age": age,
        "birth_year": 2024 - age - rng.integers(0, 2, rows),
        "edu": pa.array([("low", "mid", "high")[k] for k in rng.integers(0, 3, rows)]).dictionary_encode(),
        "claims": rng.poisson(0.4, rows),
        "premium": premium,
        "monthly_premium": (premium / 12).round(2),
        "smoker": rng.random(rows) < 0.2,
        "since": pa.array(rng.integers(8_000, 19_700, rows) * 86_400_000, pa.timestamp("ms")),
        "km": km,
        "country": ["DE"] * rows,
        "hiv": (rng.random(rows) < 0.002).astype(int),
        "rare": (rng.random(rows) < 0.0004).astype(int),
        "churn": (rng.random(rows) < 0.046).astype(int),
    }
    pq.write_table(pa.table(columns), folder / "insur.parquet")
    return folder / "insur.parquet"


def _comma(numbers: Sequence[float] | np.ndarray, digits: int) -> list[str]:
    return [f"{number:.{digits}f}".replace(".", ",") for number in numbers]
