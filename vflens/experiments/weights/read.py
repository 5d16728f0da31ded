"""The model in a file, by the ending of its name."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

from vflens.errors import ConfigError, DataError
from vflens.experiments.weights.linear import LinearModel, read_npz, read_safetensors
from vflens.experiments.weights.network import Graph
from vflens.experiments.weights.onnx_file import read_onnx
from vflens.experiments.weights.pickles import refuse_pickle
from vflens.experiments.weights.tree_file import read_trees
from vflens.experiments.weights.trees import TreeModel
from vflens.words import counted

AnyModel = LinearModel | Graph | TreeModel
_READERS: Mapping[str, Callable[[Path], AnyModel]] = MappingProxyType(
    {
        ".npz": read_npz,
        ".safetensors": read_safetensors,
        ".onnx": read_onnx,
        **dict.fromkeys((".ubj", ".json", ".txt"), read_trees),
    }
)
#: The endings of files that hold a model.
MODELS = tuple(_READERS)
_LARGEST = 1 << 30  # bytes of a file: minutes


def read_model(file: Path) -> AnyModel:
    """The model in ``file``.

    Raises:
        ConfigError: an ending that no reader has, or a reader's extra that is not installed.
        DataError: there is no such file, it is larger than 1 GiB or a pickle, or it holds no model that an
            audit can read.
        StorageError: it is no archive of arrays.
    """
    if not file.is_file():
        raise DataError(f"--weights {file}: there is no such file")
    refuse_pickle(file, "weights.npz")
    reader = _READERS.get(file.suffix.lower())
    if reader is None:
        raise ConfigError(f"--weights {file}: give a file that ends in {', '.join(_READERS)}")
    if file.stat().st_size > _LARGEST:
        raise DataError(
            f"{file} has {counted(file.stat().st_size, 'byte', ',')}: give a model of at most {_LARGEST:,}"
        )
    return reader(file)
