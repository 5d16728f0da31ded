"""FedAdOb's theorems beside the measurements that they are about: in other units, so never compared.

Theorem 1 is about a key guessed at random, so it stands beside attacks that guess so and no others. Theorem 2
is about a model fitted to granted labels. Both need the folder of the party whose passport it is; Theorem 2
also that of the attacking party, and Theorem 1 torch.
"""

import contextlib
import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from pydantic import ValidationError

from vflens.errors import StorageError, VflensError
from vflens.experiments.results.folders import PartyRun, PartyRuns
from vflens.experiments.results.labels_membership import LabelResult, label_results
from vflens.experiments.results.results import Result, final
from vflens.models.family import checked_model
from vflens.numerics.theory.fedadob import label_error_bound, log_recovery_probability, vacuous_error
from vflens.plugins.defense import Defense, installed_defense
from vflens.protocol.roles import ROLES
from vflens.score.theory import statements
from vflens.storage.files import load_arrays
from vflens.storage.journal import Reader
from vflens.types import Array, Document, Point
from vflens.words import counted

_STEPS = 100  # of Theorem 2's bound, which holds however early it ends


@dataclass(frozen=True)
class TheoremCheck:
    """A theorem's ``value`` beside the ``measured`` error of an attack on ``rows`` rows; ``says`` has the
    units of both.
    """

    theorem: str
    attack: str
    target: str
    scored_set: str
    rows: int
    measured: float
    value: float
    says: str


def beside(run: PartyRuns) -> tuple[TheoremCheck, ...]:
    """All that FedAdOb's theorems say of the attacks of ``run``."""
    return (*_random_guesses(run), *_fitted_labels(run))


def to_json(run: PartyRuns) -> list[Document]:
    """The same under stable keys."""
    return [dict(vars(found)) for found in beside(run)]


# -- Theorem 1 ----------------------------------------------------------------------------------------


def _random_guesses(run: PartyRuns) -> Iterator[TheoremCheck]:
    for result in final(run):
        of = statements(result.attack)
        if (
            of is None
            or not of.key_guess
            or not of.key_guess.items() <= _settings(run, result.attack).items()
        ):
            continue
        for largest_mean, layer in _passports(_party(run, result.target)):
            means = _key_means(run, result.target, layer)
            if means is not None:
                yield _guess(result, largest_mean, *means)


def _guess(result: Result, largest_mean: float, means: int, reads_columns: bool) -> TheoremCheck:
    """Numbers that share a mean do not count: with RMS error r, ε/√h = r√c."""
    error = math.sqrt(result.mse)
    log10 = log_recovery_probability(error * math.sqrt(means), largest_mean, means) / math.log(10)
    about = "" if reads_columns else " It is about the input of a later layer, whose error is not measured."
    says = (
        f"a random guess of the key errs by the measured {error:.3g} (root mean square) or less with "
        f"probability at most {_power(log10)}: {means} means from U(−{largest_mean:g}, 0). It says nothing "
        f"from an error of {vacuous_error(largest_mean, means):.3g} on, and nothing of an adversary who "
        f"estimates scale and shift.{about}"
    )
    where = (result.attack, result.target, result.scored_set, result.rows)
    return TheoremCheck("FedAdOb Theorem 1", *where, measured=error, value=10**log10, says=says)


def _power(log10: float) -> str:
    return f"{10**log10:.2g}" if log10 > -3 else f"10^{math.ceil(log10)}"


def _key_means(run: PartyRuns, target: str, layer: str | None) -> tuple[int, bool] | None:
    """How many means the key of ``target`` has, and whether its layer reads the columns themselves; None
    without torch or a split network.
    """
    model = next((p.federation.model for p in run.parties if p.federation.model), None)
    try:
        from vflens.models.networks.passport import key_means  # slow to load, for few runs

        return key_means(checked_model(model).network(), run.columns_of(target), layer)
    except (ImportError, VflensError):
        return None


# -- Theorem 2 ----------------------------------------------------------------------------------------


def _fitted_labels(run: PartyRuns) -> Iterator[TheoremCheck]:
    protected = [p.name for p in run.parties if p.role and ROLES[p.role].only_top and _passports(p)]
    fitted = [r for r in label_results(run) if (of := statements(r.attack)) is not None and of.fits_labels]
    for adversary in sorted({r.adversary for r in fitted}) if protected else ():
        known = _granted(_party(run, adversary))
        if known is not None:
            bound = label_error_bound(*known, steps=_STEPS)
            for result in (r for r in fitted if r.adversary == adversary):
                yield _fit(result, protected[0], bound, known[0].shape)


def _fit(result: LabelResult, target: str, bound: float, shape: tuple[int, ...]) -> TheoremCheck:
    rows, width = shape
    why = "" if bound else f", as {rows} embeddings of {counted(width, 'number')} can be fitted without error"
    says = (
        f"a linear model errs by at least {bound:.3g} on the {counted(rows, 'granted label')}{why}: a sum "
        "of distances, if the main model has no training error. Measured: a share of "
        f"{1 - result.accuracy:.3g} of the {result.kind} labels wrong."
    )
    where = (result.attack, target, result.scored_set, result.rows)
    return TheoremCheck("FedAdOb Theorem 2", *where, measured=1 - result.accuracy, value=bound, says=says)


def _granted(party: PartyRun | None) -> tuple[Array, Array] | None:
    """Embeddings (n, w) and one-hot labels (n, k) of rows granted to ``party``; None without its files."""
    if party is None or not (party.folder / "own.npz").exists():
        return None
    try:
        embeddings = load_arrays(party.folder / "own.npz").get("embeddings")
        received = list(Reader(party.folder / "transcript").select(Point.AUXILIARY))
    except StorageError:  # a folder without its transcript, or a damaged one
        return None
    granted = [r for r in received if "labels" in (r.tensors or {})]
    if embeddings is None or not granted:
        return None
    classes = max(info.n_classes for info in party.federation.parties)
    return embeddings[granted[-1].rows].astype(float), np.eye(classes)[granted[-1].tensor("labels")]


# -- what the folders hold ----------------------------------------------------------------------------


def _party(run: PartyRuns, name: str) -> PartyRun | None:
    return next((p for p in run.parties if p.name == name), None)


def _settings(run: PartyRuns, attack: str) -> Document:
    """The configured table of ``attack``."""
    return next((t for p in run.parties for t in p.settings.attacks if t.get("name") == attack), {})


def _passports(party: PartyRun | None) -> list[tuple[float, str | None]]:
    """N and the named layer of each passport that ``party`` configured."""
    found = []
    for table in party.settings.defenses if party else ():
        kind = installed_defense(str(table.get("name")))
        if kind is None or kind.fit is not Defense.fit:  # one that is fitted has no claim before
            continue
        settings = {name: value for name, value in table.items() if name != "name"}
        with contextlib.suppress(ValidationError):  # of another version of the plug-in
            largest = kind(**settings).claim({}).key_range
            if largest is not None:
                found.append((largest, settings.get("layer")))
    return found
