"""Each installed defence at each hook that it has, those that take a torch module too."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

import numpy as np
import torch

from vflens.models.networks.generator import keyed
from vflens.plugins.defense import GATE_HOOKS, INNER_HOOKS, PHASES, Defense
from vflens.registry import DEFENSES
from vflens.testing import defenses as contract
from vflens.testing.defenses import context_of, owner_sees
from vflens.types import Phase

NAMES = DEFENSES.names()
CLASSES: Mapping[str, type[Defense]] = {name: DEFENSES.get(name) for name in NAMES}
HOOKS = (*INNER_HOOKS, *dict.fromkeys(GATE_HOOKS.values()))
ON_MODULES = ("wrap_model", "penalty")
CASES = [(name, hook, phase) for name in NAMES for hook, phase in contract.cases(CLASSES[name]())]
MODULE_CASES = [(name, hook) for name in NAMES for hook in ON_MODULES if hook in CLASSES[name].hooks()]


def a_network() -> torch.nn.Module:
    """A small network whose start is always the same."""
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 3))


def applied(name: str, hook: str, value: Any, phase: Phase | None = None) -> Any:
    return contract.applied(CLASSES[name](), hook, phase or PHASES[hook][0], value)


def wrapped(name: str, network: torch.nn.Module) -> torch.nn.Module:
    defense = CLASSES[name]()
    return defense.wrap_model(network, context_of(defense, "wrap_model", Phase.TRAIN))


def penalty_of(name: str, network: torch.nn.Module) -> torch.Tensor:
    """The term for one batch, with the model that the defence itself wraps."""
    defense, module = CLASSES[name](), wrapped(name, deepcopy(network))
    x = torch.from_numpy(np.asarray(owner_sees().features)).float()
    with keyed(np.random.default_rng(0)):
        h = module(x)
    return defense.penalty(module, h, x, context_of(defense, "penalty", Phase.TRAIN))
