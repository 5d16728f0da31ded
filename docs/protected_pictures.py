"""The picture of protected training: ``python docs/protected_pictures.py`` runs its mutants and writes it.

``docs/protected.svg``: what an adversary finds where a mask is missing, known or used twice.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from plugin_pictures import DOCS, bars


def errors() -> str:
    """For sound masks and each mutant: the columns' error over a blind guess's, labels named wrongly."""
    sys.path.insert(0, str(DOCS.parent / "tests"))
    from mutants import MUTANTS, PARAMETERS, found_labels, share_of_blind, trained

    rows = []
    for mutant in (None, *MUTANTS):
        name = "sound masks" if mutant is None else mutant.__name__.replace("_", " ")
        with TemporaryDirectory() as home, pytest.MonkeyPatch.context() as patch:
            if mutant is not None:
                mutant(patch, PARAMETERS["logistic"])
            local = trained(Path(home), grants=0 if mutant is None else MUTANTS[mutant].grants)
            columns, labels = share_of_blind(local), 1 - found_labels(local)[0]
        rows.append((f"{name}: columns", columns, f"{columns:.2f} of a blind guess's error"))
        rows.append((f"{name}: labels", labels, f"{labels:.2f} named wrongly"))
    return bars("Training on shares: what is opened gives away", rows, line=1.0)


def main(folder: Path = DOCS) -> None:
    """Write it."""
    (folder / "protected.svg").write_text(errors(), encoding="utf-8")


if __name__ == "__main__":
    main()
