"""What views of both settings read of a target: public facts, and what was granted of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, ClassVar

from vflens.errors import KnowledgeError
from vflens.models.family import ModelFamily
from vflens.numerics.shrinkage import estimated_moments
from vflens.plugins.findings import Joint, SharedFindings
from vflens.plugins.views.reads import CheckedReads
from vflens.types import Array, ColumnInfo, Knowledge, LabelKind, Moments, PartyInfo, Point, Progress

if TYPE_CHECKING:
    from vflens.models.families.split_network import SplitNetwork


class TargetView(CheckedReads, SharedFindings):
    """The view of an adversary on ``target``, one of ``parties``.

    Args:
        parties: the public description of all parties.
        n_classes: k.
        model: what the federation trains.
        device: where attacks that use torch compute, "cpu" or "cuda".
        joint: what attacks found for several targets, or for all rows of one; views share it.
        progress: called by attacks that take long, with a stage, its steps done and in all.
        reads: see :class:`vflens.plugins.views.reads.CheckedReads`.
    """

    #: What was read that crosses the wire by a grant alone.
    granted: Set[Point] = frozenset()
    _dealt: Array | None = None
    #: Whether messages and what the party owns are all that it shows: rounds of a server are more.
    is_remembered: ClassVar[bool] = False

    def __init__(
        self,
        *,
        target: str,
        n_classes: int,
        parties: Sequence[PartyInfo],
        model: ModelFamily,
        device: str,
        joint: Joint | None,
        progress: Progress,
        **reads: Any,
    ) -> None:
        super().__init__(**reads)
        self.target = target
        self.n_classes = n_classes
        self.device = device
        self.progress = progress
        self._parties = {p.name: p for p in parties}
        self._model = model
        self._joint: Joint = [] if joint is None else joint

    @property
    def members(self) -> Sequence[str]:
        """The names of all parties, a horizontal run's clients, sorted."""
        return sorted(self._parties)

    def public_facts(self) -> str:
        """What all parties know of each other and of the model, for the target, as text."""
        return repr((self.party, self.target, self.n_classes, self._parties, self._model, self._every))

    @property
    def model(self) -> ModelFamily:
        """What the federation trains, which all parties know."""
        return self._model

    @property
    def label_kind(self) -> LabelKind:
        """What the labels of the federation are."""
        return self._model.label_kind

    def metadata(self) -> Sequence[ColumnInfo]:
        """Names, bounds and finite alphabets of the target's columns."""
        self._check(Knowledge.METADATA)
        return self._parties[self.target].columns

    def architecture(self) -> SplitNetwork:
        """The split network that the federation trains.

        Raises:
            KnowledgeError: the attack did not declare it, or another family is trained.
        """
        self._check(Knowledge.ARCHITECTURE)
        return self._model.network()

    def target_network(self) -> Mapping[str, Array]:
        """The disclosed parameters of the target's bottom model by name.

        Raises:
            KnowledgeError: they were withheld or never disclosed.
        """
        disclosed = self._only(Point.PARAMETERS, self.target)
        if disclosed.tensors is None:
            raise KnowledgeError(f"party {self.target!r} withheld its parameters")
        return disclosed.tensors

    def auxiliary(self, party: str = "") -> tuple[Array, Array]:
        """The rows of ``party``, or of the target, that were granted: positions int32 (m,) and features
        float64 (m, d), scaled as the model's.

        Raises:
            KnowledgeError: none were granted.
        """
        granted = self._only(Point.AUXILIARY, party or self.target, "features")
        return granted.rows, granted.tensor("features")

    def known_labels(self) -> tuple[Array, Array]:
        """The labels that were granted: positions int32 (m,) and classes int64 (m,).

        Raises:
            KnowledgeError: none were granted.
        """
        self._check(Knowledge.KNOWN_LABELS)
        granted = self._disclosed(Point.AUXILIARY, self.target, "labels")
        if granted is None:
            raise KnowledgeError(f"party {self.target!r} granted no labels to {self.party!r}")
        labels = granted.tensor("labels") if self._dealt is None else self._dealt[granted.rows]
        return granted.rows, labels

    def deal(self, labels: Array) -> None:
        """Let the granted labels be those of ``labels`` (N,) of all rows: the control of an attack."""
        self._dealt = labels

    def _moments_of(self, sender: str) -> Moments:
        disclosed = self._disclosed(Point.MOMENTS, sender)
        if disclosed is not None:
            return Moments(disclosed.tensor("mean"), (disclosed.tensors or {}).get("covariance"))
        auxiliary = self._disclosed(Point.AUXILIARY, sender, "features")
        if auxiliary is None:
            raise KnowledgeError(
                f"party {sender!r} disclosed neither moments nor auxiliary rows to {self.party!r}"
            )
        return Moments(*estimated_moments(auxiliary.tensor("features")))
