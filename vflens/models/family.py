"""The base of every family of models: what a federation asks of the kind of model that it trains.

A family is a plug-in: one file in :mod:`vflens.models.families`, or an entry point of the group
``vflens.models``. Its settings are its fields. They travel to every party, which checks them again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, SerializeAsAny, TypeAdapter

from vflens.errors import ConfigError, KnowledgeError
from vflens.models.part import ActivePart, PassivePart, Site
from vflens.models.size import Size
from vflens.models.softmax_regression import are_log_probabilities, log_softmax
from vflens.numerics.linear_system import LinearSystem
from vflens.numerics.shares.response import Response
from vflens.registry import MODELS
from vflens.types import Array, ColumnInfo, LabelKind, Role

if TYPE_CHECKING:
    from torch.nn import Module

    from vflens.models.families.split_network import SplitNetwork

#: What training gives away where nothing more is known.
IN_THE_CLEAR = "a party that receives embeddings or gradients of training rows can read them."
#: The same of a horizontal federation.
HORIZONTAL_IN_THE_CLEAR = (
    "the server sees every client's update of every round, as the client's defences leave it; after one step "
    "on one row an update is the gradient of that row."
)
#: The same of SplitFed.
SPLIT_IN_THE_CLEAR = (
    "the server sees embeddings and labels of every batch of every client, and the update of its bottom "
    "model in every round, as the client's defences leave them."
)
#: The same with secure aggregation.
SUMMED = (
    "the server sees the sum of the updates of a round, as the clients' defences leave them, and no single "
    "one; all clients of a round but one, together with the server, learn the update of that one."
)
LARGEST_NUMBER = 2.0**40  # a prediction of a number, in ranges of its label from its low bound
#: Tensor → shape of what a party discloses of its part.
Shapes: TypeAlias = Mapping[str, tuple[int, ...]]


class ModelFamily(BaseModel, ABC):
    """One kind of model: frozen settings as fields, and the parts that parties build of it.

    A subclass declares ``family: Literal["NAME"] = "NAME"``, its name as a plug-in. k counts classes.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    family: str

    #: What messages and reports call it.
    title: ClassVar[str]
    #: The coordinator, where scores follow from the sum of what parties send; else the active party.
    scores_leave_at: ClassVar[Role] = Role.COORDINATOR
    #: A part is ``weight`` (k, d) and, at one passive party, ``bias`` (k,); it sends x Wᵀ + b.
    linear: ClassVar[bool] = False
    #: What its labels are; a number is one logit (n, 1), in [0, 1] of the label's bounds.
    label_kind: ClassVar[LabelKind] = "classes"
    #: Of a linear family whose residual is this response of each logit less the label: protected training
    #: fits it. None: it does not.
    response: ClassVar[Response | None] = None
    #: The largest number that a party sends of a prediction.
    largest_part: ClassVar[float] = np.inf
    #: Its released scores are those of softmax regression, for which the papers give closed forms.
    closed_forms: ClassVar[bool] = False
    #: Hooks of defences that a run of it never comes past.
    unused_hooks: ClassVar[frozenset[str]] = frozenset({"wrap_model", "penalty"})
    #: Modules that a launcher loads once for all parties of a run; none starts a thread.
    prepared: ClassVar[tuple[str, ...]] = ()
    #: Where a part can compute.
    devices: ClassVar[frozenset[str]] = frozenset({"cpu"})

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type of what passive parties send, and of the gradients in it."""
        return np.dtype(np.float64)

    @property
    def mixes_rows(self) -> bool:
        """Whether what training makes of a row depends on the others of its batch, as behind a batch norm."""
        return False

    @property
    def concatenates(self) -> bool:
        """Whether the active party receives the passive parties' numbers side by side; else their sum."""
        return False

    @property
    def layer_widths(self) -> Sequence[int]:
        """Numbers per row of the layers that its settings name."""
        return ()

    def width_of(self, columns: Sequence[ColumnInfo], classes: int) -> int:
        """Numbers per row of what a passive party with ``columns`` sends.

        Raises:
            ConfigError: the model does not fit these columns.
        """
        return classes

    def combined_width(self, widths: Sequence[int], classes: int) -> int:
        """Numbers per row of what the active party receives of parties with these ``widths``.

        Raises:
            ConfigError: they cannot be combined.
        """
        return classes

    def width_alone(self, columns: Sequence[ColumnInfo], received: int) -> int:
        """The width of the zeros that stand for ``received`` where a party trains on ``columns`` alone."""
        return received

    def part_size(
        self, role: Role, columns: Sequence[ColumnInfo], peers: Sequence[Sequence[ColumnInfo]], classes: int
    ) -> Size:
        """What the part of a party with ``columns`` takes; ``peers`` as in :class:`Site`.

        Raises:
            ConfigError: the model does not fit these columns.
        """
        return Size(classes * (len(columns) + 1), classes)

    @abstractmethod
    def passive_part(self, site: Site) -> PassivePart:
        """A new part of a passive party."""

    @abstractmethod
    def active_part(self, site: Site) -> ActivePart:
        """A new part of the active party."""

    def module(self, role: Role, site: Site) -> Module:
        """The new torch module that defences of models wrap at ``role``; not asked where none can.

        Raises:
            ConfigError: the model does not fit the columns; torch is missing.
        """
        raise NotImplementedError(f"{self.title} has no torch module")

    def network(self) -> SplitNetwork:
        """The split network that it is, for attacks that are made for one.

        Raises:
            KnowledgeError: it is another family.
        """
        raise KnowledgeError(f"the federation trains {self.title}: this attack is made for split networks")

    def scores(self, combined: Array) -> Array:
        """The scores (n, k) that leave at the coordinator, from the sum (n, k) of what all parties sent."""
        return log_softmax(combined)

    def may_be_scores(self, scores: Array) -> bool:
        """Whether released ``scores`` (n, k) can be those of it: log-probabilities, or where no defence of
        scores acts on it finite numbers.
        """
        if "on_scores" in self.unused_hooks:
            return bool(np.isfinite(scores).all())
        return are_log_probabilities(scores)

    def linear_systems(self, scores: Array, known: Array, weight: Array) -> list[tuple[Array, LinearSystem]]:
        """The equations that released ``scores`` (n, k) give about the unknown columns, by groups of rows.

        ``known`` (n, k) is what the adversary computes itself, ``weight`` (k, d) that of the unknown columns.

        Raises:
            KnowledgeError: they give no linear equations.
        """
        raise KnowledgeError(f"the scores of {self.title} give no linear equations: choose another attack")

    def disclosed_shapes(self, columns: int, classes: int) -> Shapes | None:
        """What a part of so many ``columns`` discloses, the first always; None: the reader compares."""
        return {"weight": (classes, columns), "bias": (classes,)} if self.linear else None

    def in_the_clear(self, *, direct: bool) -> str:
        """What training gives away, as reports say it; ``direct``: straight to the active party."""
        return IN_THE_CLEAR

    def check_label(self, label: ColumnInfo | None) -> None:
        """Refuse a numeric ``label`` where it learns classes, and classes, None, where it learns a number.

        Raises:
            ConfigError: naming both.
        """
        if self.label_kind == "classes" and label is not None:
            raise ConfigError(
                f"the label {label.name!r} is a number, {self.title} learns classes: set model.family = "
                "'linear_regression', or data.label_kind = 'classes'"
            )
        if label and not np.isfinite(4 * LARGEST_NUMBER * max(abs(label.low or 0), abs(label.high or 0))):
            raise ConfigError(
                f"predictions of {label.name!r}, from {label.low:g} to {label.high:g}, would overflow: "
                "rescale it"
            )
        if self.label_kind == "number" and label is None:
            raise ConfigError(
                f"the labels are classes, {self.title} learns a number: set data.label_kind = 'number' with "
                "bounds, or train another model"
            )

    def check_device(self, device: str, where: str) -> None:
        """Refuse a device on which no part of it computes.

        Raises:
            ConfigError: naming it.
        """
        if device not in self.devices:
            raise ConfigError(
                f"device = {device!r}{where}: {self.title} computes on the processor, leave device out"
            )


def model_from(settings: object) -> object:
    """The family that the table ``settings`` names as ``family``, a split network if it names none.

    None is softmax regression; what is neither is left to pydantic.

    Raises:
        PluginError: no installed family has that name, or it is not whole.
        ValidationError: a setting that it does not have, or out of range.
    """
    if settings is None:
        settings = {"family": "softmax_regression"}
    if not isinstance(settings, dict):
        return settings
    name = str(settings.get("family", "split_network"))
    kind: type[ModelFamily] = MODELS.get(name)
    return kind.model_validate(settings)


#: A field that holds any family, read from a table of a configuration file.
AnyModel: TypeAlias = Annotated[SerializeAsAny[ModelFamily], BeforeValidator(model_from)]
_ANY: TypeAdapter[ModelFamily] = TypeAdapter(AnyModel)


def checked_model(settings: object) -> ModelFamily:
    """The family in ``settings``, as its ``model_dump`` has them.

    Raises:
        PluginError, ValidationError: see :func:`model_from`; or they are no table.
    """
    return _ANY.validate_python(settings)
