"""``make psi-check``, first half: lists of ids, and the common ones that our two parties find, as JSON."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from aligners import Aligner, aligned

SIZES = ((40, 7, 5), (300, 500, 120), (2000, 1500, 900))  # of each list, and of what is common


def case(one: int, other: int, common: int, draw: random.Random) -> dict[str, list[str]]:
    """Two lists in random order, and the ids that our parties align, sorted."""
    ids = [f"{draw.choice(['patient', 'žofie', '漢字', ''])}-{n}" for n in range(one + other)]
    shared, own = ids[:common], ids[common:one]
    lists = [shared + own, shared + ids[one : one + other - common]]
    for found in lists:
        draw.shuffle(found)
    with TemporaryDirectory() as home:
        parties = {n: Aligner(n, ids, Path(home), lab=False) for n, ids in zip("ab", lists, strict=True)}
        _, rows = aligned(parties, most=10_000)
    ours = [lists[0][row] for row in rows["a"]]
    assert ours == [lists[1][row] for row in rows["b"]]
    return {"one": lists[0], "other": lists[1], "ours": sorted(ours)}


if __name__ == "__main__":
    drawn = random.Random(7)
    found = [case(*sizes, drawn) for sizes in SIZES]
    Path(sys.argv[1]).write_text(json.dumps(found), encoding="utf-8")
