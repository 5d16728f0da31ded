"""FedAdOb's printed numbers: Tables IV to VIII. Blank cells of the text are assigned from its prose."""

from collections.abc import Mapping
from typing import NamedTuple

MODELS = ("LeNet-MNIST", "AlexNet-CIFAR10", "ResNet-CIFAR10", "LeNet-ModelNet")


class Value(NamedTuple):
    """A number and what the paper prints after ±; it does not say what that is."""

    mean: float
    spread: float | None = None

    def __str__(self) -> str:
        return f"{self.mean:.3f}" if self.spread is None else f"{self.mean:.3f} ± {self.spread:.3f}"


_FEATURES = ("none", "sparsification", "DP", "InstaHide", "FedAdOb")
_LABELS = ("none", "CAE", "GradPerturb", "LabelDP", "sparsification", "DP", "FedAdOb")
_CAPS = {
    ("CAFE", _FEATURES): (
        ".033 .049±.026 .033±.018 .061±.004 .137±.002",
        ".019 .058±.026 .042±.017 .023±.004 .105±.001",
        ".021 .067±.014 .057±.014 .053±.002 .109±.001",
        ".005 .014±.009 .016±.004 .012±.001 .036±.003",
    ),
    ("MI", _FEATURES): (
        ".033 .060±.020 .049±.010 .046±.005 .087±.001",
        ".043 .047±.003 .046±.006 .032±.001 .054±.001",
        ".046 .065±.012 .063±.015 .047±.001 .105±.004",
        ".032 .035±.003 .036±.003 .033±.002 .046±.002",
    ),
    ("PMC", _LABELS): (
        ".117 .302±.002 .195±.008 .314±.103 .277±.140 .216±.015 .506±.028",
        ".322 .415±.008 .353±.063 .355±.045 .283±.065 .358±.051 .460±.025",
        ".166 .217±.004 .276±.119 .276±.081 .268±.088 .237±.087 .379±.065",
        ".419 .457±.004 .425±.011 .426±.005 .443±.011 .451±.015 .523±.002",
    ),
}


def _value(text: str) -> Value:
    mean, _, spread = text.partition("±")
    return Value(float(mean), float(spread) if spread else None)


#: Table IV: (attack, model, defence) → CAP.
CAPS: Mapping[tuple[str, str, str], Value] = {
    (attack, model, defense): _value(text)
    for (attack, defenses), lines in _CAPS.items()
    for model, line in zip(MODELS, lines, strict=True)
    for defense, text in zip(defenses, line.split(), strict=True)
}
#: Table V, AlexNet-CIFAR10, CAFE, σ = 1: N → accuracy, error.
LARGEST_MEANS = {
    1: (0.8798, 0.0589),
    2: (0.8771, 0.0818),
    5: (0.8758, 0.1203),
    10: (0.8764, 0.1204),
    50: (0.8761, 0.1205),
    100: (0.8759, 0.1205),
    200: (0.8739, 0.1205),
}
#: Table VI, AlexNet-CIFAR10, PMC, N = 100: σ² → accuracy, error.
VARIANCES = {
    0: (0.877, 0.368),
    2: (0.873, 0.510),
    5: (0.870, 0.543),
    10: (0.864, 0.568),
    50: (0.858, 0.577),
    70: (0.844, 0.617),
    100: (0.791, 0.751),
}
HORIZONTAL_MODELS = ("LeNet-MNIST", "AlexNet-CIFAR10", "ResNet-CIFAR100")


class BlackBoxErrors(NamedTuple):
    """The errors of BGI and BMI."""

    bgi: float
    bmi: float


#: Table III, N = 2: (method, data set) → errors.
BLACK_BOX_ERRORS: Mapping[tuple[str, str], BlackBoxErrors] = {
    ("SplitFed", "MNIST"): BlackBoxErrors(0.111, 0.052),
    ("SplitFed", "CIFAR10"): BlackBoxErrors(0.110, 0.028),
    ("SplitFed", "CIFAR100"): BlackBoxErrors(0.087, 0.027),
    ("FedAdOb", "MNIST"): BlackBoxErrors(0.111, 0.071),
    ("FedAdOb", "CIFAR10"): BlackBoxErrors(0.116, 0.057),
    ("FedAdOb", "CIFAR100"): BlackBoxErrors(0.107, 0.055),
}
#: Tables VII and VIII: method → seconds per epoch of training, then of inference, of three models.
VERTICAL_SECONDS = {
    "none": (7.03, 1.48, 22.37, 2.20, 22.64, 2.18),
    "CAE": (7.30, 1.48, 22.71, 2.27, 23.02, 2.21),
    "sparsification": (6.93, 1.45, 22.39, 2.12, 22.61, 2.21),
    "DP": (7.01, 1.49, 22.24, 2.23, 22.63, 2.16),
    "InstaHide": (21.76, 1.50, 37.07, 2.19, 46.26, 2.18),
    "FedAdOb": (7.05, 1.46, 22.58, 2.13, 22.61, 2.16),
}
HORIZONTAL_SECONDS = {
    "none": (21.30, 2.30, 69.86, 4.95, 114.29, 9.14),
    "SplitFed": (22.05, 2.66, 70.51, 5.18, 115.37, 9.13),
    "sparsification": (21.76, 2.38, 70.59, 5.34, 121.13, 9.45),
    "DP": (21.53, 2.32, 70.54, 5.63, 120.82, 9.54),
    "InstaHide": (35.62, 2.33, 100.36, 5.17, 145.10, 9.21),
    "FedAdOb": (23.06, 2.23, 70.58, 5.13, 120.41, 9.54),
}
