"""A family of models with its settings as a message."""

from pydantic import ValidationError

from vflens.config import describe_problem
from vflens.errors import PluginError, ProtocolError, from_peer
from vflens.models.family import ModelFamily, checked_model
from vflens.storage.json_file import in_words, json_object
from vflens.words import counted

MAX_MODEL = 65_536  # characters of JSON


def decode_model(text: str) -> ModelFamily:
    """The model that the JSON ``text`` describes.

    Raises:
        ProtocolError: no JSON, too long, of a family that is not installed here, or settings out of range.
    """
    if len(text) > MAX_MODEL:
        raise ProtocolError(
            f"a model described in {counted(len(text), 'character')}: up to {MAX_MODEL} are read"
        )
    try:
        settings = json_object(text)
    except ValueError as error:
        raise ProtocolError(
            f"a federation whose model is no JSON object ({in_words(error)}): use the same version everywhere"
        ) from None
    try:
        return checked_model(settings)
    except PluginError as error:
        raise ProtocolError(f"the federation's model: {error}; install its package at every party") from None
    except ValidationError as error:
        raise out_of_range("model", error) from None


def out_of_range(what: str, error: ValidationError) -> ProtocolError:
    """The refusal of a peer's settings ``what``."""
    problems = "; ".join(map(describe_problem, error.errors()))
    return ProtocolError(f"{what} settings out of range: {from_peer(problems)}")
