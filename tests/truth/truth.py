"""What audits, runs, documents and thresholds say of tables whose leak is known, beside what is true.

Two counts must be 0: *false alarms* (found, broken, do not join, where nothing leaks beyond what is allowed)
and *false comfort* (not found, held, join, where it leaks). What is *not decided* is neither; it must name a
number of rows.
"""

from __future__ import annotations

import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np

from truth import oracle
from truth.tables import LEAKING, NOTHING, Built
from vflens.experiments.audit import defenses as tried
from vflens.experiments.audit.advice import decision, findings
from vflens.experiments.audit.bench import Plan
from vflens.experiments.audit.run import audit
from vflens.experiments.audit.subject import load_subject
from vflens.experiments.evidence import matrix
from vflens.experiments.evidence.measured import (
    RELEASE,
    TRAFFIC,
    Reconstruction,
    of_audit_record,
    of_run_records,
)
from vflens.experiments.evidence.sources import of_audit, of_runs
from vflens.experiments.evidence.thresholds import BEATS_BLIND, Evidence, judge, read_threshold
from vflens.experiments.outcome.decide import HARDLY
from vflens.experiments.outcome.words import column
from vflens.experiments.results.record import RecordedRun, read_runs
from vflens.experiments.results.verdict import verdict
from vflens.experiments.run.loading import load_experiment
from vflens.experiments.run.run import begun
from vflens.types import Array, Facts, Phase

NIL = 0.005  # of what a guess leaves open: nobody who finds this much is contradicted, nobody who does not
LEAKS = HARDLY + 0.03  # with the oracle's own error
ALLOWED = 0.2  # of the worst column, by an audit's default
MARGIN = 0.04  # of a quantile over models
MODELS = 8
_SIZE = re.compile(r"\d rows?( at least| would)? decide|--rows \d+ would decide|at least \d+ do")
_SCENARIO = '[[scenarios]]\nname = "d"\n[[scenarios.defenses]]\nname = "{}"\nat = "coordinator"\n'
_DEFENCES = ("label_only", "withhold_parameters", "scheme_3")


class Said(NamedTuple):
    """What ``route`` says of ``what``: "leaks", "safe" or "open", in ``words``; ``truth`` is the share
    that is taken, at least and at most.
    """

    route: str
    what: str
    state: str
    truth: tuple[float, float]
    words: str
    least: float = LEAKS
    most: float = NIL

    @property
    def verdict(self) -> str:
        """Whether it is wrong, and how; "" where it is right or nobody knows."""
        low, high = self.truth
        if self.state == "leaks" and high <= self.most:
            return "false alarm"
        if self.state == "safe" and low >= self.least:
            return "false comfort"
        if self.state == "open":
            return "open" if _SIZE.search(self.words) else "open, no number of rows"
        return ""


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

    def audited(self, training: str) -> Facts:
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


def _range(*shares: float) -> tuple[float, float]:
    return min(shares), max(shares)


def of_audit_route(lab: Laboratory, training: str) -> Iterator[Said]:
    """The audit's first sentence and columns, its document and its thresholds."""
    found = lab.audited(training)
    route, clear = f"audit, {training}", training == "clear"
    low, high = lab.worst
    taught, at_most = lab.training if clear else (np.zeros(1), np.zeros(1))
    whole = max(low, taught.max()), max(high, at_most.max())
    words = decision(found)
    state = "open" if "No advice" in words else "leaks" if "Do not join" in words else "safe"
    if "Join with" in words:
        state, whole = "safe", _under(lab, found, whole)
    yield Said(route, "joining", state, whole, words, ALLOWED + MARGIN, ALLOWED - MARGIN)
    states = {"found": "leaks", "not found": "safe"}
    for f in findings(found):
        j, of_training = lab.names[f.subject], f.scored_set == Phase.TRAIN
        share = lab.by_models.right[j] if f.is_share else lab.by_models.error[j]
        truth = (max(share, taught[j]), max(share, at_most[j])) if clear else (share, share)
        if of_training and f.is_share:
            truth = (share, at_most[j])
        yield Said(route, f"{f.subject}, finding", states.get(f.state, "open"), truth, column(f))
    evidence = of_audit(found)
    within = lab.by_models.within
    ends = within, np.maximum(within, at_most)
    yield from _thresholds(route, lab, evidence, ends, _mean(lab, lab.by_models.error))
    yield from _document(route, lab, list(of_audit_record(found, evidence, "audit")), lab.by_models, at_most)


def _under(lab: Laboratory, found: Facts, undefended: tuple[float, float]) -> tuple[float, float]:
    """What is left under the recommended defence: all that known rows undo is left; of labels alone what they
    and the other party's part of the score say.
    """
    if found["fitting"][0]["defense"] != "label_only":
        return undefended
    x, shares = lab.fresh, []
    for i in range(4):
        A, rng = oracle.weights(x, lab.built.classes, lab._rng(i)), lab._rng(50 + i)
        own = x @ A.T - (x @ A.T).mean(axis=0)
        rest = rng.standard_normal(len(x)) * own.std()
        order = (own[:, 0] + rest > 0) * 1e6 + rest
        shares.append(oracle.bayes(x, order[:, None], lab.width).error.max())
    return float(np.mean(shares)), float(np.max(shares))


def _mean(lab: Laboratory, shares: Array) -> float:
    """The share of the error over all columns."""
    var = lab.fresh.var(axis=0)
    return float((shares * var).sum() / var.sum()) if var.sum() else 0.0


def _thresholds(
    route: str, lab: Laboratory, evidence: Evidence, within: tuple[Array, Array], mean: float
) -> Iterator[Said]:
    (low, high), names = within, evidence.columns
    asked = [read_threshold(f"{name} > blind") for name in names if name in lab.names]
    states = {"broken": "leaks", "held": "safe"}
    for o in judge(asked, True, [evidence]):
        words = f"{o.sentence}; {o.remedy}"
        if o.threshold == BEATS_BLIND:
            truth = (mean, max(mean, float(np.max(high))))
        else:
            j = lab.names[o.threshold.removesuffix(" > blind")]
            truth = _range(low[j], high[j])
        yield Said(route, f"{o.threshold}, threshold", states.get(o.state, "open"), truth, words)


def _document(
    route: str, lab: Laboratory, measured: list[Reconstruction], of: Truth, taught: Array
) -> Iterator[Said]:
    head, body = matrix.rows(measured)
    for line in body:
        if line[0] not in lab.names:
            continue
        j = lab.names[line[0]]
        shares = of.error[j], of.within[j], np.nan_to_num(of.right[j])
        for who, cell in zip(head[1:], line[1:], strict=True):
            if cell.startswith("not tested"):
                continue
            state = (
                "safe" if cell.startswith("not found") else "open" if cell.startswith("not d") else "leaks"
            )
            truth = (0.0, taught[j]) if who.startswith(TRAFFIC) else (min(shares), max(shares))
            if who.startswith(RELEASE) or not who.startswith(TRAFFIC):
                truth = (min(shares), max([*shares, *(() if who.startswith(RELEASE) else (taught[j],))]))
            yield Said(route, f"{line[0]}, document ({who})", state, truth, cell)


def of_run_route(lab: Laboratory) -> Iterator[Said]:
    """The verdict of a run, its document and its thresholds."""
    route, run, of = "run", lab.run, lab.by_run
    clear = not (lab.built.protected and lab.built.classes == 2)
    taught = (
        np.where(lab.built.labels == "balanced", 0.0, (lab.fresh.std(axis=0) > oracle.EXACT))
        if clear
        else 0 * of.error
    )
    (evidence,) = of_runs([run])
    words = str(verdict([run]))
    leaks = any(
        part in words
        for part in ("of what a blind guess leaves open", "but 1 column", "columns leak, most", "exactly")
    )
    best = np.maximum(of.error, np.nan_to_num(of.right))
    yield Said(
        route,
        "verdict",
        "leaks" if leaks else "safe",
        (best.max(), max(best.max(), taught.max())),
        words,
        ALLOWED,
    )
    high = np.maximum(of.within, taught)
    yield from _thresholds(route, lab, evidence, (of.within, high), _mean(lab, of.error))
    yield from _document(route, lab, list(of_run_records([run])), of, taught)


def said_of(built: Built, seed: int = 0, clear: bool = True) -> list[Said]:
    """Everything that is said of one table."""
    with tempfile.TemporaryDirectory() as folder:
        lab = Laboratory(built, Path(folder), seed)
        routes = [
            of_audit_route(lab, "secure"),
            *([of_audit_route(lab, "clear")] if clear else []),
            of_run_route(lab),
        ]
        return [said for route in routes for said in route]


def few_defences() -> None:
    """Let audits try three defences: all of them take minutes."""
    every = [c for c in tried.candidates() if c[0] in _DEFENCES and c[1].get("alpha", 0.9) == 0.9]
    tried.candidates = lambda: iter(every)
    tried.COST_MODELS = 4


def main() -> int:
    few_defences()
    total = Counter[str]()
    wanted = [b for b in (*NOTHING, *LEAKING) if not sys.argv[1:] or any(a in b.name for a in sys.argv[1:])]
    for built in wanted:
        began = time.process_time()
        found = said_of(built)
        print(f"\n{built.name}: {'leaks' if built.leaks else 'nothing leaks'}, {built.reason}", end="")
        print(f" ({time.process_time() - began:.0f} s)")
        for route in dict.fromkeys(s.route for s in found):
            of = [s for s in found if s.route == route]
            counts = Counter(s.state for s in of)
            print(f"  {route}: {dict(counts)}")
        for said in found:
            total[said.verdict or "right, or nobody knows"] += 1
            numberless = said.verdict.endswith("no number of rows")
            if said.verdict.startswith("false") or numberless:
                low, high = said.truth
                print(f"  ! {said.what}, {said.route}: {said.verdict}, true {low:.3f} to {high:.3f}")
                print(f"    {said.words[:300]}")
        sys.stdout.flush()
    print(f"\n{len(wanted)} tables: {dict(total)}")
    return 1 if total["false alarm"] + total["false comfort"] else 0


if __name__ == "__main__":
    sys.exit(main())
