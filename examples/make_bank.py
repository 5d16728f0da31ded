"""Writes bank_active.csv and bank_passive.csv: two made-up tables about (mostly) the same people; and
branch_north.csv and branch_south.csv: the same columns of different people.

A bank knows balances and who subscribed to a deposit; a bureau knows age, income and job. Nobody in
these files exists. Each file has its own order of rows and some people whom the other does not know.
"""

from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
PEOPLE, KNOWN_TO_BOTH, KNOWN_TO_ONE = 220, 180, 20
NORTH = 130
JOBS = np.array(["clerk", "manager", "retired", "student", "technician", "unknown"])
JOB_INCOME = np.array([28.0, 62.0, 24.0, 9.0, 41.0, 30.0])


def save(name: str, header: str, columns: list[np.ndarray], people: np.ndarray) -> None:
    """Write ``columns``, arrays over all people, of these ``people``."""
    rows = zip(*(column[people] for column in columns), strict=True)
    lines = [header, *(",".join(map(str, row)) for row in rows)]
    (FOLDER / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Draw the people, then write what each party knows."""
    rng = np.random.default_rng(20)
    ids = np.array([f"c{n}" for n in rng.choice(np.arange(1000, 10_000), PEOPLE, replace=False)])
    job = rng.integers(len(JOBS), size=PEOPLE)
    age = np.where(
        job == 2,
        rng.integers(62, 86, PEOPLE),
        np.where(job == 3, rng.integers(18, 28, PEOPLE), rng.integers(23, 63, PEOPLE)),
    )
    income = np.round(JOB_INCOME[job] * rng.lognormal(0, 0.25, PEOPLE), 1)
    score = np.clip(np.round(55 + 0.4 * income + rng.normal(0, 12, PEOPLE)), 0, 100).astype(int)
    balance = np.round(rng.gamma(2, 1.5, PEOPLE) + 0.05 * income, 2)
    contacts = rng.integers(1, 9, PEOPLE)
    loan = rng.integers(0, 2, PEOPLE)
    logit = (
        0.06 * (income - 32)
        + 0.05 * (age - 42)
        + 0.5 * (balance - 4.5)
        - 0.35 * (contacts - 4.5)
        - 0.8 * (loan - 0.5)
    )
    subscribed = np.where(rng.random(PEOPLE) < 1 / (1 + np.exp(-1.5 * logit)), "yes", "no")

    order = rng.permutation(PEOPLE)
    both, one, other = np.split(order, [KNOWN_TO_BOTH, KNOWN_TO_BOTH + KNOWN_TO_ONE])
    passive, active = rng.permutation(np.r_[both, one]), rng.permutation(np.r_[both, other])
    save("bank_passive.csv", "id,age,income,credit_score,job", [ids, age, income, score, JOBS[job]], passive)
    save(
        "bank_active.csv",
        "id,balance,contacts,loan,subscribed",
        [ids, balance, contacts, loan, subscribed],
        active,
    )
    for name, people in zip(("north", "south"), np.split(order, [NORTH]), strict=True):
        save(
            f"branch_{name}.csv",
            "customer,age,income,balance,contacts,subscribed",
            [ids, age, income, balance, contacts, subscribed],
            people,
        )


if __name__ == "__main__":
    main()
