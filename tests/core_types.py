"""Print two core types of OpenBLAS that this processor can run and whose kernels are not its own, for ``make
kernels``.

``OPENBLAS_CORETYPE`` asks for a core type; the build answers with the kernels that it has for it: Zen gets
Haswell's as a rule.
"""

from __future__ import annotations

import os
import subprocess
import sys

#: In order of preference: what most machines have, then the most different.
CORE_TYPES = ("SkylakeX", "Haswell", "Zen", "Prescott", "Sandybridge", "Nehalem")

#: Prints the kernels that NumPy and SciPy then use; an instruction that the processor lacks ends it.
_TRY = """
import numpy, scipy.linalg, threadpoolctl
a = numpy.random.default_rng(0).normal(size=(200, 200))
scipy.linalg.svd(a @ a), numpy.linalg.svd(a @ a), numpy.linalg.solve(a, a)
found = threadpoolctl.threadpool_info()
print(*sorted({lib["architecture"] for lib in found if lib["internal_api"] == "openblas"}))
"""


def kernels(core_type: str = "") -> str:
    """The kernels under ``core_type``, "" for the machine's own; "" where it cannot run them."""
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_CORETYPE"}
    if core_type:
        environment["OPENBLAS_CORETYPE"] = core_type
    tried = subprocess.run(
        [sys.executable, "-c", _TRY], env=environment, capture_output=True, text=True, check=False
    )
    return tried.stdout.strip() if tried.returncode == 0 else ""


def others(most: int = 2) -> list[str]:
    """Core types with kernels of their own, neither the machine's nor each other's."""
    seen = {"", kernels()}
    chosen: list[str] = []
    for core_type in CORE_TYPES:
        if len(chosen) < most and (found := kernels(core_type)) not in seen:
            seen.add(found)
            chosen.append(core_type)
    return chosen


if __name__ == "__main__":
    found = others()
    if len(found) < 2:
        sys.exit(
            f"only {found} can be tried beside this machine's own kernels: is NumPy built with OpenBLAS?"
        )
    print(*found)
