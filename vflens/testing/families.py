"""What every family of models promises of the parts that it builds."""

from dataclasses import replace

import numpy as np
import pytest

from vflens.models.family import ModelFamily
from vflens.models.part import ActivePart, Keys, PassivePart, Site, plain
from vflens.models.settings import Training
from vflens.testing.attacks import nothing_drawn
from vflens.types import Array, ColumnInfo, Exchange, Phase

N, D = 6, 4
_COLUMNS = tuple(ColumnInfo(f"c{i}", 0.0, 1.0) for i in range(D))
_X = np.random.default_rng(0).random((N, D))


def parts_of(family: ModelFamily) -> tuple[PassivePart, ActivePart, Array]:
    """New parts of a passive and an active party with four columns each; the labels."""
    k, training = 1 if family.label_kind == "number" else 3, Training(optimizer="sgd", learning_rate=0.05)
    y = _X[:, :1] if k == 1 else np.eye(k)[np.arange(N) % k]
    keys = Keys.under(b"secret")
    passive = Site("passive", _COLUMNS, D, k, training=training, keys=keys, wrap=plain, holds_bias=True)
    width = family.combined_width([family.width_of(_COLUMNS, k)], k)
    active = replace(passive, party="active", holds_bias=False, received=width, peers=[_COLUMNS])
    return family.passive_part(passive), family.active_part(active), y


def _step(passive: PassivePart, active: ActivePart, y: Array, number: int) -> float:
    exchange = Exchange("run", Phase.TRAIN, number, number)
    received = passive.forward(_X, exchange)
    loss, gradient, learn = active.loss_gradient(received, _X, y, exchange)
    assert active.loss_gradient(received, _X, y, exchange).loss == loss  # it has not learned yet
    assert (gradient.shape, gradient.dtype) == (received.shape, received.dtype)
    learn()
    passive.learn(_X, gradient, exchange)
    return loss


class FamilyContract:
    """Derive ``TestMine`` from it; its fixture ``family`` returns a family with its settings."""

    @pytest.fixture
    def family(self) -> ModelFamily:
        raise NotImplementedError("override the fixture family: return one, such as Mine()")

    def test_its_settings_travel_as_json(self, family: ModelFamily) -> None:
        assert type(family).model_validate_json(family.model_dump_json()) == family

    def test_steps_lower_the_loss_and_follow_from_the_keys_alone(self, family: ModelFamily) -> None:
        with nothing_drawn():
            losses, again = (
                [_step(*parts, i) for i in range(20)] for parts in (parts_of(family), parts_of(family))
            )
        assert losses == again
        assert losses[-1] < losses[0]

    def test_a_part_is_taken_up_from_its_state(self, family: ModelFamily) -> None:
        (passive, active, y), (later, _, _) = parts_of(family), parts_of(family)
        _step(passive, active, y, 0)
        later.load(passive.state())
        first, again = (part.forward(_X, Exchange("run", Phase.PREDICT, 1, 0)) for part in (passive, later))
        assert first.dtype == family.dtype
        assert first.tobytes() == again.tobytes()
