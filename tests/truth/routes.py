"""What audits, runs, documents and thresholds say of tables whose leak is known, beside what is true.

Two counts must be 0: *false alarms* (found, broken, do not join, where nothing leaks beyond what is allowed)
and *false comfort* (not found, held, join, where it leaks). What is *not decided* is neither; it must name a
number of rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from truth import oracle
from truth.lab import ALLOWED, LEAKS, Laboratory, Truth, range_of
from vflens.experiments.audit import defenses as tried
from vflens.experiments.audit.advice import decision
from vflens.experiments.audit.record import AuditRecord
from vflens.experiments.evidence import matrix
from vflens.experiments.evidence.measured import RELEASE, TRAFFIC, measured
from vflens.experiments.evidence.sources import of_audit
from vflens.experiments.evidence.thresholds import BEATS_BLIND, judge, read_threshold
from vflens.experiments.outcome.finding import Finding, Findings
from vflens.experiments.outcome.words import column
from vflens.experiments.results.verdict import verdict
from vflens.types import Array, Phase

NIL = 0.005  # of what a guess leaves open: nobody who finds this much is contradicted, nobody who does not
MARGIN = 0.04  # of a quantile over models
_SIZE = re.compile(
    r"more known rows|\d (attacked )?rows?( read)?( at least| would)? decide|rows = \d+ in \[audit\] "
    r"of a description would decide|at least \d+ do"
)
_DEFENCES = ("label_only", "withhold_parameters", "scheme_3")


class Said(NamedTuple):
    """What ``route`` says of ``what``: "leaks", "safe", "open" or "not tested", in ``words``; ``truth`` is
    the share that is taken, at least and at most.
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
        """Whether it is wrong, and how; whether it is right, or nobody knows."""
        low, high = self.truth
        if self.state == "leaks" and high <= self.most:
            return "false alarm"
        if self.state == "safe" and low >= self.least:
            return "false comfort"
        if self.state == "open":
            return "open" if _SIZE.search(self.words) else "open, no number of rows"
        if self.state == "not tested":
            return "not tested, for a reason"
        known = low >= self.least if self.state == "leaks" else high <= self.most
        return "right" if known else "the truth is not known so well"


def of_audit_route(lab: Laboratory, training: str) -> Iterator[Said]:
    """The audit's first sentence and columns, its document and its thresholds."""
    record = lab.audited(training)
    route, clear = f"audit, {training}", training == "clear"
    low, high = lab.worst
    taught, at_most = lab.training if clear else (np.zeros(1), np.zeros(1))
    whole = max(low, taught.max()), max(high, at_most.max())
    words = decision(record)
    state = "open" if "No advice" in words else "leaks" if "Do not join" in words else "safe"
    if "was not measured" in words:
        state = "not tested"
    if "Join with" in words:
        state, whole = "safe", _under(lab, record, whole)
    yield Said(route, "joining", state, whole, words, ALLOWED + MARGIN, ALLOWED - MARGIN)
    states = {"found": "leaks", "not found": "safe"}
    for f in record.by_column:
        j, of_training = lab.names[f.subject], f.scored_set == Phase.TRAIN
        share = lab.by_models.right[j] if f.is_share else lab.by_models.error[j]
        truth = (max(share, taught[j]), max(share, at_most[j])) if clear else (share, share)
        if of_training and f.is_share:
            truth = (share, at_most[j])
        yield Said(route, f"{f.subject}, finding", states.get(f.state, "open"), truth, column(f))
    evidence = of_audit(record)
    most = lab.by_models.most
    ends = most, np.maximum(most, at_most)
    yield from _thresholds(route, lab, evidence, ends, _mean(lab, lab.by_models.error))
    yield from _document(route, lab, list(measured([evidence])), lab.by_models, at_most)


def _under(lab: Laboratory, record: AuditRecord, undefended: tuple[float, float]) -> tuple[float, float]:
    """What is left under the recommended defence: all that known rows undo is left; of labels alone what they
    and the other party's part of the score say.
    """
    if record.fitting[0].defense != "label_only":
        return undefended
    x, shares = lab.fresh, []
    for i in range(4):
        A, rng = oracle.weights(x.std(axis=0), lab.built.classes, lab._rng(i)), lab._rng(50 + i)
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
    route: str, lab: Laboratory, evidence: Findings, taken: tuple[Array, Array], mean: float
) -> Iterator[Said]:
    (low, high), names = taken, evidence.columns
    asked = [read_threshold(f"{name} > blind") for name in names if name in lab.names]
    states = {"broken": "leaks", "held": "safe"}
    for o in judge(asked, True, [evidence]):
        words = f"{o.sentence}; {o.remedy}"
        if o.threshold == BEATS_BLIND:
            truth = (mean, max(mean, float(np.max(high))))
        else:
            j = lab.names[o.threshold.removesuffix(" > blind")]
            truth = range_of(low[j], high[j])
        yield Said(route, f"{o.threshold}, threshold", states.get(o.judged, "open"), truth, words)


def _document(route: str, lab: Laboratory, found: list[Finding], of: Truth, taught: Array) -> Iterator[Said]:
    head, body = matrix.rows(found)
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
    least, taught = lab.run_training
    evidence = run.findings
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
        (max(best.max(), least.max()), max(best.max(), taught.max())),
        words,
        ALLOWED,
    )
    ends = of.most, np.maximum(of.most, taught)
    yield from _thresholds(route, lab, evidence, ends, _mean(lab, of.error))
    yield from _document(route, lab, list(measured([run.findings])), of, taught)


def said_of(lab: Laboratory, clear: bool = True) -> list[Said]:
    """Everything that is said of one table."""
    routes = [
        of_audit_route(lab, "secure"),
        *([of_audit_route(lab, "clear")] if clear else []),
        of_run_route(lab),
    ]
    return [text for route in routes for text in route]


def few_defences() -> None:
    """Let audits try three defences: all of them take minutes."""
    every = [c for c in tried.candidates() if c[0] in _DEFENCES and c[1].get("alpha", 0.9) == 0.9]
    tried.candidates = lambda: iter(every)
    tried.COST_MODELS = 4
