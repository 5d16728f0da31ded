"""One table of known leak in the files of a folder: its audits, its run, and what is true of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from truth import oracle
from truth.constructions import Built
from vflens.experiments.audit.bench import Plan
from vflens.experiments.audit.record import AuditRecord
from vflens.experiments.audit.run import audit
from vflens.experiments.audit.subject import load_subject
from vflens.experiments.results.record import RecordedRun, read_runs
from vflens.experiments.run.loading import load_experiment
from vflens.experiments.run.run import begun
from vflens.types import Array

MODELS = 8
_SCENARIO = '[[scenarios]]\nname = "d"\n[[scenarios.defenses]]\nname = "{}"\nat = "coordinator"\n'


class Truth(NamedTuple):
    """Shares taken of each column of a prediction: of errors, within the tolerance, of right values."""

    error: Array
    within: Array
    right: Array


@dataclass(frozen=True)
class Laboratory:
    """One table in the files of a ``home``, its audits and its run."""

    built: Built
    home: Path
    seed: int = 0

    @cached_property
    def rows(self) -> Array:
        """The rows of the table (n, d), in their units."""
        return self.built.draw(np.random.default_rng(self.seed), self.built.rows)

    @cached_property
    def fresh(self) -> Array:
        """Other rows of the same law, scaled: the oracle's."""
        drawn = self.built.draw(np.random.default_rng(self.seed + 1), oracle.ROWS)
        return self.built.scaled(drawn)

    @cached_property
    def width(self) -> Array:
        """How far from the truth an answer of each column counts as found, scaled: a twentieth of its range,
        or less than half a step of few whole numbers.
        """
        low, high = np.array(self.built.bounds).T
        steps = [np.unique(column) for column in self.rows.T]
        few = np.array([len(s) <= 2 or (len(s) <= 20 and bool(np.all(s == np.rint(s)))) for s in steps])
        half = [np.diff(s).min() / 2 * (1 - 1e-9) if len(s) > 1 else 0.0 for s in steps]
        return np.where(few, half / (high - low), 0.05)

    # -- what is true

    @cached_property
    def drawn(self) -> list[oracle.Share]:
        """What each of a few models gives away that are drawn as an audit draws them."""
        few = range(16 if self.fresh.shape[1] <= 16 else 3)
        models = [oracle.weights(self.fresh, self.built.classes, self._rng(i)) for i in few]
        return [oracle.bayes(self.fresh, self.fresh @ A.T, self.width) for A in models]

    @cached_property
    def by_models(self) -> Truth:
        """Means over these models."""
        return Truth(*(np.mean(part, axis=0) for part in zip(*self.drawn, strict=True)))

    @cached_property
    def worst(self) -> tuple[float, float]:
        """The 95 % quantile over models of the worst column's share, at least and at most: by affine answers,
        and with all that the best answers take beyond them.
        """
        x, k = self.fresh, self.built.classes
        drawn = [oracle.weights(x, k, self._rng(i)) for i in range(200)]
        shares = [oracle.linear(x, A).max() for A in drawn]
        best = [found.error.max() for found in self.drawn]
        more = max(b - s for b, s in zip(best, shares, strict=False))
        low = float(np.quantile(shares, 0.95))
        return (1.0, 1.0) if min(best) == 1.0 else (low, min(1.0, low + max(0.0, more)))

    @cached_property
    def training(self) -> tuple[Array, Array]:
        """Shares (d,) that messages of training in the clear tell, at least and at most: nothing of what
        never varies.
        """
        x = self.fresh[:4000]
        A = oracle.weights(np.column_stack([x, x]), self.built.classes, self._rng(0))[:, : x.shape[1]]
        labels = (np.column_stack([np.zeros(len(x)), x @ A.T])).argmax(axis=1)
        low = oracle.in_training(x, labels, self.built.classes, self._rng(1))
        return low, (self.fresh.std(axis=0) > oracle.EXACT).astype(float)

    def _rng(self, i: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, 7, i])

    # -- what is said

    @cached_property
    def names(self) -> dict[str, int]:
        """Names of columns as the commands call them → their position in the table."""
        words = {f"c{j}={w}": j for j, of in self.built.words.items() for w in of}
        return {**{name: j for j, name in enumerate(self.built.names)}, **words}

    def audited(self, training: str) -> AuditRecord:
        """The audit of the party's file."""
        self._write()
        subject = load_subject(
            str(self.home / "mine.toml"), classes=self.built.classes, columns=None, id_column="id"
        )
        plan = Plan(models=MODELS, seed=self.seed, slow_rows=20, training=training)  # type: ignore[arg-type]
        return audit(subject, plan, lambda *_: None)

    @cached_property
    def run(self) -> RecordedRun:
        """The run of the party's file beside another's, all in this process."""
        self._write()
        (self.home / "run.toml").write_text(self._experiment())
        folders = list(begun(load_experiment(self.home / "run.toml"), in_process=True))
        return read_runs(folders)[0]

    @cached_property
    def by_run(self) -> Truth:
        """What the released weights of the run give away."""
        run = self.run
        folder = next(p.folder for p in run.parties if p.name == "passive")
        found = load_subject(str(folder), classes=None, columns=None, id_column="id").weight
        assert found is not None
        place = [self.names[c.name] for c in run.columns_of("passive")]
        merged = np.zeros((len(found), len(self.built.bounds)))
        for i, j in enumerate(place):
            sign = -1.0 if self.built.words.get(j) and i % 2 == 0 else 1.0
            merged[:, j] += sign * found[:, i]
        A = merged[1:] - merged[:-1]
        if np.abs(A).max() < 1e-12 or self.built.defense:
            nothing = np.zeros(len(self.built.bounds))
            return Truth(nothing, nothing, nothing)
        return Truth(*oracle.bayes(self.fresh, self.fresh @ A.T, self.width))

    def _write(self) -> None:
        if (self.home / "mine.csv").exists():
            return
        x, rng, built = self.rows, np.random.default_rng(self.seed + 2), self.built
        labels = (built.scaled(x)[:, built.column] > np.median(built.scaled(x)[:, built.column])).astype(int)
        if built.classes == 3:
            labels = np.digitize(built.scaled(x)[:, 0], [1 / 3, 2 / 3])
        flip = rng.random(len(x)) < 0.1
        labels = np.where(flip, rng.integers(0, built.classes, len(x)), labels)
        if built.labels == "balanced":
            x, labels = np.repeat(x[: len(x) // 2], 2, axis=0), np.tile([0, 1], len(x) // 2)
        elif built.labels == "rare":
            labels = (rng.random(len(x)) < 0.02).astype(int)
        cells = [
            [built.words[j][int(v)] if j in built.words else f"{v:.17g}" for j, v in enumerate(row)]
            for row in x.tolist()
        ]
        _csv(self.home / "mine.csv", built.names, cells)
        other = rng.random((len(x), 1)).round(6)
        _csv(
            self.home / "other.csv",
            ["o", "y"],
            [[str(o), str(y)] for (o,), y in zip(other.tolist(), labels.tolist(), strict=True)],
        )
        (self.home / "mine.toml").write_text(self._described(""))

    def _described(self, table: str) -> str:
        built = self.built
        bounds = [
            f"{n} = [{lo}, {hi}]"
            for j, (n, (lo, hi)) in enumerate(zip(built.names, built.bounds, strict=True))
            if j not in built.words
        ]
        encode = [f'{built.names[j]} = "one_hot"' for j in built.words]
        inner = f"{table}." if table else ""
        return "\n".join(
            [f"[{table}]" if table else "", 'file = "mine.csv"', 'id_column = "id"']
            + ([f"[{inner}bounds]", *bounds] if bounds else [])
            + ([f"[{inner}encode]", *encode] if encode else [])
            + [""]
        )

    def _experiment(self) -> str:
        built = self.built
        shares = 'protection = "shares"\n' if built.protected and built.classes == 2 else ""
        batch = len(self.rows) if built.labels == "balanced" else 64
        attacks = ["lmmse", "half_star", "finite_alphabet", *([] if shares else ["clear_columns"])]
        return (
            f'name = "t"\nseed = 1\nout = "{self.home}/runs"\npredict_share = 0.5\n'
            f"{self._described('files.passive')}\n"
            '[files.active]\nfile = "other.csv"\nid_column = "id"\ncolumns = ["o"]\n'
            'label_column = "y"\nlabel_kind = "classes"\n'
            f'[training]\n{shares}optimizer = "sgd"\nepochs = 20\nbatch_size = {batch}\nlearning_rate = 0.5\n'
            '[[disclose]]\nwhat = "parameters"\nto = "active"\n'
            '[[disclose]]\nwhat = "auxiliary"\nto = "active"\nrows = 50\n'
            + "".join(f'[[attacks]]\nname = "{name}"\n' for name in attacks)
            + (_SCENARIO.format(built.defense) if built.defense else "")
        )


def _csv(file: Path, names: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    lines = [",".join([str(i), *row]) for i, row in enumerate(rows)]
    file.write_text("\n".join([",".join(["id", *names]), *lines, ""]))


def range_of(*shares: float) -> tuple[float, float]:
    return min(shares), max(shares)
