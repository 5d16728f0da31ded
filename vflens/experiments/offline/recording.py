"""The folder that ``examples/recorder`` wrote in another framework: one party's messages, and who took part.

It has no configuration, no model and no table. So attacks on labels that read gradients alone run on it.
"""

from pathlib import Path

import numpy as np

from vflens.errors import ConfigError, DataError
from vflens.experiments.offline.command import carried_out, certificates, configured, scored_phase, sides
from vflens.experiments.results.folders import read_party
from vflens.member.adversary import save_estimate
from vflens.models.settings import Training
from vflens.names import repeated
from vflens.plugins.attack import Attack
from vflens.protocol.vertical.agreement import VerticalAgreement
from vflens.recorded.vertical.view import view_of
from vflens.storage.journal import Reader
from vflens.storage.private import owner_only
from vflens.types import Array, Document, Facts, Knowledge, Phase, Point, Progress, Released, Role
from vflens.words import counted

_MOST_ROWS = 10_000_000  # a row's number decides the memory of an attack


def is_recording(folder: Path) -> bool:
    """Whether a recorder wrote ``folder``: it describes a federation that aligned no rows with VFLens."""
    named = (folder / "federation.json").exists()
    return named and not any((folder / file).exists() for file in ("config.toml", "rows.npz"))


def attack_recording(
    folder: Path,
    name: str,
    target: str | None,
    out: Path,
    *,
    parameters: Facts,
    scored: Phase | None,
    progress: Progress,
) -> Document:
    """Do as :func:`vflens.experiments.offline.attack.attack_recorded`, on the ``folder`` of a recorder.

    Raises:
        ConfigError: the attack needs more than the folder has, or a wrong parameter, target or kind of rows.
        DataError: the description or a message is wrong.
        StorageError: the log is damaged.
        KnowledgeError, PluginError: the attack fails.
    """
    attack = configured((), name, parameters)
    _check_enough(attack, name)
    federation, own = _federation(folder)
    party, target = sides(attack, [own], federation, target)
    scored = scored_phase(attack, name, scored)
    view = view_of(
        attack,
        federation,
        party=party,
        target=target,
        rows=federation.train,
        transcript=Reader(folder / "transcript"),
        own={},
        every=1,
        device="cpu",
        progress=progress,
    )
    estimate = carried_out(attack, view, name, "0")
    names = {"run": federation.run, "adversary": party, "attack": name, "scored": scored.value}
    with owner_only():  # the guess of the target's labels
        save_estimate(out, estimate, estimates=attack.estimates, step=None, **names)
    facts = {"attack": name, "target": target, "scored_set": scored.value, "rows": len(estimate.rows)}
    return {**facts, "estimate": str(out), **certificates(estimate)}


def _check_enough(attack: Attack, name: str) -> None:
    if attack.needs != {Knowledge.GRADIENTS}:
        raise ConfigError(
            f"attack {name!r} needs {', '.join(sorted(attack.needs)) or 'no message'}: a recorder's folder "
            "takes attacks on labels that read gradients alone, such as gradient_clustering; for attacks on "
            "columns give --arrays FILE"
        )


def _federation(folder: Path) -> tuple[VerticalAgreement, str]:
    """The federation that ``folder`` describes, with the rows that have gradients, and the folder's party."""
    facts, file = read_party(folder).federation, folder / "federation.json"
    active = [p for p in facts.parties if p.role is Role.ACTIVE]
    if len(active) != 1 or active[0].n_classes < 2:
        raise DataError(f"{file} describes no party with labels: give one active party its classes")
    names = [p.name for p in facts.parties]
    if names.count(facts.party) != 1 or repeated(names) is not None:
        raise DataError(
            f"{file} does not describe {facts.party!r} and every other party once: it has {names}"
        )
    rows = _rows(folder)
    none = np.zeros(0, np.int32)
    return VerticalAgreement(
        run=facts.run,
        parties=facts.parties,
        rows=1 + int(rows[-1]),
        train=rows,
        predict=none,
        training=Training(),
        lab=False,
    ), facts.party


def _rows(folder: Path) -> Array:
    """The rows int32 (n,) that gradients in ``folder`` name, sorted."""
    found = list(Reader(folder / "transcript").select(Point.GRADIENT, phases={Phase.TRAIN}))
    if not found:
        raise DataError(f"{folder} holds no gradient of training: record those that its party receives")
    width = found[0].tensor("gradient").shape[1:]
    for released in found:
        _check(folder, released, width)
    return np.unique(np.concatenate([released.rows for released in found]))


def _check(folder: Path, released: Released, width: tuple[int, ...]) -> None:
    rows, gradient = released.rows, released.tensor("gradient")
    message = f"{folder}: gradient {released.exchange.step} of {released.sender!r}"
    if rows.dtype != np.int32 or not len(rows) or rows.min() < 0 or rows.max() >= _MOST_ROWS:
        raise DataError(f"{message} has other rows than 0 to {_MOST_ROWS - 1}: number them from 0")
    if gradient.ndim != 2 or gradient.shape != (len(rows), *width) or not np.isfinite(gradient).all():
        raise DataError(
            f"{message} has shape {gradient.shape} for {counted(len(rows), 'row')}: record finite numbers, "
            "one line for each row, all of one width"
        )
