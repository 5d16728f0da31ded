"""The configuration of one party: a TOML file per process, checked whole before anything starts."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from vfl.errors import ConfigError
from vfl.federation import Training
from vfl.model import SplitNetwork
from vfl.partyfile import PartyFile
from vfl.registry import Registry
from vfl.types import Role

Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]
Token = Annotated[
    str,
    Field(
        min_length=16,
        max_length=256,
        pattern="^[!-~]+$",
        description="shared by one pair of parties; nobody else may know it",
    ),
]
Seconds = Annotated[float, Field(gt=0, le=1e6)]  # gRPC takes a much later deadline for one that has passed
OPERATOR = "operator"  # what the person who asks a running party is called; no party has this name
T = TypeVar("T")
EXAMPLE = "example-"  # how the secrets of the example configurations begin


def is_local(address: str) -> bool:
    """Whether ``address`` is reached from this machine only: a loopback host or a Unix socket."""
    host = (address.rpartition(":")[0] or address).strip("[]")
    return address.startswith("unix:") or host in ("127.0.0.1", "::1", "localhost")


class Settings(BaseModel):
    """Frozen, and an unknown key is an error: a misspelt setting must not be ignored."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Peer(Settings):
    """Another party: where it listens, and the token that this pair shares."""

    name: Name
    role: Literal[Role.PASSIVE, Role.ACTIVE, Role.COORDINATOR]
    address: str = Field(description='"host:port", or "unix:PATH" on one machine')
    token: Token


class Plugin(BaseModel):
    """A plug-in by name; every other key is one of its parameters."""

    model_config = ConfigDict(frozen=True, extra="allow")

    name: str

    @property
    def parameters(self) -> dict[str, Any]:
        """The keys other than ``name``."""
        return dict(self.__pydantic_extra__ or {})


class Limits(Settings):
    """Deadlines and sizes. They change when a run gives up, never what it computes."""

    wait_seconds: Seconds = Field(120, description="how long to wait for the other parties to come up")
    call_seconds: Seconds = Field(60, description="deadline of one call")
    step_seconds: Seconds = Field(60, description="time-out of one training step")
    message_mib: int = Field(64, ge=1, le=2047, description="largest message, in MiB")
    checkpoint_steps: int = Field(
        500, ge=1, description="training steps between checkpoints of the recovery log"
    )


class Disclosure(Settings):
    """What a party grants to another party, besides what the protocol needs."""

    what: Literal["parameters", "auxiliary", "moments", "labels"] = Field(
        description="a passive party's: its block of the model, some training rows, or mean and covariance of its columns; the active party's: some training labels"
    )
    to: Name = Field(description="the party that receives it")
    rows: int = Field(0, ge=0, description="auxiliary, labels: of how many training rows it gives them away")

    @model_validator(mode="after")
    def _rows_belong_to_rows(self) -> Disclosure:
        if (self.what in ("auxiliary", "labels")) != (self.rows > 0):
            raise ValueError(
                f"disclose {self.what!r} with rows = {self.rows}: rows (at least 1) belong to auxiliary and labels, and only there"
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


class PartyConfig(Settings):
    """What every party's file says."""

    party: Name
    run: str = Field(min_length=1, max_length=160, description="the run's name: the same at every party")
    address: str = Field(description='where this party listens: "host:port" or "unix:PATH"')
    insecure: bool = Field(False, description="allow an address other than loopback without TLS")
    out: Path = Field(description="this party's own run folder")
    seed: str = Field(min_length=1, description="this party's secret: its noise and its draws follow from it")
    lab: bool = Field(False, description="one owner holds all parties: errors go back to the adversary")
    peers: tuple[Peer, ...] = Field(description="the other parties that it speaks with")
    defenses: tuple[Plugin, ...] = Field((), description="in the order in which they act")
    limits: Limits = Limits()

    @model_validator(mode="after")
    def _examples_stay_on_this_machine(self) -> PartyConfig:
        addresses = [self.address, *(p.address for p in self.peers)]
        outside = next((a for a in addresses if not is_local(a)), None)
        published = next((name for name, value in self._secrets() if value.startswith(EXAMPLE)), None)
        if outside is not None and published is not None:
            raise ValueError(
                f"{published} begins with {EXAMPLE!r} and address {outside!r} is not on this machine: everybody knows the "
                'example values, make your own with: python3 -c "import secrets; print(secrets.token_hex(32))"'
            )
        return self

    @model_validator(mode="after")
    def _peers_are_distinct(self) -> PartyConfig:
        names = [self.party, *(p.name for p in self.peers)]
        repeated = sorted({n for n in names if names.count(n) > 1})
        if repeated:
            raise ValueError(f"party {repeated[0]!r} is named twice: give every party its own name")
        if OPERATOR in names:
            raise ValueError(f"party {OPERATOR!r}: this name is kept for people who ask, choose another")
        addresses = [self.address, *(p.address for p in self.peers)]
        shared = sorted({a for a in addresses if addresses.count(a) > 1})
        if shared:
            raise ValueError(f"address {shared[0]!r} is given twice: every party listens at its own")
        return self

    @model_validator(mode="after")
    def _secrets_are_distinct(self) -> PartyConfig:
        """Who shares one of them must not know another: a token is a name, a seed is all noise."""
        seen: dict[str, str] = {}
        for name, value in self._secrets():
            if value in seen:
                raise ValueError(
                    f"{name} is the same as {seen[value]}: give every pair of parties and every purpose a secret of its own"
                )
            seen[value] = name
        return self

    def peers_of(self, role: Role) -> tuple[Peer, ...]:
        """The peers of one role in name order."""
        return tuple(sorted((p for p in self.peers if p.role == role), key=lambda p: p.name))

    def _secrets(self) -> Iterator[tuple[str, str]]:
        """Every secret that is set, with the name of its field."""
        yield from ((f"peers.{p.name}.token", p.token) for p in self.peers)
        for name in ("seed", "alignment_key", "operator_token"):
            value = getattr(self, name, None)
            if value:
                yield name, value


class DataPartyConfig(PartyConfig):
    """A party that holds rows."""

    data: PartyFile
    alignment_key: str = Field(
        min_length=16,
        description="shared by the data parties, unknown to the coordinator: row ids are hashed under it",
    )

    @model_validator(mode="after")
    def _knows_one_coordinator(self) -> DataPartyConfig:
        _require_one(self, Role.COORDINATOR)
        return self


class PassiveConfig(DataPartyConfig):
    """A party with features only."""

    role: Literal[Role.PASSIVE]
    disclose: tuple[Disclosure, ...] = Field((), description="what it grants, and to whom")
    scoring: Scoring = Scoring()

    @model_validator(mode="after")
    def _grants_go_to_peers(self) -> PassiveConfig:
        names = [p.name for p in self.peers if p.role != Role.PASSIVE]
        for grant in self.disclose:
            if grant.what == "labels":
                raise ValueError(f"disclose labels at passive {self.party!r}: the active party has them")
            if grant.to not in names:
                raise ValueError(
                    f"disclose.to = {grant.to!r} is no peer that takes disclosures: name one of {names}"
                )
        return self


class ActiveConfig(DataPartyConfig):
    """The party with the labels; the adversary's plug-ins sit here."""

    role: Literal[Role.ACTIVE]
    attacks: tuple[Plugin, ...] = Field((), description="the adversary's plug-ins")
    disclose: tuple[Disclosure, ...] = Field((), description="labels that it grants, and to whom")
    operator_token: Token | None = Field(
        None, description="whoever holds it may ask for predictions (vflens predict)"
    )
    predict_batch: int = Field(1024, ge=1, description="rows per prediction request")

    @model_validator(mode="after")
    def _labels_go_to_passive_peers(self) -> ActiveConfig:
        names = [p.name for p in self.peers_of(Role.PASSIVE)]
        for grant in self.disclose:
            if grant.what != "labels" or grant.to not in names:
                raise ValueError(
                    f"disclose {grant.what!r} to {grant.to!r}: the active party grants labels, to one of {names}"
                )
        return self

    @model_validator(mode="after")
    def _attacks_are_distinct(self) -> ActiveConfig:
        names = [p.name for p in self.attacks]
        repeated = sorted({n for n in names if names.count(n) > 1})
        if repeated:
            raise ValueError(f"attack {repeated[0]!r} is configured twice: results are kept by its name")
        return self

    @model_validator(mode="after")
    def _labels_are_named(self) -> ActiveConfig:
        if self.data.label_column is None:
            raise ValueError(
                "data.label_column is missing: the active party holds the labels, name their column"
            )
        return self


class CoordinatorConfig(PartyConfig):
    """The party that aligns, drives and releases scores."""

    role: Literal[Role.COORDINATOR]
    training: Training = Training()
    model: SplitNetwork | None = Field(
        None, description="a split network (the extra `deep`); absent: softmax regression"
    )
    predict_share: float = Field(
        0.2, gt=0, lt=1, description="share of rows kept for prediction when no file has a split column"
    )
    after: Literal["stop", "serve"] = Field(
        "serve", description="after the run: stop every party, or go on answering predictions"
    )

    @model_validator(mode="after")
    def _knows_everybody(self) -> CoordinatorConfig:
        _require_one(self, Role.ACTIVE)
        if not self.peers_of(Role.PASSIVE):
            raise ValueError("peers name no passive party: a federation needs at least one")
        return self


AnyConfig = Annotated[PassiveConfig | ActiveConfig | CoordinatorConfig, Field(discriminator="role")]
_ANY: TypeAdapter[PassiveConfig | ActiveConfig | CoordinatorConfig] = TypeAdapter(AnyConfig)


def load_party(file: Path) -> PassiveConfig | ActiveConfig | CoordinatorConfig:
    """The party's configuration in ``file``; relative paths in it are relative to the file's folder.

    Raises:
        ConfigError: unreadable, not TOML, or a setting that is missing, unknown or out of range.
    """
    settings = read_toml(file)
    role = settings.get("role")
    if role not in [str(r) for r in Role if r is not Role.OPERATOR]:
        raise ConfigError(
            f"{file}: role is {'missing' if role is None else repr(role)}: a party is passive, active or coordinator (an experiment has none, `vflens run` takes it)"
        )
    config = validate(_ANY, settings, str(file))
    base = file.resolve().parent
    updates: dict[str, Any] = {"out": (base / config.out).resolve()}
    if not isinstance(config, CoordinatorConfig):
        updates["data"] = config.data.model_copy(update={"file": (base / config.data.file).resolve()})
    return config.model_copy(update=updates)


def read_toml(file: Path) -> dict[str, Any]:
    """The TOML document in ``file``.

    Raises:
        ConfigError: it cannot be read or is not TOML.
    """
    try:
        settings = tomllib.loads(file.read_text(encoding="utf-8-sig"))  # some editors begin it with a mark
    except OSError as error:
        raise ConfigError(
            f"configuration {file} cannot be read ({error.strerror}): check the path"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"configuration {file} is not TOML: {error}") from error
    except RecursionError:
        raise ConfigError(f"configuration {file} is not TOML: it is nested too deeply") from None
    _refuse_nul(settings, str(file))
    return settings


def _refuse_nul(value: Any, where: str) -> None:
    """No path, address or name holds the character NUL, and the system says so in no words of ours."""
    if isinstance(value, dict):
        for key, inner in value.items():
            _refuse_nul(key, where)
            _refuse_nul(inner, f"{where}: {key}")
    elif isinstance(value, list):
        for inner in value:
            _refuse_nul(inner, where)
    elif isinstance(value, str) and "\0" in value:
        raise ConfigError(f"{where}: the text holds the character NUL: remove it")


def validate(adapter: TypeAdapter[T], data: Any, source: str) -> T:
    """``data`` checked by ``adapter``.

    Raises:
        ConfigError: one sentence per wrong field, with its name and value, never a secret.
    """
    try:
        return adapter.validate_python(data)
    except ValidationError as error:
        problems = "; ".join(describe_problem(e) for e in error.errors()[:5])
        raise ConfigError(f"{source}: {problems}") from None


def describe_problem(problem: Any) -> str:
    """One pydantic error as field, message and value; values of secrets are left out."""
    place = problem["loc"][1:] if problem["loc"][:1] and problem["loc"][0] in set(Role) else problem["loc"]
    where = ".".join(map(str, place)) or "configuration"
    message = str(problem["msg"]).removeprefix("Value error, ")
    value = problem["input"]
    # The value of an unknown key may be a secret whose key was misspelt.
    secret = problem["type"] == "extra_forbidden" or any(word in where for word in ("token", "seed", "key"))
    shown = "" if secret or isinstance(value, dict | list | tuple | BaseModel) else f" (got {value!r})"
    return f"{where}: {message}{shown}"


def _require_one(config: PartyConfig, role: Role) -> None:
    count = len(config.peers_of(role))
    if count != 1:
        raise ValueError(f"peers name {count} parties with role {role.value!r}: exactly one is needed")


def build_plugins(registry: Registry, plugins: Sequence[Plugin]) -> list[Any]:
    """The configured plug-ins as objects, in order.

    Raises:
        PluginError: an unknown name.
        ConfigError: a parameter that the plug-in does not have or that is out of range.
    """
    return [
        validate(TypeAdapter(registry.get(p.name)), p.parameters, f"{registry.package} plug-in {p.name!r}")
        for p in plugins
    ]
