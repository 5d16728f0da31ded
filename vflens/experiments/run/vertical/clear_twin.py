"""The clear twin of a protected run: the same federation, seed and rows, trained in the clear."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from threadpoolctl import threadpool_limits

from vflens.config import ActiveConfig, CoordinatorConfig, PartyConfig, PassiveConfig, Recording, load_party
from vflens.experiments.results.folders import read_party
from vflens.experiments.run.in_process import LocalFederation
from vflens.storage.metrics import Metrics, Name, metric_rows
from vflens.storage.private import owner_only
from vflens.types import Progress

#: Of classes, then of a number.
_FIGURES = {
    Name.ACCURACY: Name.ACCURACY_CLEAR,
    Name.AUC: Name.AUC_CLEAR,
    Name.R2: Name.R2_CLEAR,
    Name.RMSE: Name.RMSE_CLEAR,
}


def add_clear_twin(configs: Mapping[str, Path], progress: Progress) -> None:
    """Train the finished federation of ``configs`` in the clear, and add its accuracy and AUC, of a number R²
    and RMSE, to the figures of the active party.

    The twin runs in this process, without attacks, in a folder that is gone afterwards. Its order of batches
    is that of the run, for its parties have the same secrets.
    """
    parties = [load_party(file) for file in configs.values()]
    epochs = next(c.training.epochs for c in parties if isinstance(c, CoordinatorConfig))
    active = next(c for c in parties if isinstance(c, ActiveConfig))
    two = max(info.n_classes for info in read_party(active.out).federation.parties) == 2
    with owner_only(), threadpool_limits(1), TemporaryDirectory(prefix="vflens-twin-") as made:
        twins = {c.party: _in_the_clear(c, Path(made), epochs, two=two) for c in parties}
        LocalFederation(twins, lambda stage, done, total: progress(f"{stage}, clear twin", done, total)).run()
        _add(metric_rows(twins[active.party].out / "metrics.parquet"), active.out / "metrics.parquet")


def _in_the_clear(config: PartyConfig, home: Path, epochs: int, *, two: bool) -> PartyConfig:
    """The party's configuration in the twin; of training it records the last epoch.

    Of ``two`` classes shares train one logit, and softmax two, whose difference w₁ − w₀ moves by 2 η (p − y)
    x and decays by η l₂: with η/2 and 2 l₂ it moves as the one logit does.
    """
    changes: dict[str, object] = {"out": home / config.party, "transcript": Recording(every=epochs)}
    if isinstance(config, PassiveConfig | ActiveConfig):
        changes |= {"protection": "none", "attacks": ()}
    elif isinstance(config, CoordinatorConfig):
        rate, l2 = config.training.learning_rate, config.training.l2
        as_one = {"learning_rate": rate / 2, "l2": 2 * l2} if two else {}
        changes["training"] = config.training.model_copy(update={"protection": "none", **as_one})
    return config.model_copy(update=changes)


def _add(rows: list[dict[str, Any]], file: Path) -> None:
    """Add the figures of the twin among ``rows`` to the metrics in ``file``."""
    metrics = Metrics(file)
    for row in rows:
        if (clear := _FIGURES.get(row["metric"])) is not None:
            metrics.add(clear, row["value"], scored_set="predict", rows=row["rows"])
    metrics.save()
