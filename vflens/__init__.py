"""VFLens from Python: run federations, attack them, audit and release tables.

>>> import vflens as vl
>>> run = vl.run("examples/demo.toml")              # a federation, attacked: run.verdict, run.results
>>> run = vl.run(vl.Experiment(name="mine", ...))   # the same without a file, or vl.HorizontalExperiment
>>> run = vl.read_run("out/demo/undefended")        # any finished run, or one party's folder: run.results
>>> frame = vl.results("runs/**")                   # the results of all runs in many folders, one Arrow table
>>> facts = vl.sweep("examples/sweep.toml")         # every attack against every defence
>>> found = vl.audit(frame, classes=2)              # what a federation would learn of your columns
>>> noisy, certificate = vl.release(frame, lambda_=1.0)
>>> x = vl.estimate("rcc2", A, b)                   # an estimator alone: A x = b, 0 <= x <= 1
>>> print(vl.verify(x, A, b))                       # solved again from its definition, in CVXPY

An attack derives from :class:`Attack` or :class:`LinearAttack` and reads an :class:`AdversaryView`; a defence
derives from :class:`Defense`. Every refusal is one of :mod:`vflens.errors`. The names here are public; every
other module may change. A name is imported at its first use: ``import vflens`` alone loads nothing else.
"""

from importlib import import_module

TYPE_CHECKING = False  # type checkers take it for true; importing typing would double the time
if TYPE_CHECKING:
    from vflens import errors as errors
    from vflens.api.estimates import Estimate as Estimate
    from vflens.api.estimates import estimate as estimate
    from vflens.api.estimates import verify as verify
    from vflens.api.experiment import Experiment as Experiment
    from vflens.api.experiment import HorizontalExperiment as HorizontalExperiment
    from vflens.api.runs import Run as Run
    from vflens.api.runs import results as results
    from vflens.api.runs import run as run
    from vflens.api.runs import sweep as sweep
    from vflens.api.tables import Audit as Audit
    from vflens.api.tables import Certificate as Certificate
    from vflens.api.tables import audit as audit
    from vflens.api.tables import release as release
    from vflens.experiments.results.record import RecordedRun as RecordedRun
    from vflens.experiments.results.record import read_run as read_run
    from vflens.plugins.attack import Attack as Attack
    from vflens.plugins.attack import LinearAttack as LinearAttack
    from vflens.plugins.attack import linear_estimate as linear_estimate
    from vflens.plugins.defense import Defense as Defense
    from vflens.plugins.views.vertical import AdversaryView as AdversaryView
    from vflens.types import Claim as Claim
    from vflens.types import Knowledge as Knowledge
    from vflens.types import Moments as Moments

__all__ = [
    "AdversaryView",
    "Attack",
    "Audit",
    "Certificate",
    "Claim",
    "Defense",
    "Estimate",
    "Experiment",
    "HorizontalExperiment",
    "Knowledge",
    "LinearAttack",
    "Moments",
    "RecordedRun",
    "Run",
    "audit",
    "errors",
    "estimate",
    "linear_estimate",
    "read_run",
    "release",
    "results",
    "run",
    "sweep",
    "verify",
]

#: Module → the public names that it defines.
_NAMES = {
    "vflens.api.estimates": ("Estimate", "estimate", "verify"),
    "vflens.api.experiment": ("Experiment", "HorizontalExperiment"),
    "vflens.api.runs": ("Run", "results", "run", "sweep"),
    "vflens.api.tables": ("Audit", "Certificate", "audit", "release"),
    "vflens.experiments.results.record": ("RecordedRun", "read_run"),
    "vflens.plugins.attack": ("Attack", "LinearAttack", "linear_estimate"),
    "vflens.plugins.defense": ("Defense",),
    "vflens.plugins.views.vertical": ("AdversaryView",),
    "vflens.types": ("Claim", "Knowledge", "Moments"),
}


if not TYPE_CHECKING:  # type checkers report an unknown name only without it

    def __getattr__(name: str) -> object:
        if name == "errors":
            return import_module("vflens.errors")
        for module, names in _NAMES.items():
            if name in names:
                return getattr(import_module(module), name)
        raise AttributeError(f"module 'vflens' has no attribute {name!r}: it has {', '.join(__all__)}")


def __dir__() -> list[str]:
    return [*__all__]
