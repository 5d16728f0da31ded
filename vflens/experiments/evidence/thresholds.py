"""Thresholds in words, ``income within 5 > 10 %``: what a build refuses, and a sentence on each.

Every sentence names the figure, its interval, the rows, and what a blind guess finds.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from vflens.errors import ConfigError, ThresholdError, UndecidedError, VflensError
from vflens.experiments.outcome.decide import State, above, needed, worst
from vflens.experiments.outcome.finding import CASE, OVERALL, SITE, Finding, Findings, Quantity, sound
from vflens.experiments.outcome.words import deciding, in_own_unit, scored
from vflens.names import did_you_mean, names_of
from vflens.numerics.measures.advantage import exact
from vflens.types import Document
from vflens.words import counted

_FORM = re.compile(
    r"(?P<column>\"(?:[^\"]|\"\")+\"|\S.*?)(?:\s+within\s+(?P<within>\S+))?\s*>\s*(?:(?P<most>\S+?)\s*%|(?P<guess>[a-z]+))",
    re.DOTALL,
)
_NUMBER = re.compile(r"[0-9]+(\.[0-9]*)?([eE][+-]?[0-9]+)?|\.[0-9]+")  # float() takes "1_0" and other digits
IMPUTATION = "imputation"  # the attack that guesses from the adversary's own columns
_GUESSES = ("blind", IMPUTATION)
_EXAMPLE = "give COLUMN within NUMBER > SHARE %, such as 'income within 5 > 10 %'"
BEATS_BLIND = "no attack beats a blind guess"
_JUDGED = {State.FOUND: "broken", State.UNDECIDED: "undecided", State.NOT_FOUND: "held"}
_MEND = "mend the attacks that failed"
_KNOWN = "run an attack that errs no more than a guess, such as lmmse with more known rows"
_MORE_ROWS = "predict and score more rows, or allow more"
_ALLOW = "allow more, since the table has too few rows"
_NO_SHARE = "state a share in %, since an error without an interval decides nothing"
_NO_INTERVAL = "judge columns with --fail-if, since an error without an interval decides nothing"


@dataclass(frozen=True)
class Threshold:
    """At most the share ``most`` of the rows may be found in ``column``, to within ``within`` in its own unit
    (None: its tolerance). Where ``most`` is None, no more of it may be found than ``guess`` finds, "blind" or
    "imputation": of that share, of its right values and of its error.
    """

    text: str
    column: str
    within: float | None
    most: float | None
    guess: str = "blind"


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
    named, distance, most, guess = found.group("column", "within", "most", "guess")
    if guess is not None and guess not in _GUESSES:
        near = did_you_mean(guess, _GUESSES)
        raise ConfigError(
            f"threshold {text!r}: {guess!r} is no share in % and no guess{near or ': ' + _EXAMPLE}"
        )
    within = None if distance is None else _number(distance, text, "within", math.inf)
    share = None if most is None else _number(most, text, "the share", 100) / 100
    (column,) = names_of(named) if named[0] == '"' else [named]
    if within is not None and column in (SITE, CASE):
        raise ConfigError(f"threshold {text!r}: a client has no distance, leave `within` out")
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
    """Refuse a threshold on a column that is none of ``columns``; those of a run of clients have sites too.

    Raises:
        ConfigError: it names the nearest ones.
    """
    for t in thresholds:
        if t.column in (SITE, CASE) and t.column not in columns:
            raise ConfigError(f"threshold {t.text!r}: only a run of clients has sites, name a column")
        if t.column not in columns:
            near = did_you_mean(t.column, columns)
            shown = ", ".join(columns[:9]) + (", …" if len(columns) > 9 else "")
            raise ConfigError(
                f"threshold {t.text!r}: no column is called {t.column!r}{near or f': there are {shown}'}"
            )


def judge(
    thresholds: Sequence[Threshold], beats_blind: bool, evidence: Sequence[Findings]
) -> tuple[Outcome, ...]:
    """One outcome for each federation and threshold. Undefended federations beside defended ones are the
    baseline, and not judged.

    Raises:
        ConfigError: no federation has a column, or it was counted within another distance.
    """
    check_columns(thresholds, [*dict.fromkeys(c for e in evidence for c in e.columns), SITE, CASE])
    judged = [e for e in evidence if e.defended] or evidence
    columns = [_of_column(t, e) for e in judged for t in thresholds]
    return (*columns, *(_of_blind(e) for e in judged if beats_blind))


def _of_column(t: Threshold, e: Findings) -> Outcome:
    found = [f for f in e.only(Quantity.WITHIN, Quantity.SITES) if f.subject == t.column]
    for f in found:
        if t.within is not None and not math.isclose(t.within, f.tolerance or 0.0, rel_tol=1e-6):
            raise ConfigError(
                f"threshold {t.text!r}: {e.where} counted {t.column!r} within "
                f"{in_own_unit(f.tolerance or 0.0)}, set scoring.tolerance.{t.column} = {t.within:g} and run "
                "it again, or leave `within` out"
            )
    if t.most is None:
        found = _beside_guess(t, e, found)
    if not found:
        beside, remedy = "", "run an attack on the column"
        if t.column in (SITE, CASE):
            remedy = "run an attack on the source of rows, such as source_by_scores, in a run of clients"
        if t.guess == IMPUTATION:
            beside, remedy = " beside imputation", "run imputation and an attack on the column"
        return _outcome(t.text, e, State.UNDECIDED, f"no attack on {t.column} was scored{beside}", remedy)
    tried = [replace(f, tries=len(found)) for f in found]
    state, at = _worst(tried, partial(_state, t), partial(_beyond, t))
    words, remedy = scored(at), ""
    misled = next((f for f in tried if f.is_misled), None)
    if state is State.NOT_FOUND and t.most is None and misled and not e.defended:
        return _outcome(t.text, e, State.UNDECIDED, scored(misled), _KNOWN)
    if state is State.UNDECIDED:
        undecided = [f for f in tried if _state(t, f) is state]
        more, remedy = _more_rows(e, at, max(_rows_needed(t, f) for f in undecided))
        words += more
        remedy = _NO_SHARE if any(f.high is None for f in undecided) else remedy
    if state is State.UNDECIDED and e.capped.get(at.attack) == at.rows and remedy != _ALLOW:
        words += f"; {at.attack} tried these rows only{_needed(t)}"
        remedy = _stated(e, "slow_rows", at.rows)
    return _outcome(t.text, e, state, words, remedy)


def _beside_guess(t: Threshold, e: Findings, within: Sequence[Finding]) -> list[Finding]:
    """All that is found of the column of ``t`` beside its guess: a low share does not tell that the error
    is high. Only the shares ``within`` say on which rows imputation ran; a stated distance asks
    for them alone.
    """
    errors = () if t.within is not None else e.only(Quantity.RIGHT, Quantity.ERROR)
    rest = [f for f in errors if f.subject == t.column]
    if t.guess == IMPUTATION:
        within = [f for f in within if f.imputation is not None]
        ran = {_rows(f) for f in within}
        rest = [f for f in rest if _rows(f) in ran]
    return [*within, *sound(rest)]


def _rows(f: Finding) -> tuple[str, str, int]:
    return f.target, f.scored_set, f.rows


def _rows_needed(t: Threshold, f: Finding) -> int:
    if t.most is None:
        return f.rows_needed
    return needed(lambda n: _state(t, replace(f, rows=n)), f.rows)


def _worst(
    found: Sequence[Finding], state: Callable[[Finding], State], key: Callable[[Finding], float]
) -> tuple[State, Finding]:
    """The worst state, and of those that have it the finding of the largest ``key``."""
    states = [state(f) for f in found]
    least = worst(states)
    return least, max((f for f, s in zip(found, states, strict=True) if s is least), key=key)


def _needed(t: Threshold) -> str:
    """How many rows decide ``t`` if nothing is found: 1 − 0.025^(1/n) is the upper end of 0 of n."""
    if t.most is None:
        return ""
    return f", and {counted(math.ceil(math.log(0.025) / math.log1p(-t.most)), 'row', ',')} at least decide it"


def _outcome(text: str, e: Findings, state: State, words: str, remedy: str) -> Outcome:
    """Nothing is held while an attack failed: it may find more than the others."""
    if e.failed and state is State.NOT_FOUND:
        state, remedy = State.UNDECIDED, _MEND
        words = f"{', '.join(e.failed)} failed and may find more; of the others {words}"
    printed = state if state is State.UNDECIDED else _JUDGED[state]
    sentence = f"{text}, {e.where}: {printed}, {words}"
    remedy = remedy if state is State.UNDECIDED else ""
    return Outcome(threshold=text, where=e.where, state=state, sentence=sentence, remedy=remedy)


def _state(t: Threshold, f: Finding) -> State:
    return f.state if t.most is None else above(f.value, f.rows, t.most, f.tries)


def _beyond(t: Threshold, f: Finding) -> float:
    """How far ``f`` may lie beyond ``t``: the share found, or what is taken of what a guess leaves open."""
    if t.most is not None:
        return exact(f.value, f.rows)[1]
    most = exact(f.value, f.rows)[1] if f.is_share else f.value if f.low is None else f.low
    return replace(f, value=most).gain


def _of_blind(e: Findings) -> Outcome:
    found = e.only(*OVERALL)
    if not found:
        words = "no attack was scored beside a blind guess"
        return _outcome(BEATS_BLIND, e, State.UNDECIDED, words, "run an attack")
    state, at = _worst([replace(f, tries=len(found)) for f in found], lambda f: f.state, lambda f: f.gain)
    more, remedy = _more_rows(e, at, at.rows_needed)
    remedy = _NO_INTERVAL if at.high is None else remedy
    return _outcome(BEATS_BLIND, e, state, f"{scored(at)}{more}", remedy)


def _more_rows(e: Findings, f: Finding, count: int) -> tuple[str, str]:
    """How many rows would decide ``f`` of ``e``, and the remedy: a table of fewer adds none."""
    remedy = _stated(e, "rows", count) if count else _MORE_ROWS
    return deciding(f, count), _ALLOW if 0 < f.there < count else remedy


def _stated(e: Findings, key: str, attacked: int) -> str:
    """The remedy of more ``attacked`` rows: of an audit by the ``key`` of its plan."""
    return f"state {e.more(key, attacked)}, or allow more" if e.more else _MORE_ROWS


def refusal(outcomes: Sequence[Outcome]) -> VflensError | None:
    """The error that ends a command after ``outcomes``; None where all are held."""
    count = {state: sum(o.state == state for o in outcomes) for state in State}
    if count[State.FOUND]:
        printed = f"{counted(count[State.FOUND], 'threshold is', many='thresholds are')} broken"
        return ThresholdError(f"{printed}: add a defence, share fewer columns, or allow more")
    if count[State.UNDECIDED]:
        printed = f"{counted(count[State.UNDECIDED], 'threshold is', many='thresholds are')} not decided"
        return UndecidedError(
            f"{printed}: {'; '.join(dict.fromkeys(o.remedy for o in outcomes if o.remedy))}"
        )
    return None
