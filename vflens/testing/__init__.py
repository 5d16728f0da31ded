"""What every plug-in promises, as classes of tests that one from outside derives its own from.

>>> class TestMine(AttackContract):
...     @pytest.fixture
...     def attack(self):
...         return Mine()

*New in 0.3, may change.* It needs pytest, which is no part of VFLens.
"""

from importlib.util import find_spec

from vflens.errors import ConfigError

if find_spec("pytest") is None:
    raise ConfigError("vflens.testing needs pytest: install it, with pip install pytest")

import pytest

pytest.register_assert_rewrite(*(f"{__name__}.{m}" for m in ("attacks", "datasets", "defenses", "families")))

from vflens.testing.attacks import AttackContract, LinearAttackContract
from vflens.testing.datasets import DatasetContract
from vflens.testing.defenses import DefenseContract
from vflens.testing.families import FamilyContract

__all__ = ["AttackContract", "DatasetContract", "DefenseContract", "FamilyContract", "LinearAttackContract"]
