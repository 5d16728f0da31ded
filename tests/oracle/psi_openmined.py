"""``make psi-check``, second half: OpenMined's PSI finds the same common ids in the lists of the first.

It runs in an environment of its own, with ``openmined-psi`` alone.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any


def intersection(psi: Any, one: list[str], other: list[str]) -> list[str]:
    """The common ids, sorted, by OpenMined's protocol: a client with ``one``, a server with ``other``."""
    client, server = psi.client.CreateWithNewKey(True), psi.server.CreateWithNewKey(True)
    setup = server.CreateSetupMessage(0.0, len(one), other, psi.DataStructure.RAW)
    places = client.GetIntersection(setup, server.ProcessRequest(client.CreateRequest(one)))
    return sorted(one[place] for place in places)


def main(file: Path) -> None:
    """Compare; the process fails where they differ."""
    import private_set_intersection.python as psi  # type: ignore[import-not-found,unused-ignore]

    for case in json.loads(file.read_text(encoding="utf-8")):
        theirs = intersection(psi, case["one"], case["other"])
        if not theirs or theirs != case["ours"]:
            sys.exit(
                f"of {len(case['one'])} and {len(case['other'])} ids: {len(theirs)} and {len(case['ours'])}"
            )
        print(f"{len(case['one'])} and {len(case['other'])} ids: the same {len(theirs)} are common")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
