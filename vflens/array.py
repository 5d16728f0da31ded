"""The one type of an array; numerics import it without anything else of the package."""

from typing import Any, TypeAlias

import numpy.typing as npt

Array: TypeAlias = npt.NDArray[Any]
