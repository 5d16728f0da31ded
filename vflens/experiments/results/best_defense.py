"""Which of several runs' defences leaves the smallest of the largest leaks: what follows a headline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from vflens.experiments.outcome.decide import HARDLY
from vflens.experiments.results.clear_training import percent
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.results.titles import defenses, labels


def best_defense(runs: Sequence[RecordedRun], base: RecordedRun) -> Iterator[str]:
    """One sentence; none where fewer than two runs with defences stand beside the undefended ``base``."""
    names = dict(zip((run.name for run in runs), labels(runs), strict=True))
    defended = [run for run in runs if defenses(run) and run.largest]
    if len(defended) < 2 or defenses(base) or not base.largest:
        return
    best = min(defended, key=_leak)
    before, after = _leak(base), _leak(best)
    if before < HARDLY:
        return
    open_ = "of what a blind guess leaves open"
    if before - after < HARDLY:
        yield f"No defence here lessens the largest leak, {percent(before)} {open_}."
    else:
        leaks = f"The largest leak is {percent(after)} {open_}, without it {percent(before)}."
        yield f"Best defence here: {names[best.name]}. {leaks}"


def untried(runs: Sequence[RecordedRun]) -> str:
    """What a page says in the place of the best defence where no run has one; "" where one has."""
    if any(map(defenses, runs)):
        return ""
    return "No defence was tried." if any(run.largest for run in runs) else ""


def _leak(run: RecordedRun) -> float:
    return run.largest[0].taken
