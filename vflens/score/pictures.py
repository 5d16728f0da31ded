"""Some original rows beside their reconstructions, in the target's folder."""

from collections.abc import Mapping
from pathlib import Path

from vflens.storage.files import load_arrays, save_arrays
from vflens.types import Array


def save_pictures(
    folder: Path, rows: Array, original: Array, estimates: Mapping[str, Array], of: str
) -> None:
    """Put the ``rows`` (m,), their ``original`` (m, d) and ``estimates`` of it by attack into
    ``pictures.npz``, beside those of other sets: ``of`` is the name of a round or of a scored set, "" of the
    one that the target always draws.

    Raises:
        StorageError: the file cannot be written.
    """
    file, prefix = folder / "pictures.npz", f"{of}/" if of else ""
    drawn = {"rows": rows, "original": original, **{f"estimate:{name}": x for name, x in estimates.items()}}
    kept = load_arrays(file, remedy="remove it") if file.exists() else {}
    others = {name: array for name, array in kept.items() if set_of(name) != of}
    save_arrays(file, others | {prefix + name: array for name, array in drawn.items()})


def set_of(name: str) -> str:
    """The rows to which the array ``name`` of the file belongs: see :func:`save_pictures`."""
    head, slash, _ = name.partition("/")
    return head if slash and ":" not in head else ""
