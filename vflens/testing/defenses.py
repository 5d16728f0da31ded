"""What every defence promises at the hooks that take arrays."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import log_softmax

from vflens.array import ScaledColumns
from vflens.plugins.defense import PHASES, Context, Defense
from vflens.testing.attacks import nothing_drawn
from vflens.types import Array, Claim, Exchange, Owner, Phase

#: What breaks careless code: ties for the maximum, zeros, one-hot rows, near-ties, many tiny scores.
AWKWARD_SCORES: Mapping[str, Array] = {
    "random": log_softmax(np.random.default_rng(3).normal(0, 3, (50, 5)), axis=1),
    "two tied": np.log([[0.4, 0.4, 0.1, 0.05, 0.05]]),
    "all tied": np.log(np.full((1, 7), 1 / 7)),
    "tied beside zeros": np.array([[-np.inf, np.log(0.5), -np.inf, np.log(0.5)]]),
    "one-hot": np.array([[-np.inf, 0.0, -np.inf]]),
    "tied after rounding": np.log([[0.333333, 0.333334, 0.333333]]),
    "all below the last decimal": log_softmax(np.linspace(0.0, 1e-3, 2000)[None], axis=1),
    "two classes": np.log([[0.5000001, 0.4999999], [1e-300, 1.0]]),
}


def owner_sees(classes: int = 5) -> Owner:
    """A party of six rows and five columns, with labels and weights."""
    rng = np.random.default_rng(0)
    weight = {"weight": rng.normal(size=(classes, 5))}
    x, y = ScaledColumns(rng.random((6, 5))), rng.integers(0, classes, 6)
    return Owner("passive", x, y, classes, parameters=weight)


def context_of(
    defense: Defense, hook: str, phase: Phase, secret: bytes = b"secret", *, rows: int = 6, classes: int = 5
) -> Context:
    """The context of one exchange of the first so many ``rows``, fitted to :func:`owner_sees`."""
    owner = owner_sees(classes)
    state = defense.fit(owner, np.random.default_rng(1))
    exchange, numbers = Exchange("run", phase, 0, 7), np.arange(rows, dtype=np.int32)
    return Context(owner, exchange, numbers, state, hook=hook, position=0, secret=secret, common=b"common")


def read_only(array: Array) -> Array:
    """``array``, into which writing raises."""
    array.setflags(write=False)
    return array


def value_at(hook: str) -> Any:
    """A legal argument of ``hook``, read-only."""
    rng = np.random.default_rng(2)
    if hook == "on_parameters":
        return {"weight": read_only(rng.normal(size=(5, 5)))}
    if hook in ("on_labels", "on_batch_labels"):
        return read_only(np.eye(5)[rng.integers(0, 5, 6)])
    return read_only(
        log_softmax(3 * rng.normal(size=(6, 5)), axis=1) if hook == "on_scores" else rng.random((6, 5))
    )


def applied(defense: Defense, hook: str, phase: Phase, value: Any) -> Any:
    """What ``defense`` makes of ``value`` at ``hook``."""
    rows = 6 if isinstance(value, Mapping) else len(value)
    classes = value.shape[1] if hook == "on_scores" else 5
    return getattr(defense, hook)(value, context_of(defense, hook, phase, rows=rows, classes=classes))


def cases(defense: Defense) -> Iterator[tuple[str, Phase]]:
    """The hooks on arrays that it overrides, each in its phases."""
    yield from ((hook, phase) for hook in sorted(defense.hooks() & {*PHASES}) for phase in PHASES[hook])


def _bytes(value: Any) -> Any:
    values = value if isinstance(value, Mapping) else {"": value}
    return {name: v if v is None else v.tobytes() for name, v in values.items()}


def keeps_argmax(before: Array, after: Array) -> bool:
    """Whether the maximisers of each row stay among those after."""
    best = before == before.max(axis=1, keepdims=True)
    return bool((after == after.max(axis=1, keepdims=True))[best].all())


class DefenseContract:
    """Derive ``TestMine`` from it; its fixture ``defense`` returns a defence with its settings.

    Hooks that take a torch module are left to tests of its own.
    """

    @pytest.fixture
    def defense(self) -> Defense:
        raise NotImplementedError("override the fixture defense: return one, such as Mine()")

    def test_overrides_a_hook_and_claims_something_or_says_why_not(self, defense: Defense) -> None:
        assert defense.hooks()
        assert (defense.claim({}) != Claim()) != bool(defense.unclaimed)

    def test_keeps_shapes_and_float64(self, defense: Defense) -> None:
        for hook, phase in cases(defense):
            before = value_at(hook)
            after = applied(defense, hook, phase, before)
            if hook == "on_parameters":  # None withholds them
                assert after is None or after.keys() == before.keys()
                pairs = [(before[name], each) for name, each in (after or {}).items()]
            else:
                pairs = [(before, after)]
                assert applied(defense, hook, phase, np.zeros((0, 5))).shape == (0, 5), (hook, phase)
            for old, new in pairs:
                assert (new.shape, new.dtype) == (old.shape, np.float64), (hook, phase)
                assert not np.isnan(new).any(), (hook, phase)

    def test_draws_from_its_own_generator_only(self, defense: Defense) -> None:
        """And the same in a second look at one exchange."""
        for hook, phase in cases(defense):
            with nothing_drawn():
                first, again = (_bytes(applied(defense, hook, phase, value_at(hook))) for _ in range(2))
            assert first == again, (hook, phase)

    def test_never_writes_into_its_argument(self, defense: Defense) -> None:
        for hook, phase in cases(defense):
            value = value_at(hook)
            applied(defense, hook, phase, value)
            assert _bytes(value) == _bytes(value_at(hook)), (hook, phase)

    def test_a_row_moves_others_at_the_gate_only_where_that_is_said(self, defense: Defense) -> None:
        """Noise behind such a defence has no ε of one row."""
        for hook, phase in [c for c in cases(defense) if c[0] in ("on_embedding", "on_gradient")]:
            value, context = value_at(hook), context_of(defense, hook, phase)
            owner = replace(context.owner, labels=np.arange(6) % 2)
            context = replace(context, owner=owner, secret=b"secret", common=b"common")
            longer = np.where(np.arange(6)[:, None] == 2, 3 * value, value)
            first, second = (getattr(defense, hook)(v, context)[[0, 1, 3, 4, 5]] for v in (value, longer))
            assert (first != second).any() == defense.mixes_rows, (hook, phase)

    def test_a_prediction_row_is_the_same_in_every_request(self, defense: Defense) -> None:
        """Rows asked one by one, in another order or under another number: nothing is drawn anew."""
        value = read_only(log_softmax(np.random.default_rng(5).normal(size=(200, 5)), axis=1))
        hooks = [h for h, phase in cases(defense) if phase is Phase.PREDICT and h != "on_outputs"]
        for hook in hooks:
            context = context_of(defense, hook, Phase.PREDICT, rows=200)
            together = getattr(defense, hook)(value, context)
            for step, rows in enumerate((np.arange(199, -1, -1), np.array([7]), np.array([130, 2, 64, 63]))):
                exchange, numbers = context.exchange._replace(step=step), rows.astype(np.int32)
                asked = replace(context, exchange=exchange, rows=numbers, secret=b"secret", common=b"common")
                found = getattr(defense, hook)(value[rows], asked)
                np.testing.assert_allclose(found, together[rows], rtol=1e-12, err_msg=hook)

    @pytest.mark.parametrize("case", AWKWARD_SCORES)
    def test_the_arg_max_stays_among_the_maximisers(self, defense: Defense, case: str) -> None:
        """Where it claims so."""
        if defense.claim({}).argmax and "on_scores" in defense.hooks():
            log_c = read_only(AWKWARD_SCORES[case])
            after = applied(defense, "on_scores", Phase.PREDICT, log_c)
            assert keeps_argmax(log_c, after)
            assert np.isfinite(after.max(axis=1)).all()  # some class is left
            assert not np.isnan(after).any()
