"""Pictures of hijacked trainings: ``python docs/hijack_pictures.py`` runs them, writes SVGs and prints their
figures, in some sixteen minutes.

``docs/attacks/fsha.svg``: fsha against defences of the passive party. ``docs/attacks/urvfl.svg``: fsha and
urvfl under both detectors. ``docs/defenses/detectors.svg``: the scores of both detectors, in hijacked and in
honest runs.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from federation_pictures import Bars, defended, figure, measured
from plugin_pictures import DOCS, bars

from vflens.experiments.results.folders import Metric
from vflens.experiments.results.record import read_runs
from vflens.experiments.run.dealer import deal_tables, write_parties
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.experiments.run.in_process import LocalFederation
from vflens.experiments.run.vertical.experiment import Experiment
from vflens.storage.metrics import Name

MLP = {"architecture": "mlp"}
CANCER = {"data": {"name": "breast_cancer", "public": 150}}
#: Data, by the columns of the passive party.
KINDS: dict[str, dict[str, Any]] = {
    "cancer, 3 of 30": {**CANCER, "split": {"kind": "fraction", "fraction": 0.1}},
    "cancer, 15 of 30": {**CANCER, "split": {"kind": "fraction", "fraction": 0.5}},
    "digits, halves": {"data": {"name": "digits", "public": 500}, "split": {"kind": "image_halves"}},
    "wine, 6 of 13": {
        "data": {"name": "wine", "public": 40},
        "split": {"kind": "fraction", "fraction": 0.5},
    },
}
EPOCHS = dict(zip(KINDS, (30, 30, 15, 60), strict=True))
BATCH = dict(zip(KINDS, (32, 32, 64, 16), strict=True))
DETECTORS = ("split_guard", "gradient_scrutinizer")
SHORT = {name: name.removeprefix("gradient_") for name in DETECTORS}  # a bar's name has some 40 letters


def training(kind: str, epochs: int) -> dict[str, Any]:
    """Settings of ``epochs`` epochs on the data called ``kind``."""
    learning = {"epochs": epochs, "batch_size": BATCH[kind], "learning_rate": 0.005}
    return {**KINDS[kind], "model": MLP, "training": learning, "disclose": []}


def errors() -> str:
    """The error of fsha as a multiple of the blind one, three seeds; and the accuracy of honest runs."""
    scenarios = [
        {"name": "no defence"},
        *(defended("distance_correlation", "passive", alpha=a) for a in (0.1, 1.0)),
        defended("mid", "passive"),
        defended("passport", "passive"),
        defended("dp_gaussian", "passive", level=0.5),
    ]
    shown = Bars()
    for kind, epochs in (("cancer, 3 of 30", 60), ("digits, halves", 30)):
        settings, found = training(kind, epochs), dict[str, list[tuple[float, float]]]()
        honest: dict[str, list[float]] = {}
        attack: dict[str, Any] = {"malicious": True, "attacks": [{"name": "fsha", "updates": 3}]}
        for seed in (1, 2, 3):
            for name, metrics in measured(scenarios, seed=seed, **settings, **attack):
                blind = min(m.value for m in metrics if m.name == Name.BLIND_MSE)
                found.setdefault(name, []).append((figure(metrics, Name.MSE, "fsha"), blind))
            for name, metrics in measured(scenarios, seed=seed, **settings, attacks=[]):
                honest.setdefault(name, []).append(figure(metrics, Name.ACCURACY))
        for name, pairs in found.items():
            shares = [mse / blind for mse, blind in pairs]
            print(
                kind, name, [f"{mse:.3f}" for mse, _ in pairs], [f"{b:.3f}" for _, b in pairs], honest[name]
            )
            text = f"{np.mean(shares):.2f}, from {min(shares):.2f} to {max(shares):.2f}"
            shown.append(
                (f"{kind.partition(',')[0]}: {name.replace('-', ' ')}", float(np.mean(shares)), text)
            )
    return bars("fsha, mean of 3 seeds: squared error as a multiple of the best blind guess's", shown, 1.0)


def detected() -> str:
    """The least score of runs of either kind, five seeds, beside the thresholds."""
    shown = Bars()
    for kind in KINDS:
        for detector in DETECTORS:
            for hijacked in (True, False):
                attack = "fsha" if hijacked else None
                runs = [watched(kind, detector, seed, attack) for seed in range(1, 6)]
                shown.append(row(f"{kind}: {SHORT[detector]}, {'fsha' if hijacked else 'honest'}", runs))
    for name, found in splitfed():
        shown.append(row(name, found))
    return bars("share of runs in which a detector raises an alarm (dashed: all)", shown, 1.0)


def row(name: str, runs: list[list[Metric]]) -> tuple[str, float, str]:
    """The share of ``runs`` with an alarm, with their first alarms and the range of their scores."""
    first = [min((m.step for m in run if m.name == Name.HIJACK_ALARM), default=None) for run in runs]
    scores = [m.value for run in runs for m in run if m.name == Name.HIJACK_SCORE]
    raised = [step for step in first if step is not None]
    accuracy = np.mean([figure(run, Name.ACCURACY) for run in runs])
    print(f"{name}: {first}, scores {min(scores):.2f} to {max(scores):.2f}, accuracy {accuracy:.3f}")
    return name, len(raised) / len(runs), f"{len(raised)} of {len(runs)}"


def labelled() -> str:
    """The error of either attack as a multiple of the blind one under each detector, three seeds."""
    shown = Bars()
    for kind in ("digits, halves", "cancer, 15 of 30"):
        for attack, detector in product(("fsha", "urvfl"), DETECTORS):
            runs = [watched(kind, detector, seed, attack) for seed in (1, 2, 3)]
            share, _, alarms = row(f"{kind}: {attack}, {SHORT[detector]}", runs)
            errors = [
                figure(run, Name.MSE, attack) / min(m.value for m in run if m.name == Name.BLIND_MSE)
                for run in runs
            ]
            shown.append((share, float(np.mean(errors)), f"{np.mean(errors):.2f}, alarms in {alarms}"))
            print(errors)
    return bars("hijacking, 3 seeds: squared error as a multiple of the best blind guess's", shown, 1.0)


def watched(kind: str, detector: str, seed: int, name: str | None) -> list[Metric]:
    """The figures of a run whose passive party has the labels in its own table, and the ``detector``;
    attacked by ``name``, or honest.
    """
    attack = {"malicious": True, "attacks": [{"name": name}]} if name else {"attacks": []}
    with TemporaryDirectory() as home:
        made = {"name": "picture", "seed": seed, "out": home, "scenarios": [{"name": "run"}]}
        experiment = Experiment.model_validate({**made, **training(kind, EPOCHS[kind]), **attack})
        files = write_parties(experiment, experiment.scenarios[0], deal_tables(experiment), Path(home))
        lend_labels(files["active"].parent / "data.parquet", files["passive"], detector)
        LocalFederation(files, lambda stage, done, total: None).run()
        return [m for run in read_runs([Path(home)]) for p in run.parties for m in p.metrics]


def lend_labels(active: Path, passive: Path, detector: str) -> None:
    """Put the labels of the table ``active`` beside the configuration ``passive``, and a defence into it."""
    held, own = pq.read_table(active), pq.read_table(passive.parent / "data.parquet")
    label = dict(zip(held["id"].to_pylist(), held["label"].to_pylist(), strict=True))
    labels = pa.array([label[i] for i in own["id"].to_pylist()])
    pq.write_table(own.append_column("label", labels), passive.parent / "data.parquet")
    text = passive.read_text(encoding="utf-8").replace(
        'id_column = "id"', 'id_column = "id"\nlabel_column = "label"'
    )
    passive.write_text(
        text.replace("defenses = []", f'defenses = [{{ name = "{detector}" }}]'), encoding="utf-8"
    )


def splitfed() -> Iterator[tuple[str, list[list[Metric]]]]:
    """Honest SplitFed of two clients, of which one watches."""
    for data, batch, rounds in (("digits", 64, 15), ("breast_cancer", 16, 40), ("wine", 8, 60)):
        for detector in DETECTORS:
            runs = [
                metrics
                for seed in range(1, 6)
                for _, metrics in measured(
                    [defended(detector, "client-1")],
                    HorizontalExperiment,
                    seed=seed,
                    data={"name": data},
                    split={"kind": "rows"},
                    parties={"clients": 2},
                    horizontal={"method": "splitfed", "rounds": rounds},
                    model=MLP,
                    training={"batch_size": batch, "learning_rate": 0.005},
                )
            ]
            yield f"{data.removeprefix('breast_')}, SplitFed: {SHORT[detector]}, honest", runs


if __name__ == "__main__":
    (DOCS / "attacks/fsha.svg").write_text(errors(), encoding="utf-8")
    (DOCS / "attacks/urvfl.svg").write_text(labelled(), encoding="utf-8")
    (DOCS / "defenses/detectors.svg").write_text(detected(), encoding="utf-8")
