"""The check of parties' own files before they are used: *your table first*."""

from collections.abc import Mapping

from vflens.tables.description import PartyFile
from vflens.tables.files import check_party_table
from vflens.tables.own_check.flaw import TableCheck


def check_tables(files: Mapping[str, PartyFile]) -> dict[str, TableCheck]:
    """The check of each of ``files``, without folders of images.

    Raises:
        DataError: one is no table, or lacks a column.
    """
    found = {party: check_party_table(spec) for party, spec in files.items()}
    return {party: check for party, check in found.items() if check is not None}
