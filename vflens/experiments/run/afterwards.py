"""What a lab adds to a run that its parties have finished: the clear twin of protected training, and attacks
of parties that collude. What is there after an interruption stays.
"""

from collections.abc import Mapping
from pathlib import Path

from vflens.config import LeaderConfig, PartyConfig, load_party
from vflens.experiments.results.folders import read_party
from vflens.experiments.run.collusion import aims_left, attack_together
from vflens.storage.metrics import Name
from vflens.types import Progress


def is_left(files: Mapping[str, Path]) -> bool:
    """Whether the finished run of the configurations in ``files``, by party, lacks any of it."""
    configs = _loaded(files)
    return _lacks_twin(configs) or any(True for _ in aims_left(configs))


def add_afterwards(
    files: Mapping[str, Path], progress: Progress, configs: Mapping[str, PartyConfig] | None = None
) -> None:
    """Add what the finished run of the configurations in ``files`` lacks.

    Args:
        files: party → its configuration.
        progress: called with the stages of each addition.
        configs: what the files say, where that is known.
    """
    configs = configs or _loaded(files)
    if _lacks_twin(configs):
        from vflens.experiments.run.vertical.clear_twin import add_clear_twin  # the code of every party

        add_clear_twin(files, progress)
    for aim in aims_left(configs):
        attack_together(aim, progress)


def _loaded(files: Mapping[str, Path]) -> dict[str, PartyConfig]:
    return {party: load_party(file) for party, file in files.items()}


def _lacks_twin(configs: Mapping[str, PartyConfig]) -> bool:
    if not any(isinstance(c, LeaderConfig) and c.lab and c.training.is_protected for c in configs.values()):
        return False
    figures = {m.name for c in configs.values() for m in read_party(c.out).metrics}
    return not {Name.ACCURACY_CLEAR, Name.R2_CLEAR} & figures
