"""The owner's table as a release reads it: the roles of its columns, block by block."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from shlex import quote

import pyarrow as pa

from vflens.errors import DataError
from vflens.tables import cells
from vflens.tables.description import PartyFile
from vflens.tables.encodings import Conversion
from vflens.tables.exact_numbers import as_floats
from vflens.tables.files import written_as
from vflens.types import Progress

_BLOCK_BYTES, _BLOCK_ROWS = 1 << 19, 1 << 14  # released bytes follow them


class OwnersTable:
    """A table on disk, written as ``described``; ``names`` are its columns in their order.

    Raises:
        DataError: it cannot be read, has no columns, or repeats a name.
    """

    def __init__(self, path: Path, described: PartyFile | None = None) -> None:
        self.path = path
        written = {} if described is None else written_as(described)
        with cells.of_file(path):
            self._file = cells.TableFile(path, _BLOCK_BYTES, _BLOCK_ROWS, as_stored=not written, **written)
            if not self._file.names:
                raise DataError("it has no columns")
        self.names = tuple(self._file.names)

    @property
    def index(self) -> tuple[str, ...]:
        """The columns in which pandas wrote a frame's index."""
        schema = self._file.schema
        try:
            stated = list((schema.pandas_metadata or {})["index_columns"])
        except (ValueError, KeyError, TypeError):  # no metadata, or that of another program
            stated = []
        return tuple(n for n in self.names if n in stated or cells.ROW_NUMBERS.fullmatch(n))

    def kept_type(self, name: str) -> pa.DataType:
        """The type of a copied column: its own in parquet, text in CSV; every storage of text becomes string.

        Raises:
            DataError: its cells are lists, records or bytes.
        """
        if not self._file.is_parquet:
            return pa.string()
        kind = self._file.schema.field(name).type
        if pa.types.is_dictionary(kind):
            kind = kind.value_type
        if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            return pa.string()
        of = pa.types
        if not any(test(kind) for test in (of.is_primitive, of.is_string, of.is_decimal, of.is_null)):
            raise DataError(
                f"{self.path}: column {name!r} holds {kind}: store one number or text in each cell, or leave "
                f"the column out with --id {quote(name)}"
            )
        return kind

    def blocks(
        self, names: Sequence[str], kept: Sequence[str], stage: str, progress: Progress
    ) -> Iterator[dict[str, pa.Array]]:
        """Columns by name, block by block, those ``kept`` as :meth:`kept_type`; null is missing.

        Raises:
            DataError: the file is damaged.
        """
        types = {name: self.kept_type(name) for name in kept}
        with cells.of_file(self.path):
            for block in self._file.blocks([*names, *kept], lambda done, of: progress(stage, done, of)):
                yield {n: column.cast(types[n]) if n in types else column for n, column in block.items()}

    def conversion(self, name: str, kind: str | None) -> Conversion:
        """How the column becomes numbers by ``kind``, None: it holds numbers."""
        left_out = f"--id {quote(name)}"
        what = (
            f", which is not a number: choose --encode {quote(f'{name}=ordinal')}, one_hot, number or date, "
            f"or, if it identifies rows, leave it out with {left_out}"
        )
        return Conversion(name, kind, ("text", what, f"; {left_out} leaves it out"))

    def text_columns(self, among: Sequence[str], progress: Progress) -> list[str]:
        """The columns of ``among`` with other cells than numbers."""
        if self._file.is_parquet:
            tests = (pa.types.is_integer, pa.types.is_floating, pa.types.is_decimal)
            return [n for n in among if not any(test(self._file.schema.field(n).type) for test in tests)]
        found: set[str] = set()
        for block in self.blocks(among, (), "looking for text", progress):
            found |= {n for n in among if n not in found and not _all_numbers(block[n])}
        return [n for n in among if n in found]


def _all_numbers(column: pa.Array) -> bool:
    try:
        as_floats(column)
    except pa.ArrowInvalid:
        return False
    return True
