"""What is verified in one setting only."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from vflens.experiments.results.folders import PartyRun
from vflens.experiments.results.record import RecordedRun
from vflens.experiments.verify_log import horizontal, vertical
from vflens.experiments.verify_log.finding import Found
from vflens.types import Point, Setting

IsRecorded = Callable[[PartyRun, PartyRun, Point], bool]


@dataclass(frozen=True)
class Rules:
    """``recorded``, ``predicted``: whether the second party records what the first releases in training and
    in prediction. ``compare`` finds what else must fit in a run.
    """

    recorded: IsRecorded
    predicted: IsRecorded
    compare: Callable[[RecordedRun, Found], None]


RULES: Mapping[Setting, Rules] = {
    Setting.VERTICAL: Rules(
        vertical.is_recorded,
        vertical.is_prediction_recorded,
        compare=vertical.compare_lists,
    ),
    Setting.HORIZONTAL: Rules(
        horizontal.is_recorded,
        predicted=lambda sender, receiver, point: False,
        compare=horizontal.compare_means,
    ),
}
