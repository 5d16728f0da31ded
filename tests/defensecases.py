"""Each defence at each hook that it has: what comes in, and what it makes of it."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import torch
from scipy.special import log_softmax

from vflens.array import ScaledColumns
from vflens.models.networks.generator import keyed
from vflens.plugins.defense import GATE_HOOKS, INNER_HOOKS, Context, Defense
from vflens.registry import DEFENSES
from vflens.types import Array, Exchange, Owner, Phase

NAMES = DEFENSES.names()
CLASSES: Mapping[str, type[Defense]] = {name: DEFENSES.get(name) for name in NAMES}
HOOKS = (*INNER_HOOKS, *dict.fromkeys(GATE_HOOKS.values()))
ARRAY_HOOKS = tuple(h for h in HOOKS if h not in ("on_parameters", "wrap_model", "penalty"))
#: When a value comes past a hook; tests that name no phase take the first.
PHASES: Mapping[str, tuple[Phase, ...]] = {
    "on_inputs": (Phase.TRAIN,),
    "on_labels": (Phase.TRAIN,),
    "on_batch": (Phase.TRAIN, Phase.PREDICT),
    "on_batch_labels": (Phase.TRAIN,),
    "on_received": (Phase.TRAIN,),
    "wrap_model": (Phase.TRAIN,),
    "penalty": (Phase.TRAIN,),
    "on_gradient": (Phase.TRAIN, Phase.DISCLOSE),
    "on_update": (Phase.TRAIN,),
    "on_embedding": (Phase.PREDICT, Phase.TRAIN, Phase.DISCLOSE),
    "on_outputs": (Phase.PREDICT,),
    "on_scores": (Phase.PREDICT,),
    "on_parameters": (Phase.DISCLOSE,),
    "on_dataset": (Phase.DISCLOSE,),
}
CASES = [(n, h, phase) for n in NAMES for h in sorted(CLASSES[n].hooks()) for phase in PHASES[h]]
ON_ARRAYS = [case for case in CASES if case[1] in ARRAY_HOOKS]


def owner_sees(classes: int = 5) -> Owner:
    rng = np.random.default_rng(0)
    weight = {"weight": rng.normal(size=(classes, 5))}
    return Owner(
        "passive", ScaledColumns(rng.random((6, 5))), rng.integers(0, classes, 6), classes, parameters=weight
    )


def context_of(
    defense: Defense,
    hook: str,
    secret: bytes = b"secret",
    *,
    rows: int = 6,
    classes: int = 5,
    phase: Phase | None = None,
) -> Context:
    owner = owner_sees(classes)
    state = defense.fit(owner, np.random.default_rng(1))
    exchange = Exchange("run", phase or PHASES[hook][0], 0, 7)
    known = (np.arange(rows, dtype=np.int32), state, hook, 0, secret)
    return Context(owner, exchange, *known, common=b"common")


def read_only(array: Array) -> Array:
    array.setflags(write=False)
    return array


def value_at(hook: str) -> Any:
    """A legal argument of ``hook``: read-only, so that writing into it raises."""
    rng = np.random.default_rng(2)
    if hook in ("wrap_model", "penalty"):
        return a_network()
    values = {
        "on_parameters": {"weight": read_only(rng.normal(size=(5, 5)))},
        **dict.fromkeys(("on_labels", "on_batch_labels"), np.eye(5)[rng.integers(0, 5, 6)]),
        "on_scores": log_softmax(3 * rng.normal(size=(6, 5)), axis=1),
    }
    value = values.get(hook, rng.random((6, 5)))
    return read_only(value) if isinstance(value, np.ndarray) else value


def a_network() -> torch.nn.Module:
    """A small network whose start is always the same."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))


def applied(name: str, hook: str, value: Any, phase: Phase | None = None) -> Any:
    defense = CLASSES[name]()
    rows = 6 if isinstance(value, Mapping | torch.nn.Module) else len(value)
    classes = value.shape[1] if hook == "on_scores" else 5
    if hook == "penalty":
        return penalty_of(defense, value)
    return getattr(defense, hook)(value, context_of(defense, hook, rows=rows, classes=classes, phase=phase))


def penalty_of(defense: Defense, network: torch.nn.Module) -> torch.Tensor:
    """The term for one batch, with the model that the defence itself wraps."""
    module = defense.wrap_model(deepcopy(network), context_of(defense, "wrap_model"))
    x = torch.from_numpy(np.asarray(owner_sees().features)).float()
    with keyed(np.random.default_rng(0)):
        h = module(x)
    return defense.penalty(module, h, x, context_of(defense, "penalty"))
