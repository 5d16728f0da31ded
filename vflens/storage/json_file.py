"""JSON from a file that may be damaged or another party's."""

import json
import math
import re
from collections.abc import Mapping
from datetime import date, time
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

from vflens.errors import shortened
from vflens.names import REMEDIES
from vflens.storage.regular import read_text

T = TypeVar("T")
#: What a figure can be, checked where a file is read; ``Size``: of an error, a unit, a distance.
Share: TypeAlias = Annotated[float, Field(ge=0, le=1)]
Size: TypeAlias = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Number: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
Rows: TypeAlias = Annotated[int, Field(gt=0)]
Word: TypeAlias = Annotated[str, Field(min_length=1)]
_NO_NUMBER = re.compile("invalid literal for|could not convert string")
#: What errors of these classes say of a file.
_CLASSES: dict[tuple[type[Exception], ...], str] = {
    (UnicodeDecodeError,): "it is no text in UTF-8",
    (RecursionError,): "it is nested too deeply",
    (TypeError, AttributeError, OverflowError, IndexError): "a value in it is of another kind, or too large",
}
_SENTENCES = ("builtins", "vflens", "tomllib")  # whose errors read as sentences
_MOST = 200  # characters of a wrong value in a refusal
#: By pydantic's name of a problem, what it asks for in our words; another problem keeps pydantic's.
_PROBLEMS = {
    "missing": "it is missing",
    "extra_forbidden": "there is no such setting",
    "greater_than": "give more than {gt}",
    "greater_than_equal": "give {ge} or more",
    "less_than": "give less than {lt}",
    "less_than_equal": "give {le} or less",
    "finite_number": "give a finite number",
    "literal_error": "give {expected}",
    "union_tag_invalid": "its {discriminator} is '{tag}': give {expected_tags}",
    "union_tag_not_found": "its {discriminator} is missing",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "give a whole number"),
    **dict.fromkeys(("float_type", "float_parsing"), "give a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "give true or false"),
    "string_type": "give a text",
    "json_invalid": "it is no JSON",
    "too_short": "give a list of length {min_length} or more",
    "too_long": "give a list of length {max_length} or less",
    "string_too_short": "give a text of length {min_length} or more",
    "string_too_long": "give a text of length {max_length} or less",
    "path_type": "give a path",
    **dict.fromkeys(("list_type", "tuple_type"), "give a list"),
    **dict.fromkeys(("dict_type", "model_type", "dataclass_type"), "give a table"),
}


def finite(value: Any) -> Any:
    """``value`` of tables, lists and numbers for JSON: what is not finite becomes None, a key its text."""
    if isinstance(value, Mapping):
        return {str(k): finite(v) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [finite(v) for v in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def json_object(text: str | bytes) -> dict[str, Any]:
    """The JSON object in ``text``.

    Raises:
        ValueError: it is no JSON object, for any reason.
    """
    try:
        found = json.loads(text)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(found, dict):
        raise ValueError("it is no JSON object")
    return found


def read_as(kind: type[T], file: Path) -> T:
    """The ``kind`` that the JSON in ``file`` describes; nothing is converted to fit.

    Raises:
        OSError: it cannot be read.
        ValueError: it describes none.
    """
    return TypeAdapter(kind).validate_json(read_text(file), strict=True)


def in_words(error: Exception) -> str:
    """What ``error`` says of a file in our words: the first wrong field with its value.

    A ``ValueError`` of our own is a sentence already.
    """
    match error:
        case ValidationError():
            problem = error.errors(include_url=False)[0]
            return worded(".".join(map(str, problem["loc"])), problem)
        case json.JSONDecodeError():
            return f"no JSON from line {error.lineno}, character {error.colno}"
        case OSError():
            return error.strerror or str(error)
        case KeyError():
            return f"it lacks {error}"
    return _in_our_words(error)


def _in_our_words(error: Exception) -> str:
    """A library's ``error`` by its class; our own as it is."""
    if _NO_NUMBER.match(str(error)):
        return "a text stands where a number is due"
    own = type(error).__module__.partition(".")[0] in _SENTENCES
    asis = str(error) if own else "it is damaged or cut off"
    return next((words for kinds, words in _CLASSES.items() if isinstance(error, kinds)), asis)


def worded(field: str, problem: Mapping[str, Any], *, hidden: bool = False) -> str:
    """A ``problem`` of pydantic with ``field`` and value, unless that is ``hidden``, a table or a list."""
    about = {name: _shortest(value) for name, value in problem.get("ctx", {}).items()}
    asked = _PROBLEMS.get(problem["type"], "").format(**about)
    message = REMEDIES.get(
        str(about.get("pattern")), asked or str(problem["msg"]).removeprefix("Value error, ")
    )
    value = problem["input"]
    if not field or hidden or isinstance(value, dict | list | tuple | BaseModel):
        return f"{field}: {message}".removeprefix(": ")
    return f"{field}: {message} (got {shortened(_shown(value), _MOST)})"


def _shortest(value: Any) -> Any:
    """A whole number without its ".0"."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _shown(value: Any) -> str:
    """``value`` as its file has it; a text as in Python."""
    if isinstance(value, date | time):
        return value.isoformat()
    return json.dumps(value) if value is None or isinstance(value, bool) else repr(value)
