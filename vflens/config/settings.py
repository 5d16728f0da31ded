"""Parts of the configurations of parties and of experiments."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from vflens.config.reading import refused
from vflens.names import Name, Visible, colluding, one_of, repeated
from vflens.protocol.roles import ROLES
from vflens.registry import Registry
from vflens.types import Document, Role

Token = Annotated[
    Visible,
    Field(
        min_length=16,
        max_length=256,
        description="shared by one pair of parties and unknown to all others; random where `lab` is false",
    ),
]
Seconds = Annotated[float, Field(gt=0, le=1e6)]  # gRPC treats a much later deadline as one in the past


def _of_a_member(role: Any) -> Any:
    if role not in list(ROLES):
        raise ValueError(f"a party is {one_of(ROLES)}")
    return role


#: A role of those who take part in a run.
MemberRole: TypeAlias = Annotated[Role, BeforeValidator(_of_a_member)]


class Settings(BaseModel):
    """Frozen, with unknown keys refused: a misspelt setting must not be ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Peer(Settings):
    """Another party: its address, and the token that this pair shares."""

    name: Name
    role: MemberRole
    address: str = Field(
        description='"host:port", or "unix:PATH" on one machine: the socket and its folder belong to the '
        "same user"
    )
    token: Token


class Plugin(BaseModel):
    """A plug-in by name; every other key is one of its parameters."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str = Field(
        description="that of its file; `NAME:LABEL` has a label, which tells two settings of one plug-in "
        "apart"
    )

    @property
    def parameters(self) -> dict[str, Any]:
        """The keys other than ``name``."""
        return dict(self.__pydantic_extra__ or {})


class AttackTable(Plugin):
    """An attack by name, and the parties that collude in it."""

    colluders: tuple[Name, ...] = Field(
        (),
        description="parties that collude with its own, as one adversary: in lab mode, after the run, called "
        "`NAME:with-COLLUDER` in results",
    )

    @property
    def called(self) -> str:
        """Its name in results."""
        return colluding(self.name, self.colluders)

    @property
    def dealt(self) -> Document:
        """The table of its party's own configuration."""
        together = {"colluders": list(self.colluders)} if self.colluders else {}
        return {"name": self.called, **together, **self.parameters}


class Tls(Settings):
    """The certificates of mutual TLS: this party's own, and those that it trusts."""

    certificate: Path = Field(
        description="this party's certificate in PEM, then those between it and its authority, if there are "
        "any; it names the party, its role and its federation"
    )
    key: Path = Field(description="its private key in PEM, a file of mode 600")
    trust: Path = Field(
        description="the peers' self-signed certificates, or an authority's: a PEM file, or a folder of "
        "files *.pem"
    )

    @model_validator(mode="after")
    def _files_are_three(self) -> Self:
        if len({self.certificate, self.key, self.trust}) < 3:
            raise ValueError("two of certificate, key and trust are the same file: give each its own path")
        return self


MIB = 1 << 20  # bytes


class Limits(Settings):
    """Deadlines, sizes, and a data party's limits on the use of its rows. They can end or refuse a run, and
    never change its results.

    Limits of data or passive parties have no effect at a coordinator, that of a server nowhere else.
    """

    wait_seconds: Seconds = Field(120, description="longest wait for the other parties to start")
    rejoin_seconds: float = Field(
        0,
        ge=0,
        le=1e6,
        description="longest wait for a party that died, until it is started again with `--resume` and the "
        "run moves on; 0: its death ends the run",
    )
    call_seconds: Seconds = Field(60, description="deadline of one call")
    step_seconds: Seconds = Field(60, description="time-out of one training step")
    idle_seconds: Seconds = Field(
        21_600,
        description="longest wait for parties that live while nothing moves on: a coordinator or server sees "
        "no epoch, request or end; a data party, which waits half as long again, is asked for nothing "
        "and does nothing, as its leader. More than the slowest epoch, round and attack take",
    )
    message_mib: int = Field(64, ge=1, le=2047, description="largest message, in MiB")
    durable: Literal["process", "machine"] = Field(
        "process",
        description="what the party's logs and states survive: `process`, that it is killed; `machine`, a "
        "loss of power too: each write is on the disk before a message leaves, which takes time",
    )
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
        description=(
            "a data party refuses a smaller one: with a model that hardly moves, noise averages out; "
            "`epochs` bounds by how much"
        ),
    )
    max_width: int = Field(
        8192,
        ge=1,
        description="most classes, and numbers per row of an embedding or a hidden layer, that a data party "
        "takes",
    )
    max_rows: int = Field(
        10_000_000,
        ge=1,
        description="most rows of its own that a server lets a client claim: the number is its weight in the "
        "mean, and sizes what the server computes",
    )
    rows_per_second: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description=(
            "most rows that a passive party sends in a second, in training and prediction; "
            "a faster caller waits"
        ),
    )
    epsilon: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description=(
            "budget of a row over the run: refuses a release beyond it, or without a known ε; "
            "counts `dp_laplace` and `dp_gaussian` (a plug-in's claim of ε with δ = 0, "
            "or of Gaussian privacy) on embeddings and gradients, and `grad_perturb`, whose ε is that of a "
            "label, once an epoch; not `label_dp`, whose ε is that of a label, once a run; at a client it "
            "counts noise on updates, once a round: the budget is that of all its rows together"
        ),
    )
    delta: float = Field(
        1e-5,
        ge=1e-8,
        lt=1,
        description="the δ at which Gaussian noise is counted as an ε, in reports too; `delta` of "
        "`dp_gaussian` belongs to the claim of one exchange",
    )
    worst_error: float | None = Field(
        None,
        gt=0,
        lt=1,
        description="a passive party releases no scores if `half_star`, `mean_star` or `lmmse` would err by "
        "less on all its prediction rows: a mean squared error of columns scaled to [0, 1]; it counts as if "
        "all knew the exact scores, its parameters, and mean and covariance of its columns; for softmax "
        "regression with one passive party",
    )
    max_ids: int = Field(
        10_000_000,
        ge=1,
        description="most row ids in the alignment: at a coordinator of all data parties, at a data party "
        "those of the others that it blinds (`align.mode`), each of which may be a guess at one of its own",
    )
    memory_mib: int = Field(
        16_384,
        ge=1,
        description="most memory for a data party's rows, its part of the model and one step, in MiB; "
        "checked before anything is built",
    )


class Recording(Settings):
    """Sampling of received messages in the transcript. The recovery log has all messages."""

    every: int = Field(
        1,
        ge=1,
        description="the transcript keeps the training messages of every so many epochs only: of a divisor "
        "of training.epochs the last too",
    )


class MetricsPage(Settings):
    """A page of figures for Prometheus, at http://127.0.0.1:PORT/metrics."""

    port: int | None = Field(
        None,
        ge=1,
        le=65535,
        description="the page's own port, on this machine only; its users can read the page; absent: no page",
    )


Granted: TypeAlias = Literal[
    "parameters", "auxiliary", "moments", "labels", "embeddings", "gradients", "candidates"
]


class Disclosure(Settings):
    """A party's grant to another party, beyond the protocol's messages."""

    what: Granted = Field(
        description="a passive party's: its block of the model, some training rows, or mean and covariance "
        "of its columns; the active party's: some training labels; a client's: rows, moments, labels, "
        "embeddings or gradients of each of some training rows, at the last parameters, or candidates: "
        "rows with labels, half of them training rows and half prediction rows, shuffled; the active party's "
        "to its operator: candidates, prediction rows of which half are of people who trained"
    )
    to: Name = Field(description="the party that receives it")
    rows: int = Field(0, ge=0, description="all but parameters and moments: number of training rows")

    @model_validator(mode="after")
    def _rows_belong_to_rows(self) -> Self:
        if (self.what in ("parameters", "moments")) == (self.rows > 0):
            raise ValueError(
                f"disclose {self.what!r} with rows = {self.rows}: rows (at least 1) belong to all "
                "but parameters and moments, and only there"
            )
        if self.what == "candidates" and self.rows % 2:
            raise ValueError(
                f"disclose candidates with rows = {self.rows}: half of them train, give an even number"
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
    tolerance: dict[str, Annotated[float, Field(gt=0, allow_inf_nan=False)]] = Field(
        default_factory=dict,
        description="column → how far from the truth, in its own unit, an answer counts as found; else a "
        "twentieth of its range",
    )


def check_attacks(attacks: Sequence[AttackTable]) -> None:
    """Refuse an attack that is configured twice.

    Raises:
        ValueError: names it, for pydantic.
    """
    twice = repeated([p.called for p in attacks])
    if twice is not None:
        raise ValueError(f"attack {twice!r} is configured twice: results are kept by its name")


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
        raise refused(error, f"{registry.family} plug-in {plugin.name!r}", kind=kind) from None
