"""`pytest` runs these: change them with the defence."""

from types import SimpleNamespace

import numpy as np
import pytest
from top_scores import TopScores

from vflens.testing import DefenseContract

SCORES = np.log([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
CONTEXT = SimpleNamespace()  # it draws nothing


class TestTopScores(DefenseContract):
    """What VFLens relies on, and that the defence keeps its claim."""

    @pytest.fixture(params=[1, 2])
    def defense(self, request):
        return TopScores(keep=request.param)


def test_the_largest_score_stays_and_the_others_share_the_rest() -> None:
    released = np.exp(TopScores(keep=1).on_scores(SCORES, CONTEXT))
    np.testing.assert_allclose(released, [[0.7, 0.15, 0.15], [0.2, 0.2, 0.6]])


def test_the_class_stays() -> None:
    released = TopScores(keep=1).on_scores(SCORES, CONTEXT)
    assert (released.argmax(axis=1) == SCORES.argmax(axis=1)).all()
