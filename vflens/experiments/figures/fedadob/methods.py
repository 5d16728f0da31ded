"""The defences and attacks of FedAdOb's vertical experiments: one line each.

A new defence is a line of :data:`DEFENSES`, a new attack one of :data:`ATTACKS`. Their grids are ours: the
paper gives ranges only.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

from vflens.types import Document

FEATURES, LABELS = "features", "labels"
UNDEFENDED, FEDADOB = "none", "FedAdOb"
#: The passport with the layer of the authors' public code, whose keys are fixed.
AUTHORS = "FedAdOb, authors' code"
AUTHORS_LAYER: Mapping[str, str] = {"normalise": "authors", "order": "pool_first", "keys": "fixed"}
_LABEL_COLUMNS = ("PMC", "NS", "DS")


@dataclass(frozen=True)
class Method:
    """A defence: plug-ins by party, all with one parameter that varies, or none.

    ``against`` says which attacks it meets: those on features, on labels, or both.
    """

    title: str
    against: Sequence[str]
    at: Mapping[str, str] = field(default_factory=dict)
    vary: str = ""
    values: Sequence[float] = (0.0,)
    fixed: Mapping[str, Any] = field(default_factory=dict)

    def defenses(self, value: float) -> list[Document]:
        """The configured defences at strength ``value``."""
        whole = int(value) if float(value).is_integer() else value
        varied = {self.vary: whole} if self.vary else {}
        return [{"at": at, "name": name, **self.fixed, **varied} for at, name in self.at.items()]

    @property
    def printed(self) -> str:
        """The method of the paper whose numbers stand beside: what stands before a comma of the title."""
        return self.title.partition(",")[0]

    @property
    def batch_norm(self) -> bool:
        """Whether its network has one behind the last convolution: all but FedAdOb's (appendix A.1)."""
        return self.printed != FEDADOB

    def as_in_the_authors_code(self) -> Self:
        """FedAdOb with the layer of its authors' code."""
        return replace(self, title=AUTHORS, fixed={**self.fixed, **AUTHORS_LAYER})

    @property
    def constants(self) -> str:
        """Its fixed numbers, in words."""
        return ", ".join(f"{n} = {v:g}" for n, v in self.fixed.items() if not isinstance(v, str))

    def at_strengths(self, *values: float) -> Self:
        """The same at other strengths."""
        return replace(self, values=values)

    def coarse(self) -> "Method":
        """With its first two strengths."""
        return self.at_strengths(*self.values[:2])


@dataclass(frozen=True)
class Against:
    """An attack in a column of the paper's Table IV; ``printed``: it is the paper's own.

    ``only`` names the one defence of the paper that it is made for; None: it meets every one. What the
    attack's class ``knows`` has to agree. ``whole``: it reads the messages of every epoch, not of the last.
    """

    column: str
    name: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    only: str | None = None
    printed: bool = False
    whole: bool = False

    @property
    def on(self) -> str:
        """What it estimates."""
        return LABELS if self.column in _LABEL_COLUMNS else FEATURES

    def meets(self, method: Method) -> bool:
        """Whether it is run against ``method``."""
        return self.on in method.against and self.only in (None, method.printed)

    def configured(self, more: Mapping[str, Any]) -> Document:
        """Its table in an experiment, with ``more`` settings."""
        at = {"at": _PASSIVE} if self.on == LABELS else {}
        return {"name": self.name, **self.settings, **more, **at}


_PASSIVE, _ACTIVE = "passive", "active"
PASSPORTS = {_PASSIVE: "passport", _ACTIVE: "passport"}
NONE = Method(UNDEFENDED, (FEATURES, LABELS))
_EMBEDDINGS = Method(
    "DP", (FEATURES,), {_PASSIVE: "dp_gaussian"}, "level", values=(0.002, 0.01, 0.05), fixed={"clip": 20.0}
)
_GRADIENTS = Method(
    "DP", (LABELS,), {_ACTIVE: "dp_gaussian"}, "level", values=(0.02, 0.1, 0.5), fixed={"clip": 0.5}
)
_INSTAHIDE = {_PASSIVE: "instahide", _ACTIVE: "instahide"}
_MIXED = Method("InstaHide", (FEATURES,), _INSTAHIDE, "mixed", values=(2, 3, 4))
_KEPT = (0.5, 0.1, 0.01)
_PASSPORTS = Method(FEDADOB, (FEATURES, LABELS), PASSPORTS, "largest_mean", values=(2, 10, 50))
#: Table IV and Fig. 4.
DEFENSES = (
    NONE,
    Method("sparsification", (FEATURES,), {_PASSIVE: "sparsification"}, "kept", values=_KEPT),
    _EMBEDDINGS,
    _MIXED,
    Method("CAE", (LABELS,), {_ACTIVE: "cae"}, "entropy", values=(0.5, 1, 2)),
    Method("GradPerturb", (LABELS,), {_ACTIVE: "grad_perturb"}, "epsilon", values=(8, 2, 0.5)),
    Method("LabelDP", (LABELS,), {_ACTIVE: "label_dp"}, "epsilon", values=(4, 2, 0.5)),
    Method("sparsification", (LABELS,), {_ACTIVE: "sparsification"}, "kept", values=_KEPT),
    _GRADIENTS,
    _PASSPORTS,
    _PASSPORTS.as_in_the_authors_code(),
)
#: Fig. 5.
IMAGES = (
    NONE,
    _MIXED.at_strengths(2),
    _EMBEDDINGS.at_strengths(0.01, 0.05),
    Method("sparsification", (FEATURES,), {_PASSIVE: "sparsification"}, "kept", values=(0.5, 0.05)),
    Method(FEDADOB, (FEATURES,), PASSPORTS, "largest_mean", values=(10,)),
)
#: Table VII: the plug-ins of each method, at one strength.
TIMED = (
    NONE,
    Method("CAE", (), {_ACTIVE: "cae"}),
    Method(
        "sparsification", (), {_PASSIVE: "sparsification", _ACTIVE: "sparsification"}, "kept", values=(0.1,)
    ),
    Method("DP", (), {_PASSIVE: "dp_gaussian", _ACTIVE: "dp_gaussian"}, "level", values=(0.1,)),
    Method("InstaHide", (), _INSTAHIDE, "mixed", values=(2,)),
    Method(FEDADOB, (), PASSPORTS, "largest_mean", values=(10,)),
)
_SCORED_PASSPORTS = Method(FEDADOB, (FEATURES, LABELS), PASSPORTS, "largest_mean", values=(2, 5, 10))
#: Fig. 6, two classes.
SCORED = (
    NONE,
    Method("Marvell", (LABELS,), {_ACTIVE: "marvell"}, "power", values=(0.25, 1, 4)),
    Method("max-norm", (LABELS,), {_ACTIVE: "max_norm"}),
    Method("DP", (LABELS,), {_ACTIVE: "dp_gaussian"}, "level", values=(0.02, 0.1, 0.5), fixed={"clip": 0.5}),
    Method("LabelDP", (LABELS,), {_ACTIVE: "label_dp"}, "epsilon", values=(4, 2, 0.5)),
    _SCORED_PASSPORTS,
    replace(_SCORED_PASSPORTS, title=f"{FEDADOB}, means redrawn", fixed={"mean": "each"}),
    _SCORED_PASSPORTS.as_in_the_authors_code(),
)
#: FedAdOb's weight of the total variation, without a box.
_TV = {"smoothness": 0.1, "smoothness_of": "absolute", "box": False}
LINEAR_INVERSE = Against("MI", "inverse_network:linear", {"learning_steps": 0})
LINEAR_KEYLESS = Against("MI", "inverse_network:keyless", {"learning_steps": 0, "passport": "moments"})
ATTACKS = (
    Against("CAFE", "cafe", printed=True),
    Against("CAFE", "wmi"),
    Against("CAFE", "wmi:granted", {"start": "granted"}),  # wmi_moments starts there too
    Against("CAFE", "wmi_moments", only=FEDADOB),
    Against("CAFE", "moments_only", only=FEDADOB),
    Against("CAFE", "wmi:joint", {"passport": "joint"}, only=FEDADOB),
    Against("CAFE", "wmi_signs", only="InstaHide"),
    Against("CAFE", "wmi_averaged", only="DP"),
    Against("CAFE", "wmi_masked", only="sparsification"),
    Against("MI", "bmi:printed", {"learn": "top", **_TV}, printed=True),
    Against("MI", "bmi"),
    Against("MI", "bmi:moments", {"passport": "moments"}, only=FEDADOB),
    Against("MI", "inverse_network"),
    Against("MI", "inverse_network:moments", {"passport": "moments"}, only=FEDADOB),
    LINEAR_INVERSE,
    Against("PMC", "pmc:printed", {"fine_tune": True}, printed=True),
    Against("PMC", "pmc"),
    Against("PMC", "similarity"),
    Against("PMC", "first_gradients", only="CAE", whole=True),
)
SCORING = (Against("NS", "norm_scoring"), Against("DS", "direction_scoring"))


def printed_attack(column: str) -> str:
    """The name of the paper's own attack in ``column``, "" if it is not run."""
    return next((a.name for a in ATTACKS if a.column == column and a.printed), "")
