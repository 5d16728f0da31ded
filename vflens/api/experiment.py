"""``vl.Experiment`` and ``vl.HorizontalExperiment``: experiments built in Python."""

from typing import Any

from pydantic import ValidationError

from vflens.config.reading import refused, settings_of
from vflens.experiments.run.any_experiment import AnyPartiesExperiment
from vflens.experiments.run.horizontal import experiment as horizontal
from vflens.experiments.run.vertical import experiment as vertical


class _RefusesInASentence(AnyPartiesExperiment):
    """Refuses wrong settings with our errors, not with pydantic's."""

    def __init__(self, **settings: Any) -> None:
        try:
            super().__init__(**settings)
        except ValidationError as error:
            raise refused(error, "experiment", settings_of(type(self).__pydantic_core_schema__)) from None


class Experiment(_RefusesInASentence, vertical.Experiment):
    """What ``vl.run`` runs, without a file: keyword arguments are the keys of the file, tables are dicts.

    ``vl.Experiment(name="mine", data={"name": "wine"}, split={"kind": "fraction", "fraction": 0.5},
    attacks=[{"name": "rcc2"}])``. All keys: ``docs/configuration.md``. Relative paths start at the current
    folder.

    Raises:
        ConfigError: a setting that is missing, unknown or out of range; one sentence for all of them.
    """


class HorizontalExperiment(_RefusesInASentence, horizontal.HorizontalExperiment):
    """The same for clients with rows of their own, whose updates a server averages.

    ``vl.HorizontalExperiment(name="mine", data={"name": "digits"}, parties={"clients": 3},
    horizontal={"rounds": 30})``.

    Raises:
        ConfigError: as for :class:`Experiment`.
    """
