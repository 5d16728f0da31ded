"""How any model is trained, and where the parties' numbers come together."""

from __future__ import annotations

from typing import Any, Literal, get_args

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    SerializerFunctionWrapHandler,
    model_serializer,
    model_validator,
)

from vflens.types import INT32_MAX
from vflens.words import counted

#: How the updates of clients are weighted.
Weights = Literal["rows", "equal"]
FEWEST_SUMMED = 3  # clients of a sum that gives no term away
Aggregator = Literal["coordinator", "active"]
Protection = Literal["none", "shares"]
AGGREGATORS: tuple[Aggregator, ...] = get_args(Aggregator)

#: The families whose residual a step on shares knows (:attr:`ModelFamily.response`), in words.
ON_SHARES = "softmax or linear regression"
RATE_OF_A_NUMBER = (
    "a learning_rate of at most 1/(2(d + l2)), where d counts the columns of all parties and the bias"
)
PROTECTION = (
    "`shares`: vertical training on additive shares, in which nobody sees a logit, a residual or a gradient; "
    f'{ON_SHARES} only, with `optimizer = "sgd"`; a number takes {RATE_OF_A_NUMBER}'
)


class Training(BaseModel):
    """How the model is trained. The penalty is l2·Σθ² over weights and, by default, bias
    (``docs/notation.md``).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    optimizer: Literal["adam", "sgd"] = "adam"
    epochs: int = Field(100, ge=1, le=INT32_MAX, description="passes over the training rows")
    batch_size: int = Field(
        256, ge=1, le=INT32_MAX, description="rows per step; the last batch of an epoch may be smaller"
    )
    learning_rate: FiniteFloat = Field(0.05, gt=0)
    l2: FiniteFloat = Field(1e-4, ge=0, description="weight of the penalty Σθ²")
    penalise_bias: bool = Field(
        True, description="the penalty includes the bias; false: x ↦ 1−x leaves the scores at the optimum"
    )
    patience: int = Field(
        0,
        ge=0,
        le=INT32_MAX,
        description="stop after so many epochs without a better training loss; 0: never",
    )
    tolerance: FiniteFloat = Field(1e-4, ge=0, description="what counts as better, in nats")
    staleness: int = Field(
        0,
        ge=0,
        # vflens.member.step_log.StepLog knows one step of the epoch before: more would need more of them
        le=1,
        description="1: passive parties compute an embedding while the gradient of the one before is still "
        "on its way; needs aggregator = 'active', and often a smaller learning rate",
    )
    protection: Protection = Field("none", description=PROTECTION)

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without a protection as before there was one: digests of earlier runs stay."""
        named: dict[str, Any] = handler(self)
        return {k: v for k, v in named.items() if (k, v) != ("protection", "none")}

    @property
    def is_protected(self) -> bool:
        """Whether nobody sees a logit, a residual or a gradient."""
        return self.protection == "shares"


class Horizontal(BaseModel):
    """The rounds of a horizontal run: federated averaging (McMahan et al., 2017, algorithm 1)."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    method: Literal["fedavg", "lg_fedavg", "splitfed"] = Field(
        "fedavg",
        description="what is averaged: the whole model; or its top model, and every client keeps a bottom "
        "model of its own (Liang et al., 2020), which FedAdOb puts behind passports; or both, where the "
        "server trains the top model on embeddings and labels (Thapa et al., 2022)",
    )
    rounds: int = Field(20, ge=1, le=INT32_MAX, description="how often parameters go down and updates up")
    local_epochs: int = Field(
        1, ge=1, le=INT32_MAX, description="a client's passes over its training rows in a round"
    )
    local_steps: int | None = Field(
        None, ge=1, le=INT32_MAX, description="so many batches in a round, instead of whole epochs"
    )
    weights: Weights = Field(
        "rows", description="of the updates of a round: in proportion to training rows, or equal"
    )
    participants: int | None = Field(
        None,
        ge=1,
        le=INT32_MAX,
        description="so many clients train in a round, drawn from the server's secret; absent: all",
    )
    secure_aggregation: bool = Field(
        False,
        description="the server learns the sum of a round's updates only: clients add masks that cancel in "
        "it; needs three clients in a round",
    )

    absent: Literal["wait", "leave_out"] = Field(
        "wait",
        description="a client that died: wait for it, or go on without it if it is not back within "
        "limits.rejoin_seconds",
    )

    @property
    def has_gaps(self) -> bool:
        """Whether a client may have no part in a round, or no answer to a step."""
        return self.participants is not None or self.absent == "leave_out" or self.is_split

    @property
    def private_bottom(self) -> bool:
        """Whether no bottom model leaves its client."""
        return self.method == "lg_fedavg"

    @property
    def is_split(self) -> bool:
        """Whether clients send embeddings and labels of each batch."""
        return self.method == "splitfed"

    @model_validator(mode="after")
    def _split_rounds_have_all_clients(self) -> Horizontal:
        odd = [n for n in ("secure_aggregation", "participants", "absent") if self._is_changed(n)]
        if self.is_split and odd:
            raise ValueError(
                f"horizontal.{odd[0]} with method = 'splitfed': embeddings of every client cross in every "
                "round, leave it out"
            )
        return self

    def _is_changed(self, name: str) -> bool:
        return bool(getattr(self, name) != type(self).model_fields[name].default)

    @model_validator(mode="after")
    def _masks_cancel(self) -> Horizontal:
        if self.secure_aggregation and self.absent == "leave_out":
            raise ValueError(
                "horizontal.absent = 'leave_out' with secure_aggregation: masks cancel in the sum of all "
                "clients only, wait for the absent"
            )
        return self

    @model_validator(mode="after")
    def _one_length(self) -> Horizontal:
        if self.local_steps is not None and self.local_epochs != 1:
            raise ValueError(
                f"local_steps = {self.local_steps} and local_epochs = {self.local_epochs}: a round has one "
                "length, leave one of them out"
            )
        return self

    def check_clients(self, count: int) -> None:
        """Refuse rounds that a federation of ``count`` clients cannot have.

        Raises:
            ValueError: names the setting and the remedy.
        """
        if self.participants is not None and self.participants > count:
            raise ValueError(
                f"horizontal.participants = {self.participants} of {counted(count, 'client')}: draw at most "
                f"{count}, or leave it out"
            )
        summed = self.participants or count
        if self.secure_aggregation and summed < FEWEST_SUMMED:
            raise ValueError(
                f"horizontal.secure_aggregation of {counted(summed, 'client')} in a round: from the sum one "
                f"would know the other's update, take at least {FEWEST_SUMMED}, or switch it off"
            )
