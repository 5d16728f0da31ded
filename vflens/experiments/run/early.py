"""What parties would refuse of an experiment only once they have started, found before a folder is made."""

from collections.abc import Mapping

from vflens.config import build_plugins
from vflens.config.compatibility import check_place
from vflens.errors import ConfigError
from vflens.experiments.run.any_experiment import AnyPartiesExperiment
from vflens.registry import ATTACKS
from vflens.tables.table import Table
from vflens.types import Role


def refuse_early(experiment: AnyPartiesExperiment, tables: Mapping[str, Table]) -> None:
    """Refuse attacks that no party can have, and a protected training whose numbers have no room.

    Args:
        experiment: what is to run.
        tables: from :func:`vflens.experiments.run.dealer.deal_tables`.

    Raises:
        PluginError: an unknown attack.
        ConfigError: an attack at a wrong place or wrongly set; a learning rate or a batch that does not fit.
        AlignmentError, DataError: of a protected training: its parties' tables have no common row, or one is
            unusable.
    """
    for error in misplaced(experiment).values():
        raise error
    if experiment.training.is_protected:
        from vflens.experiments.run.vertical.check import check_numbers  # the code of every party

        check_numbers(experiment, tables)


def misplaced(experiment: AnyPartiesExperiment) -> dict[str, ConfigError]:
    """Why each attack that no party of ``experiment`` can have is refused, by its name there.

    Raises:
        PluginError, ConfigError: an attack is unknown or wrongly set.
    """
    roles, found = experiment.roles(), dict[str, ConfigError]()
    for table, party in experiment.seated():
        ((_, attack),) = build_plugins(ATTACKS, [table])
        try:
            check_place(table.called, attack, roles.get(party, Role.OPERATOR), party)
        except ConfigError as error:
            found[table.called] = error
    return found
