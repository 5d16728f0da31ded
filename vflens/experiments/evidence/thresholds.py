"""Thresholds in words, ``income within 5 > 10 %``: what a build refuses, and a sentence on each.

Every sentence names the figure, its interval, the rows, and what a blind guess finds.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from vflens.errors import ConfigError, ThresholdError, UndecidedError, VflensError
from vflens.experiments.outcome.decide import (
    State,
    above,
    above_guess,
    better,
    needed,
    needed_for_better,
    worst,
)
from vflens.experiments.outcome.words import deciding, in_own_unit, number
from vflens.experiments.results.own_units import IMPUTATION, FoundColumn
from vflens.experiments.results.titles import rows_of
from vflens.names import did_you_mean, names_of
from vflens.numerics.measures.advantage import exact
from vflens.types import Document
from vflens.words import counted

_FORM = re.compile(
    r"(?P<column>\"(?:[^\"]|\"\")+\"|\S.*?)(?:\s+within\s+(?P<within>\S+))?\s*>\s*(?:(?P<most>\S+?)\s*%|(?P<guess>[a-z]+))",
    re.DOTALL,
)
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?|\.[0-9]+")  # float() takes "1_0" and other digits
_GUESSES = ("blind", IMPUTATION)
_EXAMPLE = "give COLUMN within NUMBER > SHARE %, such as 'income within 5 > 10 %'"
BEATS_BLIND = "no attack beats a blind guess"
_JUDGED = {State.FOUND: "broken", State.UNDECIDED: "undecided", State.NOT_FOUND: "held"}
_MEND = "mend the attacks that failed"
_MORE_ROWS = "predict and score more rows, or allow more"
_NO_INTERVAL = "judge columns with --fail-if, since an error without an interval decides nothing"


@dataclass(frozen=True)
class Threshold:
    """Of the rows at most the share ``most`` may be found in ``column``, to within ``within`` in its own unit
    (None: its tolerance); where ``most`` is None, no more than ``guess`` finds: "blind", "imputation".
    """

    text: str
    column: str
    within: float | None
    most: float | None
    guess: str = "blind"


@dataclass(frozen=True)
class BlindError:
    """An attack's ``error`` beside the ``blind`` guess's on the same ``rows``, of ``subject`` in words.

    ``share``: both are shares of right answers. ``half_width`` at 95 %; None where nobody has one.
    """

    attack: str
    subject: str
    rows: int
    error: float
    blind: float
    half_width: float | None = None
    share: bool = False


@dataclass(frozen=True)
class Evidence:
    """What attacks found in one federation, which ``where`` names; the ``columns`` that it has. An attack of
    ``failed`` found nothing because it broke; one of ``capped`` tried so many rows only, of more.
    """

    where: str
    defended: bool
    columns: tuple[str, ...]
    found: tuple[FoundColumn, ...]
    errors: tuple[BlindError, ...]
    failed: tuple[str, ...] = ()
    capped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """What is known of a ``threshold`` in the federation ``where``, in a sentence; the ``remedy`` where it is
    not decided.
    """

    threshold: str
    where: str
    state: State
    sentence: str
    remedy: str = ""

    @property
    def json(self) -> Document:
        """It under stable keys."""
        return {**vars(self), "state": self.judged}

    @property
    def judged(self) -> str:
        """The state of the threshold: "broken", "undecided" or "held"."""
        return _JUDGED[self.state]


def read_threshold(text: str) -> Threshold:
    """The threshold that ``text`` states.

    Raises:
        ConfigError: it states none.
    """
    found = _FORM.fullmatch(text.strip())
    if found is None:
        raise ConfigError(f"threshold {text!r} is no threshold: {_EXAMPLE}")
    guess, most = found["guess"], found["most"]
    if guess is not None and guess not in _GUESSES:
        near = did_you_mean(guess, _GUESSES)
        raise ConfigError(
            f"threshold {text!r}: {guess!r} is no share in % and no guess{near or ': ' + _EXAMPLE}"
        )
    within = None if found["within"] is None else _number(found["within"], text, "within", math.inf)
    share = None if most is None else _number(most, text, "the share", 100) / 100
    (column,) = names_of(found["column"]) if found["column"][0] == '"' else [found["column"]]
    return Threshold(text.strip(), column, within, most=share, guess=guess or "blind")


def beyond_guess(column: str, guess: str, within: float | None) -> Threshold:
    """The threshold that no more of ``column`` is found than ``guess`` finds.

    Raises:
        ConfigError: it is no guess, or ``within`` no positive distance.
    """
    distance = "" if within is None else f" within {within:g}"
    return read_threshold(f"{column}{distance} > {guess}")


def _number(given: str, text: str, what: str, below: float) -> float:
    """The positive number ``given``, below ``below``."""
    value = float(given) if _NUMBER.fullmatch(given) else math.nan
    if not 0 < value < below:
        end = "" if math.isinf(below) else f" and below {below:g}"
        raise ConfigError(f"threshold {text!r}: {what} {given!r} is no number above 0{end}, {_EXAMPLE}")
    return value


def tolerances(thresholds: Iterable[Threshold]) -> dict[str, float]:
    """Column → how far from the truth an answer counts as found, as ``thresholds`` state it.

    Raises:
        ConfigError: two of one column differ.
    """
    stated: dict[str, float] = {}
    for t in thresholds:
        if t.within is not None and stated.setdefault(t.column, t.within) != t.within:
            raise ConfigError(
                f"threshold {t.text!r}: {t.column!r} is within {stated[t.column]:g} in another threshold, "
                "state one distance of a column"
            )
    return stated


def check_columns(thresholds: Iterable[Threshold], columns: Sequence[str]) -> None:
    """Refuse a threshold on a column that is none of ``columns``.

    Raises:
        ConfigError: it names the nearest ones.
    """
    for t in thresholds:
        if t.column not in columns:
            near = did_you_mean(t.column, columns)
            shown = ", ".join(columns[:9]) + (", …" if len(columns) > 9 else "")
            raise ConfigError(
                f"threshold {t.text!r}: no column is called {t.column!r}{near or f': there are {shown}'}"
            )


def judge(
    thresholds: Sequence[Threshold], beats_blind: bool, evidence: Sequence[Evidence]
) -> tuple[Outcome, ...]:
    """One outcome for each federation and threshold. Undefended federations beside defended ones are the
    baseline, and not judged.

    Raises:
        ConfigError: no federation has a column, or it was counted within another distance.
    """
    check_columns(thresholds, list(dict.fromkeys(c for e in evidence for c in e.columns)))
    judged = [e for e in evidence if e.defended] or evidence
    columns = [_of_column(t, e) for e in judged for t in thresholds]
    return (*columns, *(_of_blind(e) for e in judged if beats_blind))


def _of_column(t: Threshold, e: Evidence) -> Outcome:
    found = [f for f in e.found if f.column == t.column]
    for f in found:
        if t.within is not None and not math.isclose(t.within, f.tolerance, rel_tol=1e-6):
            raise ConfigError(
                f"threshold {t.text!r}: {e.where} counted {t.column!r} within {in_own_unit(f.tolerance)}, "
                f"set scoring.tolerance.{t.column} = {t.within:g} and run it again, or leave `within` out"
            )
    if t.guess == IMPUTATION and t.most is None:
        found = [f for f in found if f.imputation is not None]
    states = [_state(t, f, len(found)) for f in found]
    if not found:
        beside, remedy = "", "run an attack on the column"
        if t.guess == IMPUTATION:
            beside, remedy = " beside imputation", "run imputation and an attack on the column"
        return _outcome(t.text, e, State.UNDECIDED, f"no attack on {t.column} was scored{beside}", remedy)
    state = worst(states)
    at = max((f for f, s in zip(found, states, strict=True) if s == state), key=lambda f: _beyond(t, f))
    words, remedy = _found_words(t, at, len(found)), _MORE_ROWS
    if state is State.UNDECIDED:
        words += deciding(needed(lambda n: _state(t, at._replace(rows=n), len(found)), at.rows))
    if state is State.UNDECIDED and e.capped.get(at.attack) == at.rows:
        words += f"; {at.attack} tried these rows only{_needed(t)}"
        remedy = "raise --slow-rows, or allow more"
    return _outcome(t.text, e, state, words, remedy)


def _needed(t: Threshold) -> str:
    """How many rows decide ``t`` if nothing is found: 1 − 0.025^(1/n) is the upper end of 0 of n."""
    if t.most is None:
        return ""
    return f", and {counted(math.ceil(math.log(0.025) / math.log1p(-t.most)), 'row', ',')} at least decide it"


def _outcome(text: str, e: Evidence, state: State, words: str, remedy: str) -> Outcome:
    """Nothing is held while an attack failed: it may find more than the others."""
    if e.failed and state is State.NOT_FOUND:
        state, remedy = State.UNDECIDED, _MEND
        words = f"{', '.join(e.failed)} failed and may find more; of the others {words}"
    said = state if state is State.UNDECIDED else _JUDGED[state]
    sentence = f"{text}, {e.where}: {said}, {words}"
    remedy = remedy if state is State.UNDECIDED else ""
    return Outcome(threshold=text, where=e.where, state=state, sentence=sentence, remedy=remedy)


def _state(t: Threshold, f: FoundColumn, tries: int) -> State:
    if t.most is not None:
        return above(f.found, f.rows, t.most, tries)
    return above_guess(f.found, _guessed(t, f), f.rows, tries)


def _guessed(t: Threshold, f: FoundColumn) -> float:
    """What the guess of ``t`` finds; the better one of a constant and imputation."""
    return max(f.blind, f.imputation or 0.0)


def _beyond(t: Threshold, f: FoundColumn) -> float:
    """How far ``f`` lies beyond ``t``: its upper bound, or what it finds more than a guess."""
    return exact(f.found, f.rows)[1] - (0.0 if t.most is not None else _guessed(t, f))


def _found_words(t: Threshold, f: FoundColumn, tries: int) -> str:
    low, high = exact(f.found, f.rows, tries)[0], exact(f.found, f.rows)[1]
    imputed = "" if f.imputation is None else f", imputation {_percent(f.imputation)}"
    return (
        f"{f.attack} finds {_percent(f.found)} ({_percent(low)} … {_percent(high)}) of "
        f"{counted(f.rows, 'row', ',')} ({rows_of(f.scored_set)} of {f.target}) to within "
        f"{in_own_unit(f.tolerance)}, a blind guess {_percent(f.blind)}{imputed}"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _of_blind(e: Evidence) -> Outcome:
    states = [_beats(b, len(e.errors)) for b in e.errors]
    if not states:
        words = "no attack was scored beside a blind guess"
        return _outcome(BEATS_BLIND, e, State.UNDECIDED, words, "run an attack")
    state = worst(states)
    at = max((b for b, s in zip(e.errors, states, strict=True) if s == state), key=_gain)
    remedy = _MORE_ROWS if at.share or at.half_width is not None else _NO_INTERVAL
    words = _error_words(at) + (deciding(_rows_needed(at, len(e.errors))) if state is State.UNDECIDED else "")
    return _outcome(BEATS_BLIND, e, state, words, remedy)


def _beats(b: BlindError, tries: int) -> State:
    if b.share:
        return above_guess(b.error, b.blind, b.rows, tries)
    return better(b.error, b.half_width, b.blind, b.rows, tries)


def _rows_needed(b: BlindError, tries: int) -> int:
    if b.share:
        return needed(lambda rows: above_guess(b.error, b.blind, rows, tries), b.rows)
    return needed_for_better(b.error, b.half_width, b.blind, b.rows, tries)


def _gain(b: BlindError) -> float:
    """The share that the attack takes of what a blind guess leaves open."""
    left, wrong = (1 - b.blind, 1 - b.error) if b.share else (b.blind, b.error)
    return 1 - wrong / left if left else 0.0


def _error_words(b: BlindError) -> str:
    rows = counted(b.rows, "row", ",")
    if b.share:
        low, high = exact(b.error, b.rows)
        return (
            f"{b.attack} is right in {_percent(b.error)} ({_percent(low)} … {_percent(high)}) of {rows} "
            f"({b.subject}), a blind guess in {_percent(b.blind)}"
        )
    interval = "no interval" if b.half_width is None else f"± {number(b.half_width)}"
    return (
        f"{b.attack} errs by {number(b.error)} ({interval}) on {rows} ({b.subject}), a blind guess by "
        f"{number(b.blind)}"
    )


def refusal(outcomes: Sequence[Outcome]) -> VflensError | None:
    """The error that ends a command after ``outcomes``; None where all are held."""
    count = {state: sum(o.state == state for o in outcomes) for state in State}
    if count[State.FOUND]:
        said = f"{counted(count[State.FOUND], 'threshold is', many='thresholds are')} broken"
        return ThresholdError(f"{said}: add a defence, share fewer columns, or allow more")
    if count[State.UNDECIDED]:
        said = f"{counted(count[State.UNDECIDED], 'threshold is', many='thresholds are')} not decided"
        return UndecidedError(f"{said}: {'; '.join(dict.fromkeys(o.remedy for o in outcomes if o.remedy))}")
    return None
