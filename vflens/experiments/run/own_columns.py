"""The columns of an experiment's data parties, and what it states of them for their scoring."""

from collections.abc import Mapping

from vflens.config.compatibility import check_tolerance
from vflens.experiments.run.any_experiment import AnyPartiesExperiment
from vflens.tables.files import read_party_table
from vflens.tables.table import Table
from vflens.types import Document


def names_by_party(experiment: AnyPartiesExperiment, tables: Mapping[str, Table]) -> dict[str, list[str]]:
    """Data party → the names of its columns, and of a numeric label; ``tables`` are those that are dealt, {}
    if the parties bring their own files.

    Raises:
        DataError, ConfigError: a table is unusable.
    """
    read = tables or {p: read_party_table(spec) for p, spec in experiment.files.items()}
    return {party: table.names for party, table in read.items()}


def scoring_of(experiment: AnyPartiesExperiment, tables: Mapping[str, Table]) -> dict[str, Document]:
    """Data party → the table ``scoring`` of its configuration, on its own columns alone, where the experiment
    sets any; ``tables`` as for :func:`names_by_party`.

    Raises:
        ConfigError: a tolerance of a column that no data party has.
        DataError: a table is unusable.
    """
    stated = experiment.scoring.tolerance
    # Without a tolerance tables of files would be read for nothing.
    names = names_by_party(experiment, tables) if stated else {p: [] for p in experiment.data_parties}
    check_tolerance(stated, [name for columns in names.values() for name in columns], "any data party")
    own = {party: {n: stated[n] for n in columns if n in stated} for party, columns in names.items()}
    chosen = {p: experiment.scoring.model_copy(update={"tolerance": widths}) for p, widths in own.items()}
    set_of = {p: scoring.model_dump(exclude_defaults=True) for p, scoring in chosen.items()}
    return {party: {"scoring": settings} for party, settings in set_of.items() if settings}
