"""An audit's subject beside a model that another framework trained: which inputs are the party's columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from vflens.errors import ConfigError
from vflens.experiments.audit.subject import Subject, is_table, load_subject
from vflens.experiments.weights.linear import LinearModel


def places(names: Sequence[str], inputs: Sequence[str] | None, width: int, source: str) -> list[int]:
    """The place of each column of ``names`` among the ``width`` inputs of a model.

    Args:
        names: the party's columns, in ``source``.
        inputs: the model's, in order; None: the party's columns alone.
        width: how many inputs the model has.
        source: names the party in refusals.

    Raises:
        ConfigError: another number of inputs, one that is named twice, or a column that is none of them.
    """
    given = list(names if inputs is None else inputs)
    if len(given) != width:
        held = f"{source} has {len(given)} columns" if inputs is None else f"--inputs names {len(given)}"
        raise ConfigError(f"the model has {width} inputs and {held}: name all inputs in order with --inputs")
    if repeated := [name for name in given if given.count(name) > 1]:
        raise ConfigError(f"--inputs names {repeated[0]!r} twice: name each input once")
    if missing := [name for name in names if name not in given]:
        raise ConfigError(
            f"column {missing[0]!r} of {source} is no input of the model: choose yours with --columns, or "
            "name the model's inputs with --inputs"
        )
    return [given.index(name) for name in names]


def model_subject(source: str, model: LinearModel, *, classes: int | None, **chosen: Any) -> Subject:
    """The party that ``source`` names, for the classes of ``model``; see :func:`load_subject`.

    Raises:
        ConfigError: another number of classes, or as :func:`load_subject`.
        DataError: a file that cannot be used.
    """
    asked = (classes or model.classes) if is_table(source) else classes
    subject = load_subject(source, classes=asked, **chosen)
    if subject.classes != model.classes:
        raise ConfigError(
            f"the model has {model.classes} classes and {subject.name} {subject.classes}: "
            "give the model that was trained for it"
        )
    return subject


def with_model(subject: Subject, model: LinearModel, inputs: Sequence[str] | None) -> Subject:
    """``subject`` with its block of ``model``, for columns in [0, 1].

    With x = low + (high − low) u the weights of u are W (high − low).

    Raises:
        ConfigError: the columns and the inputs do not fit, or the subject has a model of its own.
    """
    if subject.bounds is None:
        raise ConfigError(f"--weights with {subject.name}: its model is that of the run, leave it out")
    mine = places([c.name for c in subject.columns], inputs, model.width, subject.name)
    width = subject.bounds[:, 1] - subject.bounds[:, 0]
    return replace(subject, weight=np.ascontiguousarray(model.weight[:, mine] * width))
