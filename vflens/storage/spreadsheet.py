"""Texts of others that a spreadsheet shows, and does not run."""

import pyarrow as pa
import pyarrow.compute as pc

_FORMULA = r"^[=+\-@\t\r]"  # first characters of a text that a spreadsheet runs, unless it is a number
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"


def as_shown(column: pa.Array) -> pa.Array:
    """Texts with an apostrophe before each that a spreadsheet would run: it then shows the text."""
    return pc.if_else(formulas(column), pc.binary_join_element_wise("'", column, ""), column)


def formulas(column: pa.Array) -> pa.Array:
    """Whether a spreadsheet would run each text, bool (n,)."""
    number = pc.match_substring_regex(column, _NUMBER)
    return pc.and_(pc.match_substring_regex(column, _FORMULA), pc.invert(number))
