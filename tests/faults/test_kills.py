"""Thirty kills of real processes: the others end with a numbered error, no log is touched, and the run goes
on from the folders to the undisturbed run's bits.
"""

from __future__ import annotations

import signal
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from cells import Undisturbed
from kills import Folder, judge, kill_points, killed
from stubparty import short_folder
from thinned import thinned
from world import KINDS, quick

KILLS, BATCHES = 30, 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder(tmp_path_factory.mktemp("dealt"))


@pytest.fixture(scope="module")
def undisturbed(folder: Folder, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Undisturbed]:
    with quick():
        yield folder.undisturbed(tmp_path_factory.mktemp("undisturbed") / "run")


def faults(undisturbed: Undisturbed) -> list[tuple[str, str]]:
    """Party and fault of each kill, spread over all fail points."""
    rng, points = np.random.default_rng(7), kill_points(undisturbed)
    chosen = points[:: len(points) // KILLS][:KILLS]
    return [(who, f"{place}:{rng.integers(most) + 1}:kill") for who, place, most in chosen]


@pytest.mark.parametrize("first", thinned(((first,) for first in range(BATCHES)), BATCHES))
def test_killed(tmp_path: Path, folder: Folder, undisturbed: Undisturbed, first: int) -> None:
    """Each batch spreads over the fail points of all parties."""
    chosen = faults(undisturbed)[first::BATCHES]
    assert len(chosen) == KILLS // BATCHES
    ended = killed(folder, tmp_path, chosen)
    for (who, fault), (home, codes) in zip(chosen, ended, strict=True):
        try:
            judge(home, who, codes, undisturbed)
        except AssertionError as error:
            error.add_note(f"{who} {fault}")
            raise


#: Of six steps: the active party dies with the digest of the second message of step 1 on disk, unsent; the
#: first passive party with that of its second answer of step 2; the dealer when it has dealt, unheard.
WITHIN_A_STEP = [
    ("active", "digests.bin.written:5:kill"),
    ("passive", "digests.bin.written:7:kill"),
    ("coordinator", "Deal.answered:1:kill"),
]


COMPUTING = ("active", "passive")


def digests(home: Path, *who: str) -> dict[str, bytes]:
    """Those of all that these parties sent in training."""
    return {party: (home / party / "released/digests.bin").read_bytes() for party in who}


def sent_twice(home: Path) -> list[bytes]:
    """Kind, round and number of what any party released with two values."""
    files = sorted(home.glob("*/released/digests.bin"))
    assert len(files) == 3
    records = [(f.parts[-3], r) for f in files for (r,) in struct.iter_unpack("50s", f.read_bytes())]
    seen = Counter((party, record[:18]) for party, record in set(records))
    return [exchange for (_, exchange), times in seen.items() if times > 1]


@pytest.mark.parametrize("kind", thinned([("protected training",), ("number on shares",)]))
def test_killed_within_a_step_of_protected_training(kind: str) -> None:
    """Who is resumed sends the bytes whose digest was on disk: no mask hides two values."""
    with quick(), short_folder() as home_of_all:  # a socket's path is short
        folder = Folder(home_of_all / "dealt", KINDS[kind])
        undisturbed = folder.undisturbed(home_of_all / "undisturbed")
        all_sent = digests(home_of_all / "undisturbed", *COMPUTING)
        assert not sent_twice(home_of_all / "undisturbed")
        for who, fault in WITHIN_A_STEP:
            (home_of_all / who).mkdir()
            ((home, codes),) = killed(folder, home_of_all / who, [(who, fault)])
            text = {p: (home / p / "output.log").read_text(encoding="utf-8") for p in codes}
            assert codes[who] == -signal.SIGKILL, (codes, text)
            sent = digests(home, *COMPUTING)
            assert all(0 < len(sent[p]) < len(all_sent[p]) for p in sent), who
            assert all(all_sent[p].startswith(sent[p]) for p in sent), who
            judge(home, who, codes, undisturbed)
            assert digests(home, *COMPUTING) == all_sent, who
            assert not sent_twice(home), who
