"""Pickles can run any code when they are opened: they are refused with the line that converts them."""

from pathlib import Path
from zipfile import BadZipFile, ZipFile

from vflens.errors import DataError

_JOBLIB, _TORCH = (".pkl", ".pickle", ".joblib"), (".pt", ".pth", ".bin")


def refuse_pickle(file: Path, saved: str) -> None:
    """Refuse ``file`` if it is a pickle or an archive of one.

    Args:
        file: may be absent.
        saved: name of the npz file that the printed line writes.

    Raises:
        DataError: it is one; the sentence has the line of Python that converts it.
    """
    if line := _conversion(file, saved):
        raise DataError(
            f"{file} is a pickle, which can run any code when it is opened: where you trust it, convert it "
            f"with python -c {line!r}"
        )


def _conversion(file: Path, saved: str) -> str:
    """The line of Python that makes arrays of the pickle ``file``; "" if it is none."""
    if not file.is_file():
        return ""
    with file.open("rb") as stream:
        pickled = stream.read(1) == b"\x80"
    inside, suffix = _members(file), file.suffix.lower()
    if any(name.endswith("data.pkl") for name in inside) or (suffix in _TORCH and not inside and pickled):
        return (
            f"import torch, numpy; s = torch.load({file.name!r}, weights_only=True); "
            "s = s.get('model_state_dict', s); "  # as SecretFlow saves a part
            f"numpy.savez({saved!r}, **{{key: t.numpy() for key, t in s.items()}})"
        )
    if pickled or (suffix in (*_JOBLIB, ".pt", ".pth") and not inside):
        return (
            f"import joblib, numpy; m = joblib.load({file.name!r}); "
            f"numpy.savez({saved!r}, W=m.coef_, bias=m.intercept_)"
        )
    return ""


def _members(file: Path) -> list[str]:
    try:
        with ZipFile(file) as archive:
            return archive.namelist()
    except (BadZipFile, OSError, ValueError, NotImplementedError):
        return []
