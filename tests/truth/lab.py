"""One table of known leak in the files of a folder: its audits, its run, and what is true of them.

What the table claims is compared with :mod:`truth.oracle`: a table that is not what it says proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from truth import oracle
from truth.constructions import Built, Exposure
from vflens.experiments.audit.bench import Plan
from vflens.experiments.audit.record import AuditRecord
from vflens.experiments.audit.run import audit
from vflens.experiments.audit.subject import load_subject
from vflens.experiments.results.record import RecordedRun, read_runs
from vflens.experiments.run.loading import load_experiment
from vflens.experiments.run.run import begun
from vflens.types import Array

MODELS = 8
LEAKS = 0.05 + 0.03  # a twentieth, and the oracle's own error: so much of a column that leaks, of no other
ALLOWED = 0.2  # of the worst column, by an audit's default
_PAIRS = 256  # of training rows with both labels: a power of two, by which their exact sums are divided
_SCENARIO = '[[scenarios]]\nname = "d"\n[[scenarios.defenses]]\nname = "{}"\nat = "coordinator"\n'


class Truth(NamedTuple):
    """Shares taken of each column of a prediction: of errors, within the tolerance, of right values."""

    error: Array
    within: Array
    right: Array

    @property
    def most(self) -> Array:
        """The largest of the three (d,)."""
        found: Array = np.maximum.reduce([self.error, self.within, np.nan_to_num(self.right)])
        return found


class Dealt(NamedTuple):
    """The run's rows: ``x`` (n, d) in their units, the ``other`` party's column (n,), ``labels`` int (n,).
    The first ``train`` of them train; 0: the run deals.
    """

    x: Array
    other: Array
    labels: Array
    train: int


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
        half = [np.diff(s).min() / 2 * (1 - 1e-9) if len(s) > 1 else 0.0 for s in steps]
        return np.where(self.few, half / (high - low), 0.05)

    @cached_property
    def few(self) -> Array:
        """Which columns (d,) have two values, or at most 20 whole ones. Their owner declares these: an attack
        knows no alphabet that nobody declares, as docs/evidence.md says.
        """
        steps = [np.unique(column) for column in self.rows.T]
        return np.array([len(s) <= 2 or (len(s) <= 20 and bool(np.all(s == np.rint(s)))) for s in steps])

    # -- what is true

    @cached_property
    def drawn(self) -> list[oracle.Share]:
        """What each of a few models gives away that are drawn as an audit draws them."""
        few = range(16 if self.fresh.shape[1] <= 16 else 3)
        return [oracle.bayes(self.fresh, self.fresh @ self._models[i].T, self.width) for i in few]

    @cached_property
    def by_models(self) -> Truth:
        """Means over these models; of many columns the affine part over more of them."""
        means = [np.mean(part, axis=0) for part in zip(*self.drawn, strict=True)]
        if self.fresh.shape[1] > 16:
            few = [oracle.linear(self._cov, A) for A in self._models[: len(self.drawn)]]
            every = np.mean([oracle.linear(self._cov, A) for A in self._models], axis=0)
            means[0] = np.clip(means[0] - np.mean(few, axis=0) + every, 0, 1)
        return Truth(*means)

    @cached_property
    def _models(self) -> list[Array]:
        std = self.fresh.std(axis=0)
        return [oracle.weights(std, self.built.classes, self._rng(i)) for i in range(200)]

    @cached_property
    def _cov(self) -> Array:
        return oracle.covariance(self.fresh)

    @cached_property
    def worst(self) -> tuple[float, float]:
        """The 95 % quantile over models of the worst column's share, at least and at most: by affine answers,
        and with all that the best answers take beyond them.
        """
        shares = [oracle.linear(self._cov, A).max() for A in self._models]
        best = [found.error.max() for found in self.drawn]
        more = max(b - s for b, s in zip(best, shares, strict=False))
        low = float(np.quantile(shares, 0.95))
        return (1.0, 1.0) if min(best) == 1.0 else (low, min(1.0, low + max(0.0, more)))

    @cached_property
    def training(self) -> tuple[Array, Array]:
        """Shares (d,) that messages of an audit's training in the clear tell, at least and at most."""
        x, rng = self.fresh[:4000], self._rng(1)
        d, other = x.shape[1], rng.random(x.shape)
        drawn = oracle.weights(np.tile(x.std(axis=0), 2), self.built.classes, self._rng(0))[:, :d]
        labels = np.column_stack([np.zeros(len(x)), x @ drawn.T]).argmax(axis=1)
        found = oracle.trained(np.column_stack([x, other]), labels, d, rng, epochs=30, rate=0.5)
        return oracle.in_training(x, found.sent)

    @cached_property
    def run_training(self) -> tuple[Array, Array]:
        """The same of the messages of its run; nothing where it trains on shares."""
        nothing = np.zeros(len(self.built.bounds))
        return (
            (nothing, nothing)
            if self.on_shares
            else oracle.in_training(self._trained[0], self._trained[1].sent)
        )

    @cached_property
    def _trained(self) -> tuple[Array, oracle.Trained]:
        """Scaled training rows, of the run or as many as it has, and the oracle's own model of them."""
        x, other, labels, train = self.dealt
        mine, n = self.built.scaled(x), train or len(x)
        both = np.column_stack([mine, other])[:n]
        found = oracle.trained(
            both, labels[:n], mine.shape[1], self._rng(2), epochs=20, rate=self._rate, batch=self._batch
        )
        return mine[:n], found

    def measured(self) -> dict[Exposure, tuple[Array, Array]]:
        """The shares (d,) that are taken by exposure, at least and at most."""
        return {"audit": self._of_audit, "training": self.training, "run": self._of_run}

    def contradictions(self) -> list[str]:
        """Where the oracle says other than the table claims, by column and exposure."""
        found = []
        for exposure, (low, high) in self.measured().items():
            claimed = self.built.claimed(exposure)
            for name, claim, least, most in zip(self.built.names, claimed, low, high, strict=True):
                if (claim is True and least < LEAKS) or (claim is False and most > LEAKS):
                    word = "leaks" if claim else "does not leak"
                    found.append(f"{name} {word} in {exposure}, but {least:.3f} to {most:.3f} is taken")
        if self.built.claims.audit == "some" and self.worst[0] < ALLOWED:
            found.append(f"some column leaks in audit, but {self.worst[0]:.3f} is taken")
        return found

    @property
    def _of_audit(self) -> tuple[Array, Array]:
        of = self.by_models
        return of.error, of.most

    @property
    def _of_run(self) -> tuple[Array, Array]:
        of, (low, high) = self.by_run, self.run_training
        return np.maximum(of.error, low), np.maximum(of.most, high)

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
        """What the released weights of the run give away; behind labels alone the classes that the oracle's
        own model of its rows gives.
        """
        if self.built.defense:
            weight = self._trained[1].weight
            both = np.column_stack([self.fresh, self._rng(3).random(len(self.fresh))])
            y = (both @ weight.T).argmax(axis=1)[:, None].astype(float)
        else:
            A = self._released()
            y = self.fresh @ (A[1:] - A[:-1]).T
        return Truth(*oracle.bayes(self.fresh, y, self.width))

    def _released(self) -> Array:
        """The weights (k, d) in the run's files, by the table's columns."""
        run = self.run
        folder = next(p.folder for p in run.parties if p.name == "passive")
        found = load_subject(str(folder), classes=None, columns=None, id_column="id").weight
        assert found is not None
        merged = np.zeros((len(found), len(self.built.bounds)))
        for i, column in enumerate(run.columns_of("passive")):
            j = self.names[column.name]
            sign = -1.0 if self.built.words.get(j) and i % 2 == 0 else 1.0
            merged[:, j] += sign * found[:, i]
        return merged

    # -- its files

    @property
    def on_shares(self) -> bool:
        """Whether the run trains on shares, which take two classes."""
        return self.built.protected and self.built.classes == 2

    @property
    def _rate(self) -> float:
        return min(0.5, 8 / len(self.built.bounds))  # larger steps of many columns diverge

    @property
    def _batch(self) -> int:
        return 2 * _PAIRS if self.built.labels == "balanced" else 64

    @cached_property
    def dealt(self) -> Dealt:
        """What stands in the files."""
        built, rng, x = self.built, np.random.default_rng(self.seed + 2), self.rows
        n = len(x)
        other = np.floor(rng.random(n) * 1024) / 1024
        if built.labels == "balanced":
            order = np.concatenate([np.repeat(np.arange(_PAIRS), 2), np.arange(_PAIRS, n - _PAIRS)])
            return Dealt(x[order], other[order], np.arange(n) % 2, 2 * _PAIRS)
        if built.labels == "rare":
            return Dealt(x, other, (rng.random(n) < 0.02).astype(int), 0)
        column = built.scaled(x)[:, built.column]
        ends = [np.median(column)] if built.classes == 2 else [1 / 3, 2 / 3]
        labels = np.digitize(column, ends, right=built.classes == 2)
        return Dealt(x, other, np.where(rng.random(n) < 0.1, rng.integers(0, built.classes, n), labels), 0)

    def _write(self) -> None:
        if (self.home / "mine.csv").exists():
            return
        built, (x, other, labels, train) = self.built, self.dealt
        cells = [
            [built.words[j][int(v)] if j in built.words else f"{v:.17g}" for j, v in enumerate(row)]
            for row in x.tolist()
        ]
        _csv(self.home / "mine.csv", built.names, cells)
        split = [["train" if i < train else "predict"] for i in range(len(x))] if train else [[]] * len(x)
        theirs = [
            [str(o), str(y), *s] for o, y, s in zip(other.tolist(), labels.tolist(), split, strict=True)
        ]
        _csv(self.home / "other.csv", ["o", "y", *(["part"] if train else [])], theirs)
        (self.home / "mine.toml").write_text(self._described(""))

    def _described(self, table: str) -> str:
        built = self.built
        bounds = [
            f"{n} = [{lo}, {hi}]"
            for j, (n, (lo, hi)) in enumerate(zip(built.names, built.bounds, strict=True))
            if j not in built.words
        ]
        letters = {n: np.unique(of) for n, of in zip(built.names, self.rows.T, strict=True)}
        few = [
            f"{n} = {values.tolist()}"
            for j, (n, values) in enumerate(letters.items())
            if j not in built.words and self.few[j] and len(values) > 1
        ]
        encode = [f'{built.names[j]} = "one_hot"' for j in built.words]
        inner = f"{table}." if table else ""
        return "\n".join(
            [f"[{table}]" if table else "", 'file = "mine.csv"', 'id_column = "id"']
            + ([f"[{inner}bounds]", *bounds] if bounds else [])
            + ([f"[{inner}alphabets]", *few] if few else [])
            + ([f"[{inner}encode]", *encode] if encode else [])
            + [""]
        )

    def _experiment(self) -> str:
        built, dealt = self.built, self.dealt
        shares = 'protection = "shares"\n' if self.on_shares else ""
        attacks = ["lmmse", "half_star", "finite_alphabet", *([] if shares else ["clear_columns"])]
        split = 'split_column = "part"\n' if dealt.train else ""
        return (
            f'name = "t"\nseed = 1\nout = "{self.home}/runs"\n'
            f"{'' if dealt.train else 'predict_share = 0.5'}\n"
            f"{self._described('files.passive')}\n"
            '[files.active]\nfile = "other.csv"\nid_column = "id"\ncolumns = ["o"]\n'
            f'label_column = "y"\nlabel_kind = "classes"\n{split}'
            f'[training]\n{shares}optimizer = "sgd"\nepochs = 20\nbatch_size = {self._batch}\n'
            f"learning_rate = {self._rate}\n"
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
