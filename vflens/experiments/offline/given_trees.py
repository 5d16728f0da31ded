"""Attacks on what a party saw while a vertical federation that VFLens did not run trained boosted trees."""

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np

from vflens.attacks.helpers.networks.directions import beliefs, clusters, directions
from vflens.experiments.offline.tree_recordings import read_histograms, read_spaces
from vflens.numerics.boosting.histograms import bins_of_rows
from vflens.numerics.boosting.instance_spaces import learned, shared_spaces
from vflens.randomness import secret_from_seed, stream
from vflens.types import Array, Estimate, RowStatus, statuses


def _labels(file: Path | str, given: Mapping[str, Array]) -> tuple[Estimate, Mapping[str, Array]]:
    """Beliefs in the classes of all rows but the known ones; without known ones in clusters."""
    seen = read_spaces(file, given)
    points = shared_spaces(seen.spaces, seen.tree)
    rows = np.setdiff1d(np.arange(len(points)), seen.known)
    if len(seen.known):
        values = learned(points, seen.known, seen.labels, seen.classes)
    else:
        ends = directions(points)
        rng = stream(secret_from_seed("0"), "attack", "instance_spaces")
        values = beliefs(ends @ clusters(ends, seen.classes, rng).T)
    kept = {"estimates": np.array("labels"), "clusters": np.array(not len(seen.known))}
    return Estimate("labels", rows, values[rows], statuses(len(rows))), kept


def _bins(file: Path | str, given: Mapping[str, Array]) -> tuple[Estimate, Mapping[str, Array]]:
    """The likeliest bin of each row in each column, scaled to [0, 1]; a row is ok if all are proven."""
    found = [bins_of_rows(column) for column in read_histograms(file, given)]
    last = found[0][0].shape[1] - 1
    values = np.stack([believed.argmax(axis=1) / last for believed, _ in found], axis=1)
    proven = np.stack([p for _, p in found], axis=1)
    status = statuses(len(values))
    status[~proven.all(axis=1)] = RowStatus.AMBIGUOUS
    estimate = Estimate("bins", np.arange(len(values)), values, status, extras={"proven": proven})
    return estimate, {"bounds": np.tile([0.0, last], (len(found), 1))}


_Attack = Callable[[Path | str, Mapping[str, Array]], tuple[Estimate, Mapping[str, Array]]]

#: Name → the estimate that it makes of a recording, by its name and arrays, and what the file of the estimate
#: has besides. A DataError refuses a recording that lacks an array, or has a wrong one.
TREE_ATTACKS: Mapping[str, _Attack] = MappingProxyType({"instance_spaces": _labels, "histograms": _bins})
