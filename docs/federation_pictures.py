"""Pictures that need a federation: ``python docs/federation_pictures.py`` runs them and writes SVGs, in some
six minutes.

In ``docs/attacks``. ``labels.svg``: attacks on labels against each defence of gradients. ``inversion.svg``:
inversion of embeddings, with and without passports; 6 epochs. ``gradients.svg``: inversion of the gradient of
a round, or of granted rows. ``clear_features.svg``: training in the clear, more and more epochs.
``released.svg``: a released table. ``finite_alphabet.svg``, of made-up equations: columns of 0 and 1.
``rounds.svg``: rows of a round of softmax regression. ``pcat.svg``: public rows in place of granted ones.
``withheld.svg``: a column that the model never sees. ``membership.svg``: a client's training rows among
candidates; ``source.svg``: whose they are. ``confidence.svg``: people who come back among prediction rows.
``numbers.svg``: a numeric label.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from plugin_pictures import DOCS, bars

from vflens import attacks
from vflens.experiments.results.folders import Metric
from vflens.experiments.results.record import read_runs
from vflens.experiments.run.any_experiment import AnyPartiesExperiment
from vflens.experiments.run.horizontal.experiment import HorizontalExperiment
from vflens.experiments.run.loading import load_any
from vflens.experiments.run.run import run
from vflens.experiments.run.vertical.experiment import Experiment
from vflens.storage.metrics import Name

Bars = list[tuple[str, float, str]]
CANCER = {"name": "breast_cancer"}
DIGITS: dict[str, Any] = {
    "data": {"name": "digits"},
    "split": {"kind": "rows"},
    "parties": {"clients": ["client-1"]},
}
LABELS = (
    *("gradient_sign", "gradient_clustering", "label_enumeration", "direction_scoring", "norm_scoring"),
    *("similarity", "pmc", "exploit"),
)


def measured(
    scenarios: Sequence[dict[str, Any]], kind: type[AnyPartiesExperiment] = Experiment, **settings: Any
) -> Iterator[tuple[str, list[Metric]]]:
    """Each scenario's name and all figures of its parties."""
    defaults = {"name": "picture", "seed": 1, "split": {"kind": "fraction", "fraction": 0.5}}
    with TemporaryDirectory() as home:
        made = {**defaults, "out": home, "scenarios": scenarios, **settings}
        for folder in run(kind.model_validate(made), in_process=True).scenarios:
            yield folder.name, [m for r in read_runs([folder]) for p in r.parties for m in p.metrics]


def defended(name: str, at: str, **settings: Any) -> dict[str, Any]:
    """A scenario of one defence, called by its name and settings."""
    title = " ".join([name, *(f"{v:g}" for v in settings.values())])
    return {"name": title, "defenses": [{"at": at, "name": name, **settings}]}


def figure(metrics: Sequence[Metric], metric: str, attack: str = "", scored: str = "") -> float:
    """The last value of ``metric``, of one ``scored`` set if that is named."""
    here = (m for m in metrics if scored in ("", m.scored_set))
    return [m.value for m in here if (m.name, m.attack) == (metric, attack)][-1]


def label_errors() -> str:
    """Share of labels named wrongly by each attack, against each defence of the active party; of training
    rows, and of prediction rows where it can.
    """
    scenarios = [
        {"name": "no defence"},
        *(defended("label_dp", "active", epsilon=e) for e in (2.0, 0.5)),
        defended("max_norm", "active"),
        *(defended("marvell", "active", power=p) for p in (1.0, 4.0)),
        defended("dp_gaussian", "active", level=1.0),
        defended("discretisation", "active", levels=4),
        defended("averaging", "active", rows=8),
        defended("cae", "active"),
    ]
    shown, blind = Bars(), 0.0
    for name, found in measured(
        scenarios,
        data=CANCER,
        model={"architecture": "mlp", "width": 2, "trainable_top": False},
        training={"epochs": 10, "batch_size": 32, "learning_rate": 0.01},
        attacks=[{"name": a, "at": "passive"} for a in LABELS],
        disclose=[{"what": "labels", "to": "passive", "rows": 40}],
    ):
        blind = 1 - figure(found, Name.BLIND_LABEL_ACCURACY, scored="train")
        predicted = (("similarity", "predict"), ("pmc", "predict"))
        for attack, scored in (*((a, "train") for a in LABELS), *predicted):
            wrong = 1 - figure(found, Name.LABEL_ACCURACY, attack, scored)
            auc = figure(found, Name.LABEL_AUC, attack, scored)
            where = ", prediction rows" if scored == "predict" else ""
            shown.append((f"{name.replace('-', ' ')}: {attack}{where}", wrong, f"{wrong:.3f}, AUC {auc:.3f}"))
    title = (
        "breast cancer, gradients of logits: share of training labels named wrongly "
        "(dashed: always the likeliest class)"
    )
    return bars(title, shown, blind)


def number_errors() -> str:
    """Error of a numeric label, in its unit, against noise on the gradients."""
    scenarios = [
        {"name": "no defence"},
        *(defended("dp_gaussian", "active", clip=1.0, level=level) for level in (0.1, 1.0)),
        defended("discretisation", "active", levels=4),
        defended("averaging", "active", rows=8),
    ]
    shown, blind = Bars(), 0.0
    for name, found in measured(
        scenarios,
        data={"name": "diabetes"},
        model={"family": "linear_regression"},
        training={"epochs": 30, "batch_size": 32, "learning_rate": 0.01},
        attacks=[{"name": "first_residuals", "at": "passive"}],
    ):
        unit = figure(found, Name.COLUMN_UNIT)
        blind = unit * min(m.value for m in found if m.name == Name.BLIND_MSE) ** 0.5
        error, r2 = unit * figure(found, Name.MSE, "first_residuals") ** 0.5, figure(found, Name.R2)
        shown.append((name.replace("-", " "), error, f"{error:.0f}, R² of the model {r2:.2f}"))
    return bars("diabetes: error of first_residuals in the label's unit (dashed: its mean)", shown, blind)


def inversion_errors() -> str:
    """Errors of inverting a one-layer bottom model and a small CNN, with and without passports."""
    shown, blind = Bars(), 0.0
    for model in ({"architecture": "mlp"}, {"architecture": "cnn"}):
        for name, found in measured(
            [{"name": "no defence"}, defended("passport", "passive")],
            data={"name": "digits"},
            split={"kind": "image_halves"},
            model=model,
            training={"epochs": 6, "batch_size": 64, "learning_rate": 0.005},
            attacks=[{"name": "wmi"}, {"name": "wmi_moments"}, {"name": "bmi"}],
            disclose=[
                {"what": "parameters", "to": "active"},
                {"what": "auxiliary", "to": "active", "rows": 50},
            ],
        ):
            blind = min(m.value for m in found if m.name == Name.BLIND_MSE)
            for attack in ("wmi", "wmi_moments", "bmi"):
                mse = figure(found, Name.MSE, attack)
                label = f"{model['architecture']}, {name.replace('-', ' ')}: {attack}"
                shown.append((label, mse, f"{mse:.4f}"))
    return bars("digits, right halves of images: MSE per pixel (dashed: best blind guess)", shown, blind)


def public_errors() -> str:
    """Errors of inverting embeddings with other people's rows, the target's rows, or none."""
    shown, blind = Bars(), 0.0
    attacks: list[dict[str, Any]] = [
        {"name": "unsplit"},
        {"name": "pcat", "pseudo_clients": 1},
        {"name": "pcat"},
    ]
    for architecture in ("mlp", "cnn"):
        for attack in (*attacks, {"name": "bmi"}):
            [(_, found)] = measured(
                [{"name": "no defence"}],
                data={"name": "digits", "public": 300},
                split={"kind": "image_halves"},
                model={"architecture": architecture},
                training={"epochs": 20, "batch_size": 64, "learning_rate": 0.005},
                attacks=[attack],
                disclose=[{"what": "auxiliary", "to": "active", "rows": 100}],
            )
            blind = min(m.value for m in found if m.name == Name.BLIND_MSE)
            mse = figure(found, Name.MSE, attack["name"])
            label = " ".join(str(value) for value in attack.values())
            shown.append((f"{architecture}: {label}", mse, f"{mse:.3f}"))
    title = "digits, right halves of images: MSE per pixel (dashed: best blind guess)"
    return bars(title, shown, blind)


def withheld_errors() -> str:
    """What granted rows and embeddings tell of a column: in the model, left out, and left out with its
    relatives.
    """
    relatives = ["worst radius", "worst perimeter", "worst area"]
    withheld = [defended("withhold_columns", "passive"), defended("withhold_columns", "passive")]
    withheld[0] |= {"name": "worst radius withheld"}
    withheld[1] |= {"name": "its perimeter and area withheld too"}
    for scenario, columns in zip(withheld, (relatives[:1], relatives), strict=True):
        scenario["defenses"][0]["columns"] = columns
    shown, blind = Bars(), 0.0
    for name, found in measured(
        [{"name": "no defence"}, *withheld],
        data=CANCER,
        model={"architecture": "mlp", "width": 8},
        training={"epochs": 20, "batch_size": 32, "learning_rate": 0.005},
        attacks=[{"name": "inverse_network"}],
        disclose=[{"what": "auxiliary", "to": "active", "rows": 100}],
    ):
        radius = [m for m in found if m.column == "worst radius" and m.scored_set == "predict"]
        blind = figure(radius, Name.COLUMN_BLIND_MSE) ** 0.5
        error = figure(radius, Name.COLUMN_MSE, "inverse_network") ** 0.5
        shown.append((name.replace("-", " "), error, f"{error:.3f}"))
    return bars(
        "breast cancer, worst radius: root mean squared error (dashed: best blind guess)", shown, blind
    )


def gradient_errors() -> str:
    """Errors of inverting the gradient of a round, of one row and of eight; and granted gradients behind
    passports.
    """
    shown, blind = Bars(), 0.0
    mlp = {"architecture": "mlp", "width": 256, "top": []}
    rounds = {"rounds": 1, "local_steps": 1}
    sgd = {"optimizer": "sgd", "learning_rate": 0.1}
    for rows, model in ((1, mlp), (8, mlp), (1, {"architecture": "cnn", "top": []})):
        names = ["first_layer"] * (model is mlp) + ["dlg", "dlg:adam"]
        attacks = [{"name": n, **({"optimizer": "adam"} if n == "dlg:adam" else {})} for n in names]
        for _, found in measured(
            [{"name": "no defence"}],
            HorizontalExperiment,
            **DIGITS,
            attacks=attacks,
            horizontal=rounds,
            model={"family": "split_network", "precision": "float64", **model},
            training={**sgd, "batch_size": rows},
        ):
            blind = min(m.value for m in found if m.name.startswith("blind"))
            for attack in names:
                mse = figure(found, Name.MATCHED_MSE, attack)
                label = f"{model['architecture']}, {rows} row{'s' * (rows > 1)} in the round: {attack}"
                shown.append((label, mse, f"{mse:.2g}"))
    passports = [{"at": "client-1", "name": "passport"}]
    granted = {"gradients": {"rows": 20}, "auxiliary": {"rows": 20}, "parameters": {}}
    names = ["wgi", "wgi:guess", "wgi_moments"]
    attacks = [{"name": n, **({"passport": "random"} if n == "wgi:guess" else {})} for n in names]
    for _, found in measured(
        [{"name": "passports", "defenses": passports}],
        HorizontalExperiment,
        **DIGITS,
        attacks=attacks,
        horizontal={"rounds": 2, "method": "lg_fedavg"},
        model={"family": "split_network", "architecture": "mlp", "top": [32]},
        training={"batch_size": 64, "learning_rate": 0.01},
        disclose=[{"what": what, "to": "server", **rows} for what, rows in granted.items()],
    ):
        for attack in names:
            mse = figure(found, Name.MSE, attack)
            shown.append((f"mlp, passport, granted gradients: {attack}", mse, f"{mse:.2g}"))
    title = "digits, gradients of a client's rows: MSE per pixel (dashed: best blind guess)"
    return bars(title, shown, blind)


def clear_errors() -> str:
    """Variance of the columns that the best affine map of the estimate leaves unexplained."""
    shown = Bars()
    for epochs in (1, 2, 5, 10, 20, 60):
        ((_, found),) = measured(
            [{"name": "no defence"}],
            data={"name": "wine"},
            training={"epochs": epochs, "batch_size": 32, "learning_rate": 0.05},
            attacks=[{"name": "clear_features", "sweeps": 50}],
        )
        left = 1 - figure(found, Name.AFFINE_R2, "clear_features")
        shown.append((f"{epochs} epoch{'s' * (epochs > 1)}", left, f"{left:.4f}"))
    return bars("wine, training in the clear: share of variance not explained (dashed: all)", shown, 1.0)


def released_errors() -> str:
    """Error of both attacks on a table released under Gaussian noise, beside the Cramér–Rao bound."""
    shown, blind = Bars(), 0.0
    for name, found in measured(
        [defended("release_table", "passive", lam=lam) for lam in (1e4, 1e3, 100.0, 10.0)],
        data=CANCER,
        training={"epochs": 2},
        attacks=[{"name": "released_table"}, {"name": "shrunk_table"}],
        disclose=[{"what": "moments", "to": "active"}],
    ):
        blind = min(m.value for m in found if m.name == Name.BLIND_MSE)
        bound = figure(found, Name.RELEASED_BOUND)
        for attack in ("released_table", "shrunk_table"):
            mse = figure(found, Name.MSE, attack)
            text = f"{mse:.4f}, Cramér–Rao bound {bound:.4f}"
            shown.append((f"λ {name.split('-')[-1]}: {attack}", mse, text))
    return bars("breast cancer, released table: MSE per column (dashed: best blind guess)", shown, blind)


def alphabet_errors() -> str:
    """Random equations in 20 columns of 0 and 1: the alphabet makes one equation enough."""
    rng, shown = np.random.default_rng(0), Bars()
    for columns in (10, 20, 30):
        A, x = rng.normal(size=(1, columns)), rng.integers(0, 2, (50, columns)).astype(float)
        alphabets = ((0.0, 1.0),) * columns
        found = {name: attacks.estimate(name, A, x @ A.T).values for name in ("half_star", "rcc2")}
        found["finite_alphabet"] = attacks.estimate("finite_alphabet", A, x @ A.T, alphabets=alphabets).values
        for name, values in found.items():
            mse = float(((values - x) ** 2).mean())
            shown.append((f"{columns} columns: {name}", mse, f"{mse:.4f}"))
    return bars(
        "columns of 0 and 1, one equation: MSE per column of 50 rows (dashed: the guess ½)", shown, 0.25
    )


def round_errors() -> str:
    """Error of the rows of a round, by the number of them and the noise of the client's update."""
    shown, blind = Bars(), 0.0
    for batch in (1, 3, 6):
        scenarios = [{"name": "no defence"}, defended("dp_gaussian", "client-1", clip=10.0, level=1e-3)]
        for name, found in measured(
            scenarios,
            HorizontalExperiment,
            data={"name": "digits"},
            split={"kind": "rows"},
            parties={"clients": 1},
            horizontal={"rounds": 1, "local_steps": 1},
            training={"optimizer": "sgd", "batch_size": batch, "learning_rate": 0.5},
            attacks=[{"name": "softmax_inversion"}],
        ):
            blind = min(m.value for m in found if m.name == Name.BLIND_MATCHED_MSE)
            mse = figure(found, Name.MATCHED_MSE, "softmax_inversion")
            shown.append((f"{batch} row{'s' * (batch > 1)}, {name.replace('-', ' ')}", mse, f"{mse:.2g}"))
    return bars("digits, rows of a round: matched MSE per pixel (dashed: best blind guess)", shown, blind)


def membership() -> str:
    """AUC of the attacks on membership of ``examples/membership.toml``, mean over clients."""
    experiment, shown = load_any(DOCS.parent / "examples/membership.toml"), Bars()
    with TemporaryDirectory() as folder:
        ran = run(experiment.model_copy(update={"out": Path(folder)}), in_process=True)
        for found in read_runs(ran.scenarios):
            accuracy = np.mean([together for _, together, _ in found.clients])
            for attack in ("loss_threshold", "lira"):
                value = float(np.mean([r.auc for r in found.membership if r.attack == attack]))
                label = f"{found.name.partition('/')[2]}, {attack}"
                shown.append((label, value, f"{value:.3f}, accuracy {accuracy:.3f}"))
    return bars("100 columns, 60 training rows a client: AUC of membership (dashed: a guess)", shown, 0.5)


def source() -> str:
    """How often ``examples/sites.toml`` names the client of a row, by its local epochs."""
    experiment, shown = load_any(DOCS.parent / "examples/sites.toml"), Bars()
    assert isinstance(experiment, HorizontalExperiment)
    for epochs in (1, 5, 20):
        rounds = experiment.horizontal.model_copy(update={"local_epochs": epochs})
        with TemporaryDirectory() as folder:
            changed = {"out": Path(folder), "horizontal": rounds}
            (found,) = read_runs(run(experiment.model_copy(update=changed), in_process=True).scenarios)
        for share, rows in zip(found.sites, ("training rows", "other rows"), strict=True):
            shown.append((f"{epochs} local epochs, {rows}", share.value, f"{share.value:.3f}"))
    return bars(
        "100 columns, 60 training rows a client: clients named rightly (dashed: a guess)", shown, 1 / 3
    )


def confidence() -> str:
    """AUC of what answers betray, by model: 80 training rows of 12 columns."""
    shown = Bars()
    deep = {"architecture": "mlp", "width": 16, "hidden": [32], "top": [16]}
    long = {"epochs": 200, "batch_size": 20, "learning_rate": 0.01}
    models: dict[str, dict[str, Any]] = {
        "softmax regression": {"training": long},
        "split network": {"training": long, "model": deep},
        "split network, untrained": {"training": {"epochs": 1, "learning_rate": 1e-6}, "model": deep},
    }
    for name, settings in models.items():
        asked: dict[str, dict[str, Any]] = {"largest": {}, "entropy": {}, "loss": {}}
        ((_, found),) = measured(
            [{"name": "no defence"}],
            data={
                "name": "synthetic",
                "rows": 160,
                "features": 12,
                "classes": 3,
                "informative": 6,
                "returning": 80,
            },
            predict_share=0.5,
            attacks=[{"name": f"confidence:{by}", "at": "operator", "by": by} for by in asked],
            disclose=[{"what": "candidates", "to": "operator", "rows": 160}],
            **settings,
        )
        for by in asked:
            value = figure(found, Name.MEMBERSHIP_AUC, f"confidence:{by}")
            shown.append((f"{name}, {by}", value, f"{value:.3f}"))
    return bars("12 columns, 80 training rows: AUC of membership from answers (dashed: a guess)", shown, 0.5)


PICTURES: dict[str, Callable[[], str]] = {
    "labels.svg": label_errors,
    "inversion.svg": inversion_errors,
    "gradients.svg": gradient_errors,
    "clear_features.svg": clear_errors,
    "released.svg": released_errors,
    "finite_alphabet.svg": alphabet_errors,
    "rounds.svg": round_errors,
    "pcat.svg": public_errors,
    "withheld.svg": withheld_errors,
    "membership.svg": membership,
    "source.svg": source,
    "confidence.svg": confidence,
    "numbers.svg": number_errors,
}


def main(folder: Path = DOCS / "attacks") -> None:
    """Write every picture into ``folder``."""
    for name, picture in PICTURES.items():
        (folder / name).write_text(picture(), encoding="utf-8")


if __name__ == "__main__":
    main()
