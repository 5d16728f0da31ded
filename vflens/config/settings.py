"""The parts that configurations of parties and of experiments are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from vflens.config.reading import refused
from vflens.names import Name, Visible
from vflens.registry import Registry
from vflens.types import Role

Token = Annotated[
    Visible,
    Field(
        min_length=16,
        max_length=256,
        description="shared by one pair of parties, random where `lab` is false; nobody else may know it",
    ),
]
Seconds = Annotated[float, Field(gt=0, le=1e6)]  # gRPC takes a much later deadline for one that has passed


class Settings(BaseModel):
    """Frozen, and an unknown key is an error: a misspelt setting must not be ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Peer(Settings):
    """Another party: where it listens, and the token that this pair shares."""

    name: Name
    role: Literal[Role.PASSIVE, Role.ACTIVE, Role.COORDINATOR]
    address: str = Field(
        description='"host:port", or "unix:PATH" on one machine: the socket and its folder belong to the '
        "same user"
    )
    token: Token


class Plugin(BaseModel):
    """A plug-in by name; every other key is one of its parameters."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str

    @property
    def parameters(self) -> dict[str, Any]:
        """The keys other than ``name``."""
        return dict(self.__pydantic_extra__ or {})


MIB = 1 << 20  # bytes


class Limits(Settings):
    """Deadlines, sizes, and what a data party allows of its own rows. They change when a run is given up or
    refused, never what it computes.

    What only a data or a passive party refuses has no effect at a coordinator.
    """

    wait_seconds: Seconds = Field(120, description="how long to wait for the other parties to come up")
    call_seconds: Seconds = Field(60, description="deadline of one call")
    step_seconds: Seconds = Field(60, description="time-out of one training step")
    message_mib: int = Field(64, ge=1, le=2047, description="largest message, in MiB")
    checkpoint_steps: int = Field(
        500, ge=1, description="training steps between checkpoints of the recovery log"
    )
    epochs: int = Field(
        1_001,
        ge=1,
        description="a data party refuses a longer training: each epoch brings another draw of its noise, or "
        "another equation; the mean of T draws has a deviation of 1/√T of one (.032 of 1,001, "
        "the papers' schedule)",
    )
    min_learning_rate: float = Field(
        1e-6,
        ge=0,
        allow_inf_nan=False,
        description="a data party refuses a smaller one: of a model that hardly moves the noise averages "
        "out, which a bound on the rate alone does not prevent: `epochs` bounds how far",
    )
    max_width: int = Field(
        8192,
        ge=1,
        description="most classes, and numbers per row of an embedding or a hidden layer, that a data party "
        "takes",
    )
    rows_per_second: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="most rows that a passive party gives away in a second, in training and prediction; a "
        "faster caller waits",
    )
    epsilon: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="budget of a row over the run: a release beyond it is refused, and one for which no ε "
        "can be stated; counts `dp_laplace` and `dp_gaussian` (a plug-in's claim of ε with δ = "
        "0, or of ρ) on embeddings and gradients; not `label_dp`, whose ε is that of a label, "
        "once a run",
    )
    delta: float = Field(
        1e-5,
        ge=1e-8,
        lt=1,
        description="the δ at which Gaussian noise is counted as an ε, in reports too; `delta` of "
        "`dp_gaussian` belongs to the claim of one exchange",
    )
    memory_mib: int = Field(
        16_384,
        ge=1,
        description="most memory for a data party's rows, its part of the model and one step, in MiB; "
        "checked before anything is built",
    )


class Recording(Settings):
    """What a party keeps of what it receives. The recovery log is never sampled."""

    every: int = Field(
        1,
        ge=1,
        description="the transcript keeps the training messages of every so many epochs only: of a divisor "
        "of training.epochs the last too",
    )


class Disclosure(Settings):
    """What a party grants to another party, besides what the protocol needs."""

    what: Literal["parameters", "auxiliary", "moments", "labels"] = Field(
        description="a passive party's: its block of the model, some training rows, or mean and covariance "
        "of its columns; the active party's: some training labels"
    )
    to: Name = Field(description="the party that receives it")
    rows: int = Field(0, ge=0, description="auxiliary, labels: of how many training rows it gives them away")

    @model_validator(mode="after")
    def _rows_belong_to_rows(self) -> Disclosure:
        if (self.what in ("auxiliary", "labels")) != (self.rows > 0):
            raise ValueError(
                f"disclose {self.what!r} with rows = {self.rows}: rows (at least 1) belong to auxiliary and "
                "labels, and only there"
            )
        return self


class Scoring(Settings):
    """The target's scoring service."""

    enabled: bool = Field(
        True, description="answer submissions; false: attacks run, their errors stay unknown"
    )
    pictures: int = Field(
        8, ge=0, description="rows drawn as original against reconstruction in its own folder; 0: none"
    )


def build_plugins(registry: Registry, plugins: Sequence[Plugin]) -> list[tuple[str, Any]]:
    """The configured plug-ins as objects, each with its name, in order.

    Raises:
        PluginError: an unknown name.
        ConfigError: a parameter that the plug-in does not have or that is out of range.
    """
    return [(plugin.name, _built(registry, plugin)) for plugin in plugins]


def _built(registry: Registry, plugin: Plugin) -> Any:
    kind: type[BaseModel] = registry.get(plugin.name)
    try:
        return kind(**plugin.parameters)
    except ValidationError as error:
        raise refused(error, f"{registry.family} plug-in {plugin.name!r}", kind) from None
