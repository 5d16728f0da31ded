"""Rows of other people, none of them in the run, from which the active party's attacks may learn."""

from collections.abc import Sequence

import numpy as np

from vflens.errors import ConfigError
from vflens.tables.description import PartyFile
from vflens.tables.files import read_party_table
from vflens.tables.places import Places
from vflens.tables.scaling import Scaler
from vflens.tables.table import Table
from vflens.types import Array, ColumnInfo, PartyInfo


def read_public(spec: PartyFile | None, own: Table) -> Table | None:
    """The table of public rows; None without ``spec``.

    Raises:
        DataError: the file is not as described, or holds a row of ``own``.
        ConfigError: it has other classes.
    """
    if spec is None:
        return None
    table = read_party_table(spec)
    shared = np.isin(table.ids, own.ids)
    if shared.any():
        raise Places.of(table.ids).refusal(
            shared, "public.file holds rows of data.file in", ": public rows are other people's, remove them"
        )
    if (table.class_names, table.label) != (own.class_names, own.label):
        raise ConfigError(
            f"public.file has the classes {', '.join(table.class_names) or 'none'}, data.file has "
            f"{', '.join(own.class_names)}: give public.label_column and public.classes"
        )
    return table


def public_arrays(table: Table | None, parties: Sequence[PartyInfo]) -> dict[str, Array]:
    """ "public/PARTY" float64 (M, d) in [0, 1] of each of ``parties`` with columns, "public labels" (M,).

    Columns without declared bounds are scaled by the public rows' own extremes: those of the parties' rows
    are not known.

    Raises:
        ConfigError: a column of a party is not in the table.
    """
    if table is None or table.targets is None:
        return {}
    arrays = {f"public/{p.name}": _columns(table, p.name, p.columns) for p in parties if p.columns}
    return {**arrays, "public labels": table.targets}


def _columns(table: Table, party: str, columns: Sequence[ColumnInfo]) -> Array:
    place = {c.name: j for j, c in enumerate(table.columns)}
    lacking = next((c.name for c in columns if c.name not in place), None)
    if lacking is not None:
        raise ConfigError(f"public.file lacks column {lacking!r} of {party!r}: add it")
    values = table.features[:, [place[c.name] for c in columns]].astype(np.float64)
    return Scaler.fit(columns, values).transform(values)[0]
