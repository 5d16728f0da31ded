"""A made-up third setting: one party trains alone, and nobody attacks.

It is what a wing of vflens would be, in a package of its own: a configuration, an agreement, a member, an
experiment, checks, and an entry in each table (:mod:`toysetting.command`). ``python -m toysetting.command``
is ``vflens`` with it.

``Role`` and ``Setting`` are closed: a setting of vflens adds its names in ``vflens/types.py``. Here they are
made with one more name each, before any module has read them.
"""

from __future__ import annotations

import sys
from enum import StrEnum

from vflens import types

if "vflens.protocol.roles" in sys.modules:
    raise ImportError("vflens has read its roles: import toysetting first, in a process of its own")
for _closed, _name in ((types.Role, "SOLO"), (types.Setting, "ALONE")):
    _names = {**{m.name: m.value for m in _closed}, _name: _name.lower()}
    vars(types)[_closed.__name__] = StrEnum(_closed.__name__, _names, module=types.__name__)
